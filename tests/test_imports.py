"""Modules that `import tilewright` loads, and their names."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import tilewright

HEAVY = ["IPython", "anywidget", "ipywidgets", "islpy", "llvmlite", "onnx", "plotly", "pycuda"]
HEAVY += ["numpy", "safetensors", "sympy", "torch", "transformers", "z3"]


def modules_of(statement: str, tmp_path: Path) -> set[str]:
    """Return the names in `sys.modules` after a statement in a new interpreter."""
    code = f"import json, sys\n{statement}\nprint(json.dumps([m for m in sys.modules]))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    return set(json.loads(done.stdout))


def loaded_by(statement: str, tmp_path: Path) -> set[str]:
    """Return the top-level packages in `sys.modules` after a statement in a new interpreter."""
    return {name.partition(".")[0] for name in modules_of(statement, tmp_path)}


def test_import_loads_no_heavy_package(tmp_path: Path) -> None:
    loaded = loaded_by("import tilewright", tmp_path)
    assert "tilewright" in loaded
    assert loaded.isdisjoint(HEAVY)


@pytest.mark.parametrize("level", ["ir", "schedules"])
def test_a_layer_does_not_load_layers_above_it(level: str, tmp_path: Path) -> None:
    loaded = loaded_by(f"import tilewright.{level}", tmp_path)
    allowed = {"numpy"} if level == "ir" else {"numpy", "islpy", "z3"}
    assert loaded.isdisjoint(set(HEAVY) - allowed)


def test_processes_that_run_code_load_no_passes_and_no_schedules(tmp_path: Path) -> None:
    """Every sandbox starts such a process, so its imports delay each measurement."""
    statement = "from tilewright.codegen.runtime.executable import RuntimeTable; RuntimeTable()"
    modules_of(statement, tmp_path)  # the object of the run-time library is in the cache now
    loaded = modules_of(statement, tmp_path)
    assert "tilewright.codegen.runtime.function" in loaded
    assert not {n for n in loaded if n.startswith("tilewright.schedules")}
    assert loaded.isdisjoint(
        f"tilewright.codegen.{n}" for n in ("lower.pipeline", "rtlib.translate")
    )


@pytest.mark.parametrize("name", tilewright.__all__)
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(tilewright, name) is not None
    assert name in dir(tilewright)


@pytest.mark.parametrize(
    ("name", "similar"),
    [("conpile", "compile"), ("Scheduel", "Schedule"), ("build", "compile"), ("jit", "compile")],
)
def test_an_unknown_name_is_an_attribute_error_with_a_similar_name(name: str, similar: str) -> None:
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; did you mean '{similar}'"):
        getattr(tilewright, name)
    assert not hasattr(tilewright, "_unknown")


def test_names_of_other_packages_have_existing_equivalents() -> None:
    assert set(tilewright._EQUIVALENTS.values()) <= set(tilewright.__all__)
    assert set(tilewright._EQUIVALENTS).isdisjoint(tilewright.__all__)


def test_no_file_is_loaded_under_two_names(root: Path) -> None:
    names: dict[Path, list[str]] = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        # Some packages set a relative path that does not exist; only files of the tree count.
        if file and Path(file).resolve().is_relative_to(root) and Path(file).exists():
            path = Path(file).resolve()
            if ".venv" not in path.relative_to(root).parts and name != "__main__":
                names.setdefault(path, []).append(name)
    assert names, "tilewright itself must be loaded from the tree"
    assert {path: found for path, found in names.items() if len(found) > 1} == {}
    own = {
        n for path, found in names.items() if not {"tests", ".ci"} & {*path.parts} for n in found
    }
    assert {n for n in own if n.partition(".")[0] != "tilewright"} == set()
