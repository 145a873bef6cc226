"""The step that differentiates a function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.ir.script import parse, to_text
from tilewright.schedules import Schedule, from_json, to_json, to_python
from tilewright.schedules.handles import FunctionRef
from tilewright.schedules.primitives.autodiff.gradient import Gradient

from tests.schedules.helpers import rejected

MAIN = FunctionRef("main")
PROGRAM = """
n = symbols("n", lower=0)

@graph_func
def main(x: Tensor[(n, 3), f32], w: Tensor[(3, 2), f32], k: Tensor[(n,), i64]):
    h = matmul(x, w)
    t = tanh(h)
    y = sum(t)
    return y, k
"""


def expected(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return x.T @ (1 - np.tanh(x @ w) ** 2)


def test_it_adds_an_entry_point() -> None:
    sch = Schedule(parse(PROGRAM))
    before = str(sch)
    added = sch.gradient(variables=("w",))
    assert added == FunctionRef("main_gradient")
    assert "return y, k, w_gradient" in str(sch)
    assert sch.verify().required().ok
    exe: Any = tw.compile(sch)
    rng = np.random.default_rng(0)
    w = rng.standard_normal((3, 2)).astype(np.float32)
    for n in (0, 1, 5):
        x = rng.standard_normal((n, 3)).astype(np.float32)
        found = exe["main_gradient"](x, w, np.zeros(n, np.int64))
        np.testing.assert_allclose(np.asarray(found[2]), expected(x, w), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(np.asarray(exe(x, w, np.zeros(n, np.int64))[0]), found[0])
    after = str(sch)
    sch.undo()
    assert str(sch) == before
    sch.redo()
    assert str(sch) == after


def test_it_replays_from_a_trace_and_from_text() -> None:
    sch = Schedule(parse(PROGRAM))
    sch.gradient(variables=("w",))
    assert "gradient" in to_python(sch.trace)
    other = Schedule(parse(PROGRAM))
    other.replay(from_json(to_json(sch.trace)))
    assert str(other) == str(sch)
    text = to_text(sch.module)
    assert to_text(parse(text)) == text


def test_a_second_gradient_has_another_name() -> None:
    sch = Schedule(parse(PROGRAM))
    assert sch.gradient() == FunctionRef("main_gradient")
    assert sch.gradient(variables=("x",)) == FunctionRef("main_gradient_1")


def test_scheduled_kernels_of_the_gradient_run() -> None:
    sch = Schedule(parse(PROGRAM))
    sch.gradient(variables=("w",))
    for function in ("main", "main_gradient"):
        sch.lower_graph(function)
    x, w = np.ones((4, 3), np.float32), np.ones((3, 2), np.float32)
    exe: Any = tw.compile(sch)
    found = exe["main_gradient"](x, w, np.zeros(4, np.int64))
    np.testing.assert_allclose(np.asarray(found[2]), expected(x, w), rtol=1e-5)


def test_it_is_suggested_for_scalars() -> None:
    sch = Schedule(parse(PROGRAM))
    assert list(Gradient.suggest(sch.state, MAIN)) == [Gradient(MAIN)]
    other = Schedule(parse(PROGRAM.replace("return y, k", "return t, k")))
    assert not list(Gradient.suggest(other.state, MAIN))


def test_requirements() -> None:
    sch = Schedule(parse(PROGRAM))
    rejected(
        sch, Gradient(MAIN, ("k",)), Gradient.Requires.FLOATING_POINT, "parameter 'k' is a tensor"
    )
    rejected(sch, Gradient(MAIN, ("v",)), Gradient.Requires.FLOATING_POINT, "no parameter 'v'")
    rejected(
        sch,
        Gradient(MAIN, (), 1),
        Gradient.Requires.FLOATING_POINT,
        "result 1 is a tensor of dtype",
    )
    state = Schedule(parse("""
@graph_func
def main(s: State[Tensor[(3,), f32]], x: Tensor[(3,), f32]):
    t = add(s, x)
    return t, updates(s=t)
"""))  # fmt: skip
    rejected(state, Gradient(MAIN), Gradient.Requires.ONLY_INPUTS, "'main' updates 's'")
    other = Schedule(parse(PROGRAM.replace("tanh(h)", "cummax(h, axis=0)")))
    rejected(other, Gradient(MAIN), Gradient.Requires.DIFFERENTIABLE, "without a gradient: cummax")
    sch.legalize()
    rejected(sch, Gradient(MAIN), Gradient.Requires.DIFFERENTIABLE, "the call of function 'matmul'")
    kernel = FunctionRef("matmul")
    rejected(sch, Gradient(kernel), Gradient.Requires.DATAFLOW_STAGE, "is a loop-level function")


def test_a_wrong_name_is_an_error_with_the_known_names() -> None:
    sch = Schedule(parse(PROGRAM))
    with pytest.raises(tw.TilewrightError, match="no parameter 'v'"):
        sch.gradient(variables=("v",))
