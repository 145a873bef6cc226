"""Former names of the public API: errors state the current names."""

import importlib
import pkgutil

import pytest

import tilewright
from tilewright.renamed import MODULES, NAMES, STEPS, RenamedImportError, RenamedStepError
from tilewright.schedules import STEPS as REGISTERED

from tests.schedules.helpers import MATMUL, schedule


def test_import_of_a_former_name_states_the_current_name():
    with pytest.raises(ImportError, match="'LostHandleError' was renamed to 'StaleHandleError'"):
        from tilewright.schedules import LostHandleError  # noqa: F401
    with pytest.raises(RenamedImportError, match="'Candidate' was renamed to 'Suggestion'"):
        _ = importlib.import_module("tilewright.schedules").Candidate


@pytest.mark.parametrize(
    ("module", "name", "current"),
    [
        ("codegen.measure", "Conditions", "MeasureOptions"),
        ("codegen.lower", "KernelArtifact", "LoweredKernel"),
        ("ir.interpreter", "Agreement", "Verdict"),
        ("schedules.rules", "finished", "with_default_schedule"),
    ],
)
def test_each_package_reports_its_former_names(module: str, name: str, current: str):
    package = importlib.import_module(f"tilewright.{module}")
    with pytest.raises(RenamedImportError, match=f"'{name}' was renamed to '{current}'"):
        getattr(package, name)
    assert hasattr(package, current)


def test_an_unknown_name_is_an_attribute_error():
    module = importlib.import_module("tilewright.schedules")
    with pytest.raises(AttributeError, match=r"'tilewright\.schedules' has no attribute 'Splitt'"):
        _ = module.Splitt
    assert not hasattr(module, "Splitt")


def test_call_of_a_former_step_states_the_current_step():
    sch = schedule(MATMUL)
    with pytest.raises(RenamedStepError, match="step 'specialise' was renamed to 'specialize'"):
        sch.specialise("matmul", symbol="M", lower=1)
    with pytest.raises(AttributeError, match=r"no attribute 'splt'; did you mean 'split'\?"):
        sch.splt("i")
    assert not hasattr(sch, "specialise")


def test_current_names_exist_and_former_names_do_not():
    assert STEPS.keys().isdisjoint(REGISTERED)
    assert set(STEPS.values()) <= REGISTERED.keys()
    exported = {
        name
        for module in pkgutil.walk_packages(tilewright.__path__, "tilewright.")
        if module.name.startswith(("tilewright.ir", "tilewright.schedules", "tilewright.codegen"))
        and module.ispkg
        for name in getattr(importlib.import_module(module.name), "__all__", ())
    }
    assert exported.isdisjoint(NAMES)
    assert set(NAMES.values()) <= exported


@pytest.mark.parametrize(("former", "current"), MODULES.items())
def test_import_of_a_former_module_states_the_current_module(former: str, current: str) -> None:
    message = f"module 'tilewright.{former}' was renamed to 'tilewright.{current}'"
    with pytest.raises(RenamedImportError, match=message):
        importlib.import_module(f"tilewright.{former}")
    assert importlib.import_module(f"tilewright.{current}")


def test_an_unknown_module_is_not_found():
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'tilewright\.teleport'"):
        importlib.import_module("tilewright.teleport")
