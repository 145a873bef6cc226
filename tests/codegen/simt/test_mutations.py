"""Every mutant of the GPU kernels is detected, except those that are known to be equivalent."""

from __future__ import annotations

from dataclasses import fields, replace
from types import MappingProxyType

import numpy as np
import pytest

from tilewright.codegen.simt import statements
from tilewright.codegen.simt.operations import HANDLERS
from tilewright.codegen.simt.operations.nvidia import MatrixLoad, MatrixMultiply
from tilewright.ir.thread.nodes import MachineOp
from tilewright.ir.thread.visit import walk

from tests.codegen.simt.mutants import with_wider_bounds, without_barriers
from tests.codegen.simt.mutation import CASES, survivors

pytestmark = pytest.mark.slow

BY_NAME = {case.name: case for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_missing_barrier_is_found(case):
    """Removing one redundant barrier may be undetected; removing all of them must be a race."""
    surviving, counts = survivors(case, without_barriers(case.launcher.function))
    assert counts.keys() <= {"race", "survived"}
    if surviving:
        assert case.together(surviving) == "race"
    if case.name != "elementwise":
        assert counts["race"] >= 2


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_bound_that_is_too_large_is_found(case):
    mutants = [m for m in with_wider_bounds(case.launcher.function) if not case.excuse(m)]
    surviving, counts = survivors(case, mutants)
    assert [str(m) for m in surviving] == []
    assert sum(counts.values()) >= 6


def _rotated_tables():
    """Yield every operation with one of its lane tables rotated by one lane."""
    for name, handler in HANDLERS.items():
        if not isinstance(handler, MatrixLoad | MatrixMultiply):
            continue
        for field in fields(handler):
            table = getattr(handler, field.name)
            if isinstance(table, np.ndarray):
                rotated = np.roll(table, 1, axis=0)
                yield name, field.name, replace(handler, **{field.name: rotated})


def test_a_rotated_lane_table_is_found_in_the_kernel(monkeypatch):
    case = BY_NAME["tensor_matmul"]
    function = case.launcher.function
    used = {s.operation.name for s in walk(function.body) if isinstance(s, MachineOp)}
    sizes = {"M": 64, "N": 64, "K": 65}
    inputs = case.inputs(np.random.default_rng(1), sizes)
    (expected,), _ = case.launcher.outputs(inputs, sizes)
    tested = []
    for name, field, handler in _rotated_tables():
        if name not in used:
            continue
        monkeypatch.setattr(statements, "HANDLERS", MappingProxyType({**HANDLERS, name: handler}))
        (result,), report = case.launcher.outputs(inputs, sizes, function=replace(function))
        assert report.findings or not np.array_equal(result, expected), (name, field)
        tested.append((name, field))
    assert len(tested) >= 6
