"""Measurements from scripts: intervals, comparisons, verdicts, conditions."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.measure.measure import MeasureError, last_steps

PROGRAM = """
n = symbols("n", lower=1)

@prim_func
def main(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        for k in range({times}):
            with block("y"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = 0.0
                y[vi] += x[vi] * x[vi]
"""

X = np.linspace(0.5, 1.5, 512, dtype=np.float32)


def program(times: int) -> tw.ir.module.Module:
    return tw.parse(PROGRAM.format(times=times))


def test_a_slower_program_and_an_equal_one_are_compared() -> None:
    fast = program(2)
    taken = tw.measure(
        fast, X, budget=0.4, against={"slow": program(64), "same": fast}, target="cpu"
    )
    slow, same = taken.compare
    assert taken.low <= taken.median <= taken.high
    assert slow.low <= slow.ratio <= slow.high
    assert slow.low > 1
    assert 0.5 < same.ratio < 2
    assert taken.verdict is not None
    assert taken.verdict.agrees
    assert slow.verdict is not None
    assert not slow.verdict.agrees  # it computes other results, which is reported
    assert "WRONG" in str(taken)
    data = taken.to_json()
    assert data["machine"]["processor"]
    assert data["conditions"]["caches"] == "hot"


def test_missing_verdicts_are_reported() -> None:
    module = tw.parse(PROGRAM.format(times=8))
    unchecked = tw.measure(tw.compile(module), X, budget=0.1)
    assert unchecked.verdict is None
    assert "not checked" in str(unchecked)
    beside = tw.measure(tw.compile(module), X, budget=0.1, against=[module])
    assert beside.verdict is not None
    assert "correct" in str(beside)
    assert "not checked" not in str(beside)


def test_options_are_applied_and_reported() -> None:
    module = program(8)
    cold = tw.measure(module, X, caches="cold", threads=1, pin=True, budget=0.2, check=False)
    hot = tw.measure(module, X, threads=1, budget=0.2, check=False)
    assert cold.median > hot.median
    assert cold.verdict is None
    assert "cold caches, 1 thread, pinned to separate cores" in str(cold)


def test_invalid_programs_and_arguments() -> None:
    with pytest.raises(MeasureError, match="expected a program, got int"):
        tw.measure(3, X)  # pyright: ignore[reportArgumentType]
    with pytest.raises(MeasureError, match="expected an array or an integer, got str"):
        tw.measure(program(2), "x")
    with pytest.raises(MeasureError, match="already compiled for its target"):
        tw.measure(tw.compile(program(2)), X, target="cpu")


def test_the_programs_to_compare_with_are_a_list_or_a_dictionary() -> None:
    with pytest.raises(MeasureError, match="expected programs to compare with, got int"):
        tw.measure(program(1), against=3)  # type: ignore[arg-type]


def test_states_have_their_initial_values() -> None:
    module = tw.parse(
        """
b = symbols("b", lower=1)

@graph_func
def main(
    x: Tensor[(b, 4), f32],
    total: State[Tensor[(b, 4), f32]],
    n: State[Tensor[(), f32], const("start", Tensor[(), f32])],
):
    new = add(total, x)
    k = add(n, 1.0)
    z = multiply(new, n)
    return z, updates(total=new, n=k)
""",
        constants={"start": np.array(3, np.float32)},
    )
    x = np.ones((2, 4), np.float32)
    taken = tw.measure(module, x, budget=0.1)
    assert taken.verdict is not None
    assert taken.verdict.agrees
    exe = tw.compile(module)
    state = exe.new_state(b=2)
    assert exe(x, state=state).tolist() == [[3.0] * 4] * 2
    assert exe(x, state=state).tolist() == [[8.0] * 4] * 2


def test_a_step_that_uses_drawn_integers_is_the_last_step_of_its_function() -> None:
    text = """
@prim_func
def f(x: Buffer[(64,), f32], y: Out[(64,), f32]):
    for i in range(64):
        with block("y"):
            vi = spatial(i)
            y[vi] = x[vi] * 2.0
"""
    sch = tw.Schedule(tw.parse(text))
    (i,) = sch.get_loops("y")
    sch.split(i, factors=sch.sample_perfect_tile(i, n=2))
    (last,) = last_steps(sch.state).values()
    assert "sch.split" in last
    x = np.ones(64, np.float32)
    assert float(np.asarray(tw.compile(sch)(x)).sum()) == 128
