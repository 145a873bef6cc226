"""Loops of window reductions, and loops that resemble them: by default equal to the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.ir.interpreter import run_prim
from tilewright.ir.script import parse
from tilewright.schedules import Schedule
from tilewright.schedules.windows import windows_of

from tests.codegen.kernels import LEVELS, build

NEST = """
@prim_func
def f(x: {x}, y: {y}[(5, 19), f32]):
    {before}
    for i in range(5):
        for j in range({columns}):
            for k in range(2):
                for l in {loop}:
                    with block("y"):
                        vi, vj, vk, vl = spatial(i), spatial(19, j), reduce(k), reduce(3, l)
                        {guard}
                        {init}
                        y[vi, vj] = {value}
{after}
"""
USUAL = {
    "x": "Buffer[(12, 44), f32]",
    "y": "Out",
    "before": "",
    "columns": "19",
    "loop": "range(3)",
    "guard": "",
    "init": "with init(): y[vi, vj] = -inf",
    "value": "max(y[vi, vj], x[vi * 2 + vk, vj * 2 + vl])",
    "after": "",
}
LOOPS: dict[str, tuple[bool, dict[str, str]]] = {
    "maxima": (True, {}),
    "sums": (
        True,
        {
            "init": "with init(): y[vi, vj] = 0.0",
            "value": "y[vi, vj] + x[vi * 2 + vk, vj * 2 + vl]",
        },
    ),
    "squares": (
        True,
        {
            "init": "with init(): y[vi, vj] = 0.0",
            "value": "y[vi, vj] + x[vi + vk, vj + vl] * x[vi + vk, vj + vl]",
        },
    ),
    "two strides": (True, {"value": "max(y[vi, vj], x[vi + vk, vj] * x[vi, vj * 2 + vl])"}),
    "rows of an image with channels last": (
        True, {"value": "max(y[vi, vj], x[vi * 2 + vk + vl, vj])"},
    ),
    "an initial value of two": (True, {"init": "with init(): y[vi, vj] = 2.0"}),
    "an initial value that is read": (True, {"init": "with init(): y[vi, vj] = x[0, vj]"}),
    "a window in reverse": (True, {"value": "max(y[vi, vj], x[vi * 2 - vk + 1, vj * 2 - vl + 2])"}),
    "a block after the reduction": (
        True,
        {
            "y": "Temporary",
            "after": "    for i2 in range(5):\n        for j2 in range(19):\n"
            '            with block("z"):\n'
            "                vi2, vj2 = spatial(i2), spatial(j2)\n"
            "                z[vi2, vj2] = y[vi2, vj2] * 3.0\n",
        },
    ),
    "a guard": (False, {"guard": "guard(j + l < 19)"}),
    "a part of the results": (False, {"columns": "17", "y": "InOut"}),
    "a triangular window": (False, {"loop": "range(k + 1)"}),
    "added to the previous value": (False, {"y": "InOut", "init": ""}),
    "columns in reverse": (False, {"value": "max(y[vi, vj], x[vi + vk, 40 - vj * 2 - vl])"}),
    "a column in two indices": (
        False, {"value": "max(y[vi, vj], x[vi + vk, vj + vl] + x[vj // 2, vj])"},
    ),
    "the last in order": (False, {"value": "x[vi * 2 + vk, vj * 2 + vl]"}),
}  # fmt: skip


def module_of(case):
    parts = USUAL | LOOPS[case][1]
    if parts["y"] == "Temporary":
        text = NEST.replace("y: {y}[(5, 19), f32]", "z: Out[(5, 19), f32]")
        parts["before"] = "y = alloc((5, 19), f32)"
        return parse(text.format(**parts))
    return parse(NEST.format(**parts))


@pytest.mark.parametrize("case", LOOPS)
def test_kind(case) -> None:
    assert (windows_of(module_of(case).prim("f")) is not None) == LOOPS[case][0]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("case", LOOPS)
def test_results_equal_those_of_the_interpreter(case, level) -> None:
    module = module_of(case)
    sch = Schedule(module, tw.Target("cpu", features=(level,)))
    sch.schedule_kernel("f")
    assert ("schedule_windows" in str(sch.trace)) == LOOPS[case][0]
    x = np.random.default_rng(1).integers(-9, 10, (12, 44)).astype(np.float32)
    start = np.full((5, 19), 4, np.float32)
    found, wanted = start.copy(), start.copy()
    assert build(sch.module.prim("f"), level)(x, found) == 0
    run_prim(module.prim("f"), (x, wanted))
    np.testing.assert_array_equal(found, wanted)
