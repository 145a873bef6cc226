"""Programs whose calls write their arguments are rejected, with the program with updates as fix."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ir.interpreter import run_graph
from tilewright.ir.script import parse
from tilewright.ir.verify import IllFormedProgramError

from tests.ir.graph.state_programs import KERNELS, UNORDERED, A, X, program


def fix_of(text: str) -> str:
    """Return the hint of the error for a program."""
    with pytest.raises(IllFormedProgramError) as caught:
        parse(text)
    assert caught.value.violations[0].rule.number == "G19"
    return str(caught.value.hint)


def test_the_fix_is_the_rewritten_program() -> None:
    fix = fix_of(UNORDERED)
    assert fix.startswith("write the new values of the states:\n")
    module = parse(KERNELS + "\n".join(line[4:] for line in fix.splitlines()[1:]))
    state = np.full(8, 10, np.float32)
    (y,) = run_graph(module, [state, np.full(8, 100, np.float32)])
    assert (y == 22).all()
    assert (state == 100).all()


def test_later_uses_are_those_of_the_new_value() -> None:
    text = program(
        f"{A}, {X}",
        """
old: Tensor[(8,), f32] = call_tir(accumulate, a, x)
y: Tensor[(8,), f32] = call_tir(add1, a)
return y, old
""",
    )
    lines = [line.strip() for line in fix_of(text).splitlines()[2:]]
    tuple_ = "Tuple[Tensor[(8,), f32], Tensor[(8,), f32]]"
    assert lines == [
        "def main(a: State[Tensor[(8,), f32]], x: Tensor[(8,), f32]):",
        f"accumulate_results: {tuple_} = call_tir(",
        "accumulate, a, x, updates=(0,)",
        ")",
        "old = accumulate_results[0]",
        "a_1 = accumulate_results[1]",
        "y: Tensor[(8,), f32] = call_tir(add1, a_1)",
        "return y, old, updates(a=a_1)",
    ]


def test_new_values_have_names_that_no_loop_uses() -> None:
    body = """
d: Tuple[()] = call_tir(update, a, x)
@loop(k, count=3)
def y(a_1: Tensor[(8,), f32] = a):
    e: Tensor[(8,), f32] = call_tir(add1, a_1)
    return e
return y
"""
    text = 'k = symbols("k", lower=0)\n' + program(f"{A}, {X}", body)
    fix = fix_of(text)
    head = 'k = symbols("k", lower=0)\n' + KERNELS
    module = parse(head + "\n".join(line[4:] for line in fix.splitlines()[1:]))
    state = np.full(8, 10, np.float32)
    (y,) = run_graph(module, [state, np.full(8, 100, np.float32)])
    assert (y == 103).all()
    assert (state == 100).all()


@pytest.mark.parametrize(
    "body",
    [
        """
if flag:
    d: Tuple[()] = call_tir(update, a, x)
    y: Tensor[(8,), f32] = a
else:
    y = x
return y
""",
        """
if flag:
    if flag:
        d: Tuple[()] = call_tir(update, a, x)
        y: Tensor[(8,), f32] = a
    else:
        y = x
    z: Tensor[(8,), f32] = y
else:
    z = x
return z
""",
        """
@loop(k, count=3)
def y(c: Tensor[(8,), f32] = a):
    d: Tuple[()] = call_tir(update, c, x)
    return x
return y
""",
        """
t: Tuple[Tensor[(8,), f32]] = call_tir(accumulate, a, x)
y = t[0]
return y
""",
    ],
    ids=["a branch", "a branch of a branch", "a loop", "a used tuple"],
)
def test_other_programs_get_the_fix_of_the_rule(body: str) -> None:
    text = 'k = symbols("k", lower=0)\n' + program(f"{A}, {X}, flag: Tensor[(), bool]", body)
    assert fix_of(text).startswith("pass the positions of these arguments and use the new values")
