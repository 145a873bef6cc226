"""The default rule for scans."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen import compile
from tilewright.ir.script import parse
from tilewright.schedules import Schedule
from tilewright.schedules.problem import StepError
from tilewright.target.target import Target

from tests.codegen.kernels import BEST

SUMS = """
n, m = symbols("n m", lower=0)

@graph_func
def main(x: Tensor[{shape}, f32]):
    y = cumsum(x, axis={axis})
    return y
"""
TARGET = Target("cpu", features=(BEST,))


def kinds(shape: str, axis: int) -> dict[str, list[str]]:
    sch = Schedule(parse(SUMS.format(shape=shape, axis=axis)), TARGET)
    sch.default_schedule()
    loops = {sch.state.block(b).name: sch.get_loops(b) for b in sch.get_blocks("cumsum")}
    return {name: [sch.state.loop(x).kind for x in found] for name, found in loops.items()}


def test_rows_run_in_parallel_with_steps_in_lanes():
    assert kinds("(n, m)", 1) == {"cumsum": ["parallel", "serial", "vectorized"]}


def test_columns_run_in_lanes_of_parallel_blocks():
    assert kinds("(n, m)", 0) == {"cumsum": ["parallel", "serial", "vectorized"]}


@pytest.mark.parametrize(("shape", "outer"), [("(n,)", []), ("(1, m)", ["serial"])])
def test_one_row_runs_in_parallel_parts(shape, outer):
    assert kinds(shape, len(outer)) == {
        "cumsum_total_init": [*outer, "parallel"],
        "cumsum_total": [*outer, "parallel", "serial", "vectorized"],
        "cumsum_before": [*outer, "serial"],
        "cumsum": [*outer, "parallel", "serial", "vectorized"],
    }


def test_a_short_row_is_not_divided():
    assert kinds("(100,)", 0) == {"cumsum": ["serial", "vectorized"]}


@pytest.mark.parametrize(
    ("shape", "axis", "sizes"),
    [
        ("(n, m)", 1, [(0, 3), (3, 0), (1, 1), (2, 3), (5, 70)]),
        ("(n, m)", 0, [(0, 3), (3, 0), (1, 1), (2, 3), (5, 70)]),
        ("(n,)", 0, [(0,), (1,), (100,), (16384,), (50000,)]),
    ],
)
def test_the_schedule_is_right_for_every_size(shape, axis, sizes):
    exe = compile(parse(SUMS.format(shape=shape, axis=axis)), TARGET)
    for size in sizes:
        x = np.random.default_rng(1).integers(-3, 4, size).astype(np.float32)
        np.testing.assert_array_equal(exe(x), np.cumsum(x, axis))


@pytest.mark.parametrize(("of", "loops"), [("(n, m)", "ji"), ("(n, 3)", "ji"), ("(n, 3)", "ij")])
def test_columns_whose_loop_is_outside_run_in_lanes(of, loops):
    width = of[1:-1].split(", ")[1]
    ranges = {"i": "n", "j": width}
    module = parse(f"""
n, m = symbols("n m", lower=0)
@prim_func
def f(x: Buffer[{of}, i32], y: Out[{of}, i32]):
    for {loops[0]} in range({ranges[loops[0]]}):
        for {loops[1]} in range({ranges[loops[1]]}):
            with block("y"):
                vi, vj = ordered(i), spatial(j)
                y[n - 1 - vi, vj] = scan(add, x[n - 1 - vi, vj])
""")
    sch = Schedule(module, TARGET)
    sch.schedule_scans("f")
    assert sch.state.loop(sch.get_loops("y")[-1]).kind == "vectorized"
    exe = compile(sch)
    for size in [(0, 3), (1, 3), (5, 3 if width == "3" else 70)]:
        x = np.arange(np.prod(size), dtype=np.int32).reshape(size)
        np.testing.assert_array_equal(exe["f"](x), np.cumsum(x[::-1], 0)[::-1])


def test_a_function_without_scans_is_refused():
    sch = Schedule(
        parse("""
@prim_func
def f(y: Out[(8,), f32]):
    for i in range(8):
        y[i] = 1.0
"""),
        TARGET,
    )
    with pytest.raises(StepError, match="contains no scan"):
        sch.schedule_scans("f")
