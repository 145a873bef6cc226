"""Operator calls that become calls of other operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tilewright as tw
from tilewright.ir.graph.nodes import Call
from tilewright.ir.graph.operators import OPERATORS
from tilewright.ir.graph.visit import all_bindings
from tilewright.ir.interpreter import compare, interpreted, run_graph
from tilewright.ir.module import Module
from tilewright.ir.script import parse
from tilewright.ir.verify import violations
from tilewright.schedules import Schedule, from_json, from_python, to_json, to_python
from tilewright.schedules.handles import FunctionRef
from tilewright.schedules.primitives.graph.decompose import Decompose

from tests.schedules.helpers import rejected

Array = NDArray[Any]

MAIN = FunctionRef("main")

CALLS = {
    "softmax": 'softmax(x, axis=0, masked_rows="zero")',
    "log_softmax": "log_softmax(x)",
    "layer_norm": "layer_norm(x, w, w, epsilon=0.1)",
    "rms_norm": "rms_norm(x, w)",
    "gelu": 'gelu(x, approximate="tanh")',
    "silu": "silu(x)",
    "mean": "mean(x, axes=(0,), keepdims=True)",
    "sort": "sort(x, axis=0)",
    "argsort": "argsort(x, descending=True)",
    "topk": "topk(x, (2,))",
    "nonzero": "nonzero(x)",
    "unique": "unique(x)",
    "dft": "real(spectrum)",
}
BEFORE = {"dft": 'wide = cast(x, dtype="f32")\n    spectrum = dft(wide, form="half")\n    '}
TUPLES = ("sort", "topk", "unique")

PROGRAM = """
n = symbols("n", lower=0)

@graph_func
def main(x: Tensor[(n, 8), f32], w: Tensor[(8,), f32]):
    t = softmax(x)
    u = rms_norm(t, w)
    y = softmax(u, axis=0)
    z = relu(y)
    return y, z

@graph_func
def other(x: Tensor[(4,), f32]):
    y = silu(x)
    return y
"""

REGIONS = """
n, m = symbols("n m", lower=0)
k = symbols("k", lower=0)

@graph_func
def main(x: Tensor[(n, 4), f32], w: Tensor[(m,), f32], p: Tensor[(), bool]):
    if p:
        a = silu(x)
        f: Tensor[(n, 4), f32] = a
    else:
        b = rms_norm(x, w)
        f = b
    @loop(k, count=2)
    def y(c: Tensor[(n, 4), f32] = f):
        d = gelu(c)
        return d
    return y
"""


def one_call(op: str, dtype: str) -> Module:
    read = "a = y[0]\n    b = y[1]\n    return a, b" if op in TUPLES else "return y"
    return parse(f"""
n = symbols("n", lower=0)

@graph_func
def main(x: Tensor[(n, 5), {dtype}], w: Tensor[(5,), {dtype}]):
    {BEFORE.get(op, "")}y = {CALLS[op]}
    {read}
""")


def data(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    return (4 * rng.standard_normal(shape)).astype(dtype.replace("f", "float"))


def operators(module: Module) -> list[str]:
    bindings = all_bindings(module.graph().bindings)
    return [b.right.op for b in bindings if isinstance(b.right, Call)]


def test_the_cases_are_all_operators_with_a_decomposition() -> None:
    assert {o.name for o in OPERATORS.values() if o.is_decomposable} == set(CALLS)


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
@pytest.mark.parametrize("op", CALLS)
def test_results_agree_within_the_bounds_of_the_operator(op: str, dtype: str) -> None:
    before = one_call(op, dtype)
    sch = Schedule(before)
    sch.decompose()
    assert op not in operators(sch.module)
    assert not violations(sch.module)
    executable = tw.compile(sch) if dtype != "f64" else None
    for n in (0, 1, 6):
        args = [data((n, 5), dtype, n), data((5,), dtype)]
        exact = interpreted(before, "main", args)
        verdict = compare([np.asarray(r) for r in run_graph(sch.module, args)], exact)
        assert verdict.agrees, verdict
        if executable is not None:
            found: Any = executable(*args)
            found = found if isinstance(found, tuple) else (found,)
            verdict = compare([np.asarray(r) for r in found], exact)
            assert verdict.agrees, verdict


def test_chosen_calls_keep_their_handles() -> None:
    sch = Schedule(parse(PROGRAM))
    before, y, t = str(sch), sch.get_binding("y"), sch.get_binding("t")
    added = sch.decompose(bindings=("y",))
    assert [b.name for b in added] == ["y_max", "y_subtract", "y_exp", "y_sum", "y"]
    assert added[-1] == y == sch.branch().get_binding("y")
    assert operators(sch.module)[:2] == ["softmax", "rms_norm"]
    assert sch.decompose(bindings=(t,))[-1] == t
    assert sch.verify().required().ok
    after = str(sch)
    sch.undo()
    sch.undo()
    assert str(sch) == before
    sch.redo()
    sch.redo()
    assert str(sch) == after


def test_all_calls_of_operators() -> None:
    sch = Schedule(parse(PROGRAM))
    sch.decompose(operators=("softmax",))
    assert [op for op in operators(sch.module) if op in CALLS] == ["rms_norm"]
    sch.decompose()
    assert [op for op in operators(sch.module) if op in CALLS] == ["mean"]
    sch.decompose()
    assert not [op for op in operators(sch.module) if op in CALLS]
    assert sch.verify().required().ok
    origins = {b.value.name: b.origins for b in sch.module.graph().bindings}
    assert "u" in origins["u_rsqrt"]


@pytest.mark.parametrize("form", ["JSON", "Python"])
def test_it_replays_from_a_trace(form: str) -> None:
    sch = Schedule(parse(PROGRAM))
    *_, total, share = sch.decompose(bindings=("y",))
    sch.decompose(operators=("softmax", "rms_norm"))
    sch.decompose()
    trace = from_json(to_json(sch.trace)) if form == "JSON" else from_python(to_python(sch.trace))
    other = Schedule(parse(PROGRAM))
    other.replay(trace)
    assert str(other) == str(sch)
    assert other.get_binding(total.name) == total
    assert other.get_binding(share.name) == share


def test_parts_are_scheduled_and_fused() -> None:
    sch = Schedule(parse(PROGRAM))
    sch.decompose(operators=("rms_norm",))
    kernels = [f.function for f in sch.legalize()]
    assert {"softmax", "multiply", "mean", "rsqrt"} <= set(kernels)
    sch.fuse_ops()
    sch.fuse_tir()
    assert sch.verify().required().ok


def test_calls_in_branches_and_loops() -> None:
    known = REGIONS.replace("(m,)", "(4,)").replace('n, m = symbols("n m"', 'n = symbols("n"')
    sch = Schedule(parse(known))
    before = sch.module
    added = sch.decompose()
    assert {"a", "b", "d"} <= {b.name for b in added}
    assert not set(operators(sch.module)) & {"silu", "rms_norm", "gelu"}
    executable = tw.compile(sch)
    for n, p in ((0, True), (1, False), (5, True), (5, False)):
        args = [data((n, 4), "f32", n), data((4,), "f32"), np.array(p)]
        exact = interpreted(before, "main", args)
        assert compare([np.asarray(executable(*args))], exact).agrees


def test_a_requirement_is_checked_at_run_time() -> None:
    module = parse("""
n, m = symbols("n m", lower=0)

@graph_func
def main(x: Tensor[(n, 4), f32], w: Tensor[(m,), f32]):
    z = rms_norm(x, w)
    y = rms_norm(x, w)
    return y, z
""")
    sch = Schedule(module)
    sch.decompose(bindings=("y",))
    names = [b.value.name for b in sch.module.graph().bindings]
    assert names[:2] == ["checked", "z"]
    assert 'fact(m == 4, "rms_norm requires m == 4", by="match_cast")' in str(sch)
    executable: Any = tw.compile(sch)
    assert executable(data((2, 4), "f32"), data((4,), "f32"))[0].shape == (2, 4)
    for m in (1, 3):  # one element would broadcast
        with pytest.raises(tw.TilewrightError, match="rms_norm requires m == 4"):
            executable(data((2, 4), "f32"), data((m,), "f32"))


def test_a_state_whose_last_value_is_decomposed() -> None:
    module = parse("""
@graph_func
def main(s: State[Tensor[(4,), f32]], x: Tensor[(4,), f32]):
    t = add(s, x)
    s2 = softmax(t)
    return t, updates(s=s2)
""")
    sch = Schedule(module)
    sch.decompose()
    assert sch.verify().required().ok
    state, x = data((4,), "f32"), data((4,), "f32", 1)
    expected = np.exp(state + x) / np.exp(state + x).sum()
    run_graph(sch.module, [state, x])
    np.testing.assert_allclose(state, expected, rtol=1e-5)


def test_suggestions() -> None:
    sch = Schedule(parse(PROGRAM))
    y = sch.get_binding("y")
    assert list(Decompose.suggest(sch.state, y)) == [Decompose(MAIN, (y,))]
    assert not list(Decompose.suggest(sch.state, sch.get_binding("z")))
    assert not list(Decompose.suggest(sch.state, sch.get_binding("x")))
    assert Decompose(MAIN, (y,)) in [s.step for s in sch.suggest(y)]


def test_requirements(monkeypatch: pytest.MonkeyPatch) -> None:
    sch = Schedule(parse(PROGRAM))
    x, y, z = (sch.get_binding(name) for name in "xyz")
    message = "'x' is not a binding of 'main'"
    rejected(sch, Decompose(MAIN, (x,)), Decompose.Requires.OPERATOR_CALLS, message)
    other = FunctionRef("other")
    message = "'y' is not a binding of 'other'; expected an operator call"
    rejected(sch, Decompose(other, (y,)), Decompose.Requires.OPERATOR_CALLS, message)
    step = Decompose(MAIN, (y,), ("gelu",))
    message = "'main' does not call the operator 'gelu'; it calls relu, rms_norm, softmax"
    rejected(sch, step, Decompose.Requires.OPERATOR_CALLS, message)
    message = "the operator 'relu' of 'z' has no decomposition; operators that have one are argsort"
    rejected(sch, Decompose(MAIN, (z,)), Decompose.Requires.HAS_DECOMPOSITION, message)
    rejected(sch, Decompose(MAIN, (), ("relu",)), Decompose.Requires.HAS_DECOMPOSITION, message)
    with monkeypatch.context() as patch:
        patch.setattr(type(OPERATORS["softmax"]), "decompose", lambda *_: None)
        message = "'softmax' of 'y' has no decomposition"
        rejected(sch, Decompose(MAIN, (y,)), Decompose.Requires.HAS_DECOMPOSITION, message)
    sch.legalize()
    message = "'y' is a binding of CallTIR of 'main'; expected an operator call"
    rejected(sch, Decompose(MAIN, (y,)), Decompose.Requires.OPERATOR_CALLS, message)
    message = "'main' calls no operator that has a decomposition"
    rejected(sch, Decompose(MAIN), Decompose.Requires.HAS_DECOMPOSITION, message)
    kernel = FunctionRef("relu")
    message = "'relu' is a loop-level function"
    rejected(sch, Decompose(kernel), Decompose.Requires.DATAFLOW_STAGE, message)


def test_requirements_in_branches_are_proved() -> None:
    sch = Schedule(parse(REGIONS))
    message = "'b' requires m == 4, which is not proved and cannot be checked here"
    rejected(sch, Decompose(MAIN), Decompose.Requires.CHECKABLE, message)
    sch.decompose(operators=("silu", "gelu"))
    assert "rms_norm" in operators(sch.module)
