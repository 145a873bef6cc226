"""Gradients of graph functions, against central differences and automatic differentiation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch.nn import functional as F  # noqa: N812

import tilewright as tw
from tilewright.ir.graph.gradient import with_gradient
from tilewright.ir.graph.nodes import TensorInfo, operand_info
from tilewright.ir.graph.operators import OPERATORS
from tilewright.ir.graph.operators.errors import MissingGradientError, NotDifferentiableError
from tilewright.ir.interpreter import run_graph
from tilewright.ir.script import parse
from tilewright.ir.verify import violations

from tests.amounts import amount

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tilewright.ir.module import Module

SIZES = ((0, 3), (1, 1), (3, 1), (2, 4))
STEP = 1e-6
DIFFERENCES = amount(4, 1000)
"""The largest number of elements of an argument whose gradients are compared with differences."""

PROGRAM = """
n, m = symbols("n m", lower=0)

@graph_func
def main({params}):
{body}
    return y
"""
KINDS = {
    "x": "x: Tensor[(n, m), f64]",
    "v": "v: Tensor[(m,), f64]",
    "c": "c: Tensor[(n, 1), f64]",
    "w": "w: Tensor[(m, 3), f64]",
    "s": "s: Tensor[(), f64]",
    "b": "b: Tensor[(3, n, m), f64]",
    "q": "q: Tensor[(5, 4), f64]",
    "i": "i: Tensor[(n, 2), i64]",
    "j": "j: Tensor[(n, m), i64]",
    "k": "k: Tensor[(n,), i64]",
    "r": "r: Tensor[(n, 4), f64]",
}


@dataclass(frozen=True)
class Case:
    """Bindings of a program, and the same function in PyTorch; operands are in ``low, high``."""

    body: str
    params: str
    torch: Callable[..., torch.Tensor]
    low: float = -2.0
    high: float = 2.0
    differences: bool = True

    def module(self) -> Module:
        body = "\n".join(f"    {line.strip()}" for line in self.body.split(";"))
        params = ", ".join(KINDS[p] for p in self.params)
        return parse(PROGRAM.format(params=params, body=body))


def unary(op: str, reference: Any, low: float = -2.0, high: float = 2.0) -> Case:
    return Case(f"y = {op}(x)", "x", reference, low, high)


def _extended(x: torch.Tensor) -> torch.Tensor:
    return F.pad(x, (1, 2, 0, 1), value=3.0)


def _scattered(x: torch.Tensor, j: torch.Tensor, updates: torch.Tensor) -> torch.Tensor:
    """Write updates in order, so that the gradient of an overwritten one is 0."""
    found = x.clone()
    for row in range(j.shape[0]):
        for column in range(j.shape[1]):
            found[row, j[row, column]] = updates[row, column]
    return found


def _copied(x: torch.Tensor, k: torch.Tensor, updates: torch.Tensor) -> torch.Tensor:
    found = x.clone()
    for row in range(k.shape[0]):
        found[k[row]] = updates[row]
    return found


CASES = {
    **{name: unary(name, getattr(torch, name)) for name in (
        "negative", "abs", "exp", "exp2", "expm1", "sigmoid", "tanh", "erf", "erfc", "sin", "cos",
        "sinh", "cosh", "asinh", "atan", "relu", "floor", "ceil", "round", "trunc", "sign",
    )},
    **{name: unary(name, getattr(torch, name), 0.3, 3.0) for name in (
        "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "lgamma",
    )},
    **{name: unary(name, getattr(torch, name), -0.9, 0.9) for name in (
        "asin", "acos", "atanh", "tan", "erfinv",
    )},
    "acosh": unary("acosh", torch.acosh, 1.3, 3.0),
    "silu": unary("silu", F.silu),
    "gelu": unary("gelu", F.gelu),
    "gelu_tanh": Case(
        'y = gelu(x, approximate="tanh")', "x", lambda x: F.gelu(x, approximate="tanh")
    ),
    "add": Case("y = add(x, v)", "xv", torch.add),
    "add_column": Case("y = add(x, c)", "xc", torch.add),
    "subtract": Case("y = subtract(v, x)", "vx", torch.sub),
    "multiply": Case("y = multiply(b, x)", "bx", torch.mul),
    "multiply_scalar": Case("y = multiply(x, s)", "xs", torch.mul),
    "multiply_itself": Case("y = multiply(x, x)", "x", lambda x: x * x),
    "multiply_number": Case("y = multiply(x, 3.0)", "x", lambda x: x * 3),
    "divide": Case("y = divide(x, c)", "xc", torch.div, 0.5, 2.0),
    "divide_number": Case("y = divide(2.0, x)", "x", lambda x: 2 / x, 0.5, 2.0),
    "maximum": Case("y = maximum(x, v)", "xv", torch.maximum),
    "minimum": Case("y = minimum(x, v)", "xv", torch.minimum),
    "maximum_itself": Case("y = maximum(x, x)", "x", lambda x: torch.maximum(x, x)),
    "atan2": Case("y = atan2(x, v)", "xv", torch.atan2, 0.5, 2.0),
    "hypot": Case("y = hypot(x, v)", "xv", torch.hypot, 0.5, 2.0),
    "power": Case("y = power(x, v)", "xv", torch.pow, 0.5, 2.0),
    "power_number": Case("y = power(x, 3.0)", "x", lambda x: x**3),
    "power_of_number": Case("y = power(2.0, x)", "x", lambda x: 2.0**x),
    "matmul": Case("y = matmul(x, w)", "xw", torch.matmul),
    "matmul_batch": Case("y = matmul(b, w)", "bw", torch.matmul),
    "sum": Case("y = sum(x, axes=(0,))", "x", lambda x: x.sum(0)),
    "sum_keepdims": Case(
        "y = sum(b, axes=(1,), keepdims=True)", "b", lambda b: b.sum(1, keepdim=True)
    ),
    "sum_all": Case("y = sum(x)", "x", torch.sum),
    "mean": Case("y = mean(b, axes=(0, 2))", "b", lambda b: b.mean((0, 2))),
    "max": Case("y = max(q, axes=(1,))", "q", lambda q: q.amax(1)),
    "min": Case(
        "y = min(q, axes=(0,), keepdims=True)", "q", lambda q: q.amin(0, keepdim=True)
    ),
    "softmax": Case("y = softmax(x)", "x", lambda x: x.softmax(-1)),
    "softmax_axis": Case("y = softmax(b, axis=1)", "b", lambda b: b.softmax(1)),
    "log_softmax": Case("y = log_softmax(x, axis=0)", "x", lambda x: x.log_softmax(0)),
    "layer_norm": Case(
        "y = layer_norm(x, v, v)", "xv", lambda x, v: F.layer_norm(x, v.shape, v, v)
    ),
    "rms_norm": Case(
        "y = rms_norm(x, v, epsilon=0.01)", "xv", lambda x, v: F.rms_norm(x, v.shape, v, eps=0.01)
    ),
    "reshape": Case("y = reshape(b, (n * 3, m))", "b", lambda b: b.flatten(0, 1)),
    "expand_dims": Case("y = expand_dims(x, axes=(1,))", "x", lambda x: x[:, None]),
    "squeeze": Case("y = squeeze(c, axes=(1,))", "c", lambda c: c[:, 0]),
    "permute_dims": Case("y = permute_dims(b, axes=(2, 0, 1))", "b", lambda b: b.permute(2, 0, 1)),
    "broadcast_to": Case(
        "y = broadcast_to(c, (2, n, 3))", "c", lambda c: c.expand(2, c.shape[0], 3)
    ),
    "concat": Case("y = concat(x, c, x, axis=1)", "xc", lambda x, c: torch.cat((x, c, x), 1)),
    "strided_slice": Case(
        "y = strided_slice(q, (1, 0), (5, 3), axes=(0, 1), steps=(2, 1))",
        "q", lambda q: q[1:5:2, :3],
    ),
    "split": Case(
        "p = split(q, (2, 3)); a = p[1]; y = multiply(a, a)", "q", lambda q: q[2:] ** 2
    ),
    "take": Case("y = take(q, i)", "qi", lambda q, i: q[i]),
    "take_axis": Case("y = take(q, k, axis=1)", "qk", lambda q, k: q[:, k]),
    "gather_elements": Case("y = gather_elements(x, j, axis=1)", "xj", lambda x, j: x.gather(1, j)),
    "index": Case("y = index(q, k, k)", "qk", lambda q, k: q[k, k]),
    "index_rest": Case(
        "t = reshape(q, (5, 2, 2)); y = index(t, i)", "qi", lambda q, i: q.reshape(5, 2, 2)[i]
    ),
    "index_wrap": Case(
        "e = reshape(k, (n, 1)); l = subtract(e, 4); y = index(q, i, l, wrap=True)", "qik",
        lambda q, i, k: q[i, k[:, None] - 4],
    ),
    "scatter_elements": Case(
        "a = multiply(x, x); y = scatter_elements(x, j, a, axis=1)", "xj",
        lambda x, j: _scattered(x, j, x * x),
    ),
    "grouped_matmul": Case(
        "o = shape_to_tensor((0, min(n, 1), n)); w = full((2, 4, 3), 0.5, dtype='f64'); "
        "y = grouped_matmul(r, w, o)", "r",
        lambda r: r @ torch.full((4, 3), 0.5, dtype=torch.float64),
    ),
    "index_copy": Case("y = index_copy(q, k, r, axis=0)", "qkr", _copied),
    "index_add": Case(
        "y = index_add(q, k, r, axis=0)", "qkr",
        lambda q, k, r: q.index_add(0, k, r),
    ),
    "scatter_add": Case(
        "y = scatter_add(x, j, x, axis=1)", "xj", lambda x, j: x.scatter_add(1, j, x)
    ),
    "where": Case(
        "t = greater(x, v); y = where(t, x, v)", "xv", lambda x, v: torch.where(x > v, x, v)
    ),
    "cast": Case('t = cast(x, dtype="f32"); y = cast(t, dtype="f64")', "x",
                 lambda x: x.float().double(), differences=False),
    "flip": Case("y = flip(x, axes=(1,))", "x", lambda x: x.flip(1)),
    "tril": Case("y = tril(x, k=1)", "x", lambda x: x.tril(1)),
    "triu": Case("y = triu(b)", "b", torch.triu),
    "pad": Case("y = pad(x, (0, 1), (1, 2), 3.0)", "x", _extended),
    "cumsum": Case("y = cumsum(x, axis=1)", "x", lambda x: x.cumsum(1)),
    "update_slice": Case(
        "a = multiply(s, s); t = reshape(a, (1, 1)); y = update_slice(q, t, (2, 1))", "qs",
        lambda q, s: q.index_put((torch.tensor(2), torch.tensor(1)), s * s),
    ),
    "integer_result": Case(
        "a = argmax(q, axis=1); t = take(q, a); y = multiply(t, t)", "q",
        lambda q: q[q.argmax(1)] ** 2,
    ),
    "unused": Case("y = exp(x)", "xv", lambda x, v: x.exp() + 0 * v.sum()),
    "shared": Case("a = exp(x); b = multiply(a, x); t = add(a, b); y = multiply(t, a)", "x",
                   lambda x: (x.exp() + x.exp() * x) * x.exp()),
}  # fmt: skip


def arguments(module: Module, n: int, m: int, case: Case) -> list[np.ndarray]:
    rng = np.random.default_rng(n * 10 + m)
    sizes = {"n": n, "m": m}
    found: list[np.ndarray] = []
    for param in module.graph("main").params:
        info = param.value.info
        shape = tuple(sizes.get(str(d), 0) if str(d) in sizes else int(str(d)) for d in info.shape)
        if info.dtype.is_float:
            found.append(rng.uniform(case.low, case.high, shape))
        else:
            high = {"i": 5, "j": max(m, 1), "k": 4}[param.value.name]
            found.append(rng.integers(0, high, shape))
    return found


def differences(
    module: Module, args: Sequence[np.ndarray], cotangent: np.ndarray
) -> list[np.ndarray]:
    """Return central differences of the sum of the result times its cotangent.

    Those of elements beyond the largest number are NaN.
    """
    rng = np.random.default_rng(11)

    def total(moved: Sequence[np.ndarray]) -> float:
        return float(np.sum(np.asarray(run_graph(module, list(moved))[0]) * cotangent))

    found: list[np.ndarray] = []
    for k, x in enumerate(args):
        if x.dtype != np.float64:
            continue
        slope = np.full_like(x, np.nan)
        for chosen in rng.permutation(x.size)[:DIFFERENCES]:
            at, ends = np.unravel_index(chosen, x.shape), []
            for step in (STEP, -STEP):
                moved = [a.copy() for a in args]
                moved[k][at] += step
                ends.append(total(moved))
            slope[at] = (ends[0] - ends[1]) / (2 * STEP)
        found.append(slope)
    return found


@pytest.mark.parametrize("name", CASES)
def test_gradients(name: str) -> None:
    case = CASES[name]
    module = case.module()
    added = with_gradient(module.graph("main"), name="main_gradient")
    module = module.with_functions(added)
    assert not violations(module)
    exe: Any = tw.compile(module)
    scalar = operand_info(module.graph("main").results[0]).shape == ()
    for n, m in SIZES:
        args = arguments(module, n, m, case)
        tensors = [torch.tensor(a, requires_grad=a.dtype == np.float64) for a in args]
        result = case.torch(*tensors)
        c = np.random.default_rng(7).uniform(-1, 1, result.shape)
        c = np.ones(()) if scalar else c
        result.backward(torch.tensor(c))
        expected = [np.zeros(t.shape) if t.grad is None else t.grad.numpy()
                    for t in tensors if t.requires_grad]  # fmt: skip
        given = args if scalar else [*args, c]
        interpreted = run_graph(module, given, function="main_gradient")
        compiled = exe["main_gradient"](*given)
        for found in (interpreted, compiled):
            assert len(found) == 1 + len(expected)
            for have, want in zip(found[1:], expected, strict=True):
                assert_allclose(np.asarray(have), want, rtol=1e-6, atol=1e-7)
        if case.differences:
            slopes = differences(module, args, c)
            for have, want in zip(interpreted[1:], slopes, strict=True):
                known = ~np.isnan(want)
                assert known.sum() == min(want.size, DIFFERENCES)
                assert_allclose(np.asarray(have)[known], want[known], rtol=1e-4, atol=1e-6)


def graph_of(text: str) -> Any:
    return parse('n = symbols("n", lower=0)\n\n@graph_func\n' + text).graph("main")


ROWS = "def main(x: Tensor[(n, 4), f32], i: Tensor[(n,), i64], h: Tensor[(n, 4), f16]):\n"


def test_all_operators_without_a_gradient_are_listed() -> None:
    graph = graph_of(
        f"{ROWS}    a = cummax(x, axis=0)\n    b = mod(a, x)\n    c = cummin(x, axis=1)\n"
        "    d = add(b, c)\n    y = sum(d)\n    return y\n"
    )
    with pytest.raises(MissingGradientError) as caught:
        with_gradient(graph)
    assert caught.value.message == "operations without a gradient: cummin; mod; cummax"


def test_operators_beside_the_differentiated_path_need_no_gradient() -> None:
    graph = graph_of(f"{ROWS}    a = cummax(h, axis=0)\n    y = exp(x)\n    return y, a\n")
    assert len(with_gradient(graph, ("x",)).results) == 3


@pytest.mark.parametrize(
    ("parameters", "result", "message"),
    [
        (("i",), 0, "parameter 'i' is a tensor of dtype i64"),
        (("z",), 0, "no parameter 'z'"),
        (("x",), 2, "no result 2: the function has 2 results"),
        (("x",), 1, "result 1 is a tensor of dtype i64"),
    ],
)
def test_parameters_and_results_without_gradients(
    parameters: tuple[str, ...], result: int, message: str
) -> None:
    graph = graph_of(f"{ROWS}    y = exp(x)\n    a = argmax(x, axis=0)\n    return y, a\n")
    with pytest.raises(NotDifferentiableError, match=message):
        with_gradient(graph, parameters, result)


def test_a_function_of_integers_has_no_gradient() -> None:
    graph = graph_of(
        'def main(i: Tensor[(n,), i64]):\n    y = cast(i, dtype="f32")\n    return y\n'
    )
    with pytest.raises(NotDifferentiableError, match="no floating-point parameter"):
        with_gradient(graph)


def test_complex_numbers_are_rejected_by_name() -> None:
    graph = graph_of("def main(x: Tensor[(n,), c64]):\n    y = real(x)\n    return y\n")
    with pytest.raises(NotDifferentiableError, match="parameter 'x' is a tensor of dtype c64"):
        with_gradient(graph, ("x",))


def test_updates_of_parameters_are_rejected() -> None:
    graph = parse("""
@graph_func
def main(s: State[Tensor[(3,), f32]], x: Tensor[(3,), f32]):
    t = add(s, x)
    return t, updates(s=t)
""").graph("main")
    with pytest.raises(NotDifferentiableError, match="updates its parameters 's'"):
        with_gradient(graph)


def test_gradients_of_constants_have_their_names() -> None:
    x, w = np.float32([[1, 2], [3, 4]]), np.float32([[1], [-1]])
    module = parse("""
constant("fc.weight", (2, 1), f32)

@graph_func
def main(x: Tensor[(2, 2), f32]):
    h = matmul(x, const("fc.weight"))
    y = sum(h)
    return y
""", constants={"fc.weight": w})  # fmt: skip
    added = with_gradient(module.graph("main"), ("fc.weight",), name="step")
    found = run_graph(module.with_functions(added), [x], function="step")
    assert np.asarray(found[1]).tolist() == [[4.0], [6.0]]
    assert str(added).rstrip().endswith("return y, fc_weight_gradient")


def test_narrow_floats_keep_their_dtype() -> None:
    graph = graph_of(f"{ROWS}    y = gelu(h)\n    return y\n")
    added = with_gradient(graph, ("h",))
    assert isinstance(info := operand_info(added.results[1]), TensorInfo)
    assert info.dtype.name == "f16"


def test_operators_with_gradients() -> None:
    known = {n for n, op in OPERATORS.items() if op.has_gradient or op.is_decomposable}
    assert len(known) > 80
    assert {"argmax", "cummax", "mod", "cumprod"}.isdisjoint(known)


def test_a_parameter_of_unknown_shape_is_rejected():
    function = parse("""
n = symbols("n", lower=0)

@graph_func
def main(x: Tensor[(n,), f32], y: Tensor(None, f32, rank=2)):
    v = match_cast(y, Tensor[(n, 2), f32])
    u = exp(x)
    return u
""").functions["main"]
    with pytest.raises(NotDifferentiableError, match="the shape of parameter 'y' is unknown"):
        with_gradient(function)
    assert [p.value.name for p in with_gradient(function, ["x"]).params][:2] == ["x", "y"]


def test_a_loop_has_no_gradient():
    function = parse("""
n, k = symbols("n k", lower=0)

@graph_func
def main(x: Tensor[(n,), f32], p: Tensor[(), bool]):
    @loop(k, count=3)
    def y(c: Tensor[(n,), f32] = x):
        d = exp(c)
        return d
    if p:
        a = exp(y)
        z: Tensor[(n,), f32] = a
    else:
        b = negative(y)
        z: Tensor[(n,), f32] = b
    return z
""").functions["main"]
    with pytest.raises(MissingGradientError) as caught:
        with_gradient(function)
    message = "operations without a gradient: the branch 'z'; the loop 'y'"
    assert caught.value.message == message
    assert "can be written as that many copies of its body" in caught.value.hint
