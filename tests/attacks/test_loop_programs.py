"""Hand-written programs, compiled by the default rules, against the interpreter and NumPy."""

from __future__ import annotations

import warnings

import pytest

from tilewright.schedules import Schedule
from tilewright.schedules.handles import FunctionRef
from tilewright.target.target import Target

from tests.attacks import (  # noqa: F401  # each registers its programs
    programs_attention,
    programs_bindings,
    programs_elementwise,
    programs_factorizations,
    programs_functions,
    programs_moments,
    programs_narrow,
    programs_permutations,
    programs_product_chains,
    programs_products,
    programs_recurrences,
    programs_reducers,
    programs_rows,
    programs_scratch,
    programs_sparse,
    programs_stencils,
    programs_windows,
)
from tests.attacks.loop_programs import REGISTERED
from tests.codegen.kernels import LEVELS
from tests.fuzz import oracles

pytestmark = pytest.mark.slow

TARGETS = (*LEVELS, "simt")


@pytest.mark.parametrize("name", REGISTERED)
def test_the_default_rule(name: str, fuzz_factor: int) -> None:
    """Each program is compiled for one target; with more time, for all."""
    case = REGISTERED[name]
    targets = [t for t in TARGETS if case.has_gpu_rule or t != "simt"]
    first = list(REGISTERED).index(name) % len(targets)
    original, envs = case.original()
    for kind in targets if fuzz_factor > 1 else targets[first : first + 1]:
        target = oracles.SIMT if kind == "simt" else Target("cpu", features=(kind,))
        sch = Schedule(original.module, target)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            sch.schedule_kernel(FunctionRef(original.function.name))
        function = sch.module.prims[0]
        if kind == "simt":
            artifact = oracles.lowered(function, target)
            for env in envs[::3]:
                oracles.run_simt(original, artifact, env, f"{name} on the emulated GPU")
        else:
            kernel = oracles.native(function, kind, opt=0, longest=10 * oracles.LONGEST)
            for env in envs:
                oracles.run_native(original, kernel, env, f"{name} for {kind}")


def test_there_are_many_programs() -> None:
    assert len(REGISTERED) >= 300
