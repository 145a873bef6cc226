"""The generated page `docs/numerics.md`: its bounds hold, and each deviation is real."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from scipy import special

import tilewright
from tilewright.codegen.lower.host.devices import NoDeviceLibraryError
from tilewright.codegen.numerics_page import DEVIATIONS, OPERATOR_BOUNDS, operators_of, page
from tilewright.ir.dtype import DType, bf16, f16, f32, from_numpy
from tilewright.ir.graph.builder import GraphBuilder
from tilewright.ir.graph.nodes import TensorInfo
from tilewright.ir.graph.operators import OPERATORS, get_operator
from tilewright.ir.loop.element_functions import FUNCTIONS
from tilewright.ir.module import Module
from tilewright.ir.script import parse
from tilewright.ir.symbolic import as_expr

from tests.codegen.functions import ARRAYS, apply, apply_all, error_in_ulps, several
from tests.codegen.kernels import BEST

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HALVES = (f16, bf16)
UNARY = [f.name for f in FUNCTIONS.values() if f.arity == 1 and f.accepts(f32) and not f.predicate]
BINARY = [
    f.name
    for f in FUNCTIONS.values()
    if f.arity == 2
    and f.accepts(f32)
    and f.second is None
    and f.result == "operand"
    and f.name != "nextafter"
]


def test_the_committed_page_is_current(root: Path) -> None:
    committed = (root / "docs" / "numerics.md").read_text(encoding="utf-8")
    assert committed == page(), "run python -m tilewright.codegen.numerics_page > docs/numerics.md"


def test_operators_have_one_bound() -> None:
    plain = [n for f in FUNCTIONS.values() for n in re.findall(r"`(\w+)`", operators_of(f))]
    compound = [n for one in OPERATOR_BOUNDS for n in one.operators]
    assert len(set(plain + compound)) == len(plain + compound)
    exact = {
        "adaptive_max_pool", "all", "any", "arange", "argmax", "argmin", "argsort",
        "bitcast", "broadcast_to", "cast", "causal_mask", "concat", "cummax", "cummin", "equal",
        "expand_dims", "flip", "full", "gather_elements", "greater", "greater_equal", "index",
        "index_copy", "less", "less_equal", "logical_and", "logical_or", "logical_xor",
        "matmul_integer", "max", "max_pool", "min", "nonzero", "not_equal", "pad", "permute_dims",
        "relu", "reshape", "scatter_elements", "shape_to_tensor", "sort", "split", "squeeze",
        "strided_slice", "take", "to_device", "topk", "tril", "triu", "unique", "update_slice",
        "view_as_complex", "view_as_real", "where",
    }  # fmt: skip
    integer = {
        "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "clz", "ctz", "logical_not",
        "popcount", "random_bits",
    }  # fmt: skip
    assert set(plain) | set(compound) | exact | integer == set(OPERATORS)


# ---------------------------------------------------------------- element functions


def exact_of_halves(op: str, *x: np.ndarray) -> np.ndarray:
    """Return a function of 16-bit floats in double precision."""
    with np.errstate(invalid="ignore"):  # signaling NaN
        wide = [a.astype(np.float64) for a in x]
    with np.errstate(all="ignore"):
        return ARRAYS[op](*wide)


def random_halves(dtype: DType, seed: int) -> np.ndarray:
    """Return edge values and random bits."""
    bits = np.random.default_rng(seed).integers(0, 1 << 16, 4000, dtype=np.uint16)
    edges = np.array([0, -0.0, 1, -1, 2, 0.5, np.inf, -np.inf, np.nan, 1e-8, 65504, -65504])
    return np.concatenate([bits.view(dtype.numpy), edges.astype(dtype.numpy)])


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_functions_of_one_16_bit_float_on_all_values(dtype: DType) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype.numpy)
    kernel = several(tuple((op, dtype) for op in UNARY), dtype, BEST)
    for op, found in zip(UNARY, apply_all(kernel, x), strict=True):
        check(op, dtype, found, exact_of_halves(op, x))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_functions_of_two_16_bit_floats(dtype: DType) -> None:
    x, y = random_halves(dtype, 1), np.roll(random_halves(dtype, 2), 5)
    kernel = several(tuple((op, dtype) for op in BINARY), dtype, BEST, 2)
    for op, found in zip(BINARY, apply_all(kernel, x, y), strict=True):
        exact = exact_of_halves(op, x, y)
        if op in ("floordiv", "mod", "fmod"):  # double precision rounds their exact results
            with np.errstate(all="ignore"):
                results = [FUNCTIONS[op].reference(a, b) for a, b in zip(x, y, strict=True)]
                exact = np.array(results, dtype.numpy).astype(np.float64)
        check(op, dtype, found, exact)


def check(op: str, dtype: DType, found: np.ndarray, exact: np.ndarray) -> None:
    """Check the bound of a function, except for subnormal results that underflow in float32."""
    with np.errstate(all="ignore"):
        wide = found.astype(np.float64)
        rounded = exact.astype(np.float32 if dtype is bf16 else np.float64).astype(dtype.numpy)
        unit = np.spacing(np.abs(rounded)).astype(np.float64)
        unit = np.where(np.isfinite(unit), unit, np.inf)
        near = np.abs(wide - exact) <= FUNCTIONS[op].ulps(dtype) * unit
    same = (wide == rounded.astype(np.float64)) | (np.isnan(wide) & np.isnan(exact))
    assert (same | near).all(), (op, found[~(same | near)][:4], exact[~(same | near)][:4])


# ---------------------------------------------------------------- operators


def run_operator(op: str, *arrays: np.ndarray, **attributes: Any) -> np.ndarray:
    """Compile one operator alone, and call it."""
    b = GraphBuilder("main")
    params = [
        b.param(f"x{k}", TensorInfo(tuple(map(as_expr, a.shape)), from_numpy(a.dtype)))
        for k, a in enumerate(arrays)
    ]
    module = Module().with_functions(b.finish([b.emit(op, *params, **attributes)]))
    run: Any = tilewright.compile(module, target="cpu")
    found = np.asarray(run(*arrays))
    return found.astype(np.complex128 if found.dtype.kind == "c" else np.float64)


U = 2.0**-24
LEVEL = 32 + 6
"""The number of additions per level of blocks, and across the lanes."""


def operand(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 3, shape).astype(np.float32)


def _sums(x: np.ndarray, wide: np.ndarray) -> None:
    for op, scale in (("sum", 1.0), ("mean", 1 / x.shape[1])):
        error = np.abs(run_operator(op, x, axes=(1,)) - wide.sum(1) * scale)
        assert (error <= (2 * LEVEL + 2) * U * np.abs(wide).sum(1) * scale).all()


def _products(x: np.ndarray, wide: np.ndarray) -> None:
    error = np.abs(run_operator("matmul", x, x.T.copy()) - wide @ wide.T)
    assert (error <= (1024 + 8) * U * (np.abs(wide) @ np.abs(wide).T)).all()


def _grouped(x: np.ndarray, wide: np.ndarray) -> None:
    w, offsets = operand((2, x.shape[1], 5), 1), np.array([0, 6, len(x)])
    found = run_operator("grouped_matmul", x, w, offsets)
    for k, matrix in enumerate(w.astype(np.float64)):
        rows = slice(offsets[k], offsets[k + 1])
        size = np.abs(wide[rows]) @ np.abs(matrix)
        assert (np.abs(found[rows] - wide[rows] @ matrix) <= (x.shape[1] + 1) * U * size).all()


def _running(x: np.ndarray, wide: np.ndarray) -> None:
    error = np.abs(run_operator("cumsum", x, axis=1) - np.cumsum(wide, 1))
    count = np.arange(1, x.shape[1] + 1)
    assert (error <= count * U * np.cumsum(np.abs(wide), 1)).all()


def _products_so_far(x: np.ndarray, wide: np.ndarray) -> None:
    near = np.float32(1) + x / np.float32(1000)
    exact = np.cumprod(near.astype(np.float64), 1)
    error = np.abs(run_operator("cumprod", near, axis=1) - exact)
    assert wide.shape == exact.shape
    assert (error <= np.arange(1, x.shape[1] + 1) * U * np.abs(exact)).all()


def _convolved(x: np.ndarray, wide: np.ndarray) -> None:
    images, weights = x[None, :, :400].copy(), operand((5, 17, 9))
    padding = {"padding": (4, 4)}
    for op, w in (("conv", weights), ("conv_transpose", weights.transpose(1, 0, 2).copy())):
        reference = get_operator(op).reference
        exact = reference((wide[None, :, :400], w.astype(np.float64)), padding)
        size = reference((np.abs(wide[None, :, :400]), np.abs(w.astype(np.float64))), padding)
        error = np.abs(run_operator(op, images, w, **padding) - exact)
        assert (error <= (17 * 9 + 2) * U * np.asarray(size)).all()


def _averaged(x: np.ndarray, wide: np.ndarray) -> None:
    images, exact_images = x[None], wide[None]
    kernel = {"kernel": (33,)}
    exact = get_operator("avg_pool").reference((exact_images,), kernel)
    size = get_operator("avg_pool").reference((np.abs(exact_images),), kernel)
    error = np.abs(run_operator("avg_pool", images, **kernel) - exact)
    assert (error <= 35 * U * np.asarray(size)).all()


def _added(x: np.ndarray, wide: np.ndarray) -> None:
    count = x.shape[1]
    at = np.random.default_rng(3).integers(0, 7, count)
    exact, sizes = np.zeros((17, 9)), np.zeros((17, 9))
    np.add.at(exact, (slice(None), at), wide)
    np.add.at(sizes, (slice(None), at), np.abs(wide))
    zeros, rows = np.zeros((17, 9), np.float32), np.broadcast_to(at, x.shape).copy()
    terms = np.bincount(at, minlength=9) + 1
    for op, indices in (("index_add", at), ("scatter_add", rows)):
        error = np.abs(run_operator(op, zeros, indices, x, axis=1) - exact)
        assert (error <= terms * U * sizes).all()


def _scattered(x: np.ndarray, wide: np.ndarray) -> None:
    count = x.shape[1]
    at = np.random.default_rng(3).integers(0, 7, count)
    rows = np.broadcast_to(at, x.shape).copy()
    terms = np.bincount(at, minlength=9) + 2
    zeros = np.zeros((17, 9), np.float32)
    for reduction in ("sum", "mean", "max", "min"):
        form = {"axis": 1, "reduction": reduction, "include_self": False}
        reference = get_operator("scatter_reduce").reference
        exact = np.asarray(reference((zeros.astype(np.float64), rows, wide), form))
        error = np.abs(run_operator("scatter_reduce", zeros, rows, x, **form) - exact)
        sizes = np.asarray(reference((zeros.astype(np.float64), rows, np.abs(wide)), form))
        limit = 0 if reduction in ("max", "min") else terms * U * sizes
        assert (error <= limit).all()
    small, ones = np.exp(x / 90), np.ones((17, 9), np.float32)
    exact = np.ones((17, 9))
    np.multiply.at(exact, (slice(None), at), small.astype(np.float64))
    found = run_operator("scatter_reduce", ones, rows, small, axis=1, reduction="mul")
    assert (np.abs(found - exact) <= terms * U * exact).all()


def _spectra(x: np.ndarray, wide: np.ndarray) -> None:
    exact = np.fft.rfft(wide)
    error = np.abs(run_operator("dft", x, form="half") - exact)
    assert (error <= (4 * x.shape[1] + 4) * U * np.abs(wide).sum(1, keepdims=True)).all()


def _prod(x: np.ndarray, wide: np.ndarray) -> None:
    small = np.exp(x[:, :40] / 9).astype(np.float32)
    exact = small.astype(np.float64).prod(1)
    assert (np.abs(run_operator("prod", small, axes=(1,)) - exact) <= 40 * U * exact).all()
    assert wide.size


def _silu(x: np.ndarray, wide: np.ndarray) -> None:
    found = run_operator("silu", x).astype(np.float32)
    assert error_in_ulps(found, wide * special.expit(wide)).max() <= 3


def _gelu(x: np.ndarray, wide: np.ndarray) -> None:
    for form in ("none", "tanh"):
        inner = np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)
        exact = wide * special.ndtr(wide) if form == "none" else wide / 2 * (1 + np.tanh(inner))
        error = np.abs(run_operator("gelu", x, approximate=form) - exact)
        assert (error <= 4 * U * np.abs(wide)).all()


def _power(x: np.ndarray, wide: np.ndarray) -> None:
    y = operand(x.shape, 5)
    exact = np.power(np.abs(wide), y.astype(np.float64))
    found = run_operator("power", np.abs(x), y).astype(np.float32)
    assert error_in_ulps(found, exact).max() <= 2


def _softmax(x: np.ndarray, wide: np.ndarray) -> None:
    exact, r = special.softmax(wide, 1), wide.max(1, keepdims=True) - wide
    error = np.abs(run_operator("softmax", x) - exact)
    assert (error <= (2 * LEVEL + 10 + 2 * r) * U * exact).all()


def _log_softmax(x: np.ndarray, wide: np.ndarray) -> None:
    exact, r = special.log_softmax(wide, 1), wide.max(1, keepdims=True) - wide
    error = np.abs(run_operator("log_softmax", x) - exact)
    assert (error <= (2 * LEVEL + 10) * U + 2 * U * (r + np.abs(exact))).all()


def _norms(x: np.ndarray, wide: np.ndarray) -> None:
    w, b = operand(x.shape[1:], 1), operand(x.shape[1:], 2)
    largest = np.abs(wide).max(1, keepdims=True)
    centered = wide - wide.mean(1, keepdims=True)
    for op, rest, values in (("layer_norm", (w, b), centered), ("rms_norm", (w,), wide)):
        root = np.sqrt((values**2).mean(1, keepdims=True) + 1e-5)
        exact = values / root * w + (b if len(rest) > 1 else 0)
        size = largest / root * np.abs(w) + np.abs(b)
        error = np.abs(run_operator(op, x, *rest) - exact)
        assert (error <= (2 * LEVEL + 10) * U * size).all()


def _quantized(x: np.ndarray, wide: np.ndarray) -> None:
    scale = np.float32([0.0417])
    found = run_operator("quantize_linear", x, scale, dtype="i16").astype(np.float64)
    exact = wide / np.float64(scale)
    assert (np.abs(found - exact) <= 0.5 + U * np.abs(exact)).all()


def _dequantized(x: np.ndarray, wide: np.ndarray) -> None:
    del wide
    bits, scale = np.round(x * 100).astype(np.int8), np.abs(x[0]) + np.float32(0.1)
    exact = bits.astype(np.float64) * scale.astype(np.float64)
    error = np.abs(run_operator("dequantize_linear", bits, scale) - exact)
    assert (error <= 2 * U * np.abs(exact)).all()


def _logs_so_far(x: np.ndarray, wide: np.ndarray) -> None:
    exact = np.logaddexp.accumulate(wide, 1)
    error = np.abs(run_operator("logcumsumexp", x, axis=1) - exact)
    spread = np.maximum.accumulate(wide, 1) - np.minimum.accumulate(wide, 1)
    count = np.arange(1, x.shape[1] + 1)
    assert (error <= (8 * count + 4 + spread + 2 * np.abs(exact)) * U).all()


CHECKS: dict[str, Callable[[np.ndarray, np.ndarray], None]] = {
    "sum": _sums, "matmul": _products, "grouped_matmul": _grouped, "cumsum": _running,
    "cumprod": _products_so_far, "logcumsumexp": _logs_so_far, "index_add": _added, "prod": _prod,
    "scatter_reduce": _scattered, "dft": _spectra,
    "conv": _convolved, "avg_pool": _averaged,
    "silu": _silu, "gelu": _gelu, "power": _power, "softmax": _softmax, "log_softmax": _log_softmax,
    "layer_norm": _norms, "quantize_linear": _quantized, "dequantize_linear": _dequantized,
}  # fmt: skip


@pytest.mark.parametrize("bound", OPERATOR_BOUNDS, ids=lambda b: b.operators[0])
def test_operators_are_within_their_bound(bound: Any) -> None:
    x = operand((17, 3001))
    CHECKS[bound.operators[0]](x, x.astype(np.float64))


# ---------------------------------------------------------------- deviations


def element(op: str, dtype: DType, *operands: Any, out: DType | None = None) -> Any:
    """Return an element function of numbers."""
    arrays = [np.array([v], dtype.numpy) for v in operands]
    result = apply(several(((op, out or dtype),), dtype, BEST, len(arrays)), *arrays)
    return result[0]


def imported(function: Callable[..., Any], *tensors: Any) -> Any:
    """Compile a function of PyTorch, and call it."""

    class One(torch.nn.Module):
        def forward(self, *args: Any) -> Any:
            return function(*args)

    program = torch.export.export(One(), tensors)
    run: Any = tilewright.compile(tilewright.from_exported_program(program), target="cpu")
    return run(*tensors)


def _casts() -> None:
    numbers = np.array([300, -300, np.inf, np.nan], np.float32)
    found = apply(several((("cast", DTYPE_I8),), f32, BEST), numbers)
    np.testing.assert_array_equal(found, [127, -128, 127, 0])


def _zero_divisor() -> None:
    assert [element(op, DTYPE_I32, 7, 0) for op in ("div", "floordiv", "mod")] == [0, 0, 0]
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        _ = torch.tensor([7]) // torch.tensor([0])


def _negative_power() -> None:
    assert [element("pow", DTYPE_I32, base, -1) for base in (3, 1, -1)] == [0, 0, 0]
    with pytest.raises(ValueError, match="negative integer powers"):
        np.power(np.array([3]), -1)
    bases = torch.tensor([3, 1, -1])
    assert torch.pow(bases, torch.tensor([-1])).tolist() == [0, 1, -1]


def _floor_division() -> None:
    rng = np.random.default_rng(0)
    x = (rng.random(20_000) * 2**26 + 2**25).astype(np.float32)
    y = (rng.random(20_000) * 2 + 1).astype(np.float32)
    found = apply(several((("floordiv", f32),), f32, BEST, 2), x, y)
    exact = np.array([float(math.floor(Fraction(float(a)) / Fraction(float(b))))
                      for a, b in zip(x, y, strict=True)])  # fmt: skip
    np.testing.assert_array_equal(found, exact.astype(np.float32))
    assert (found != np.floor_divide(x, y)).any()
    assert (found != torch.floor_divide(torch.tensor(x), torch.tensor(y)).numpy()).any()


def _zero_remainder() -> None:
    assert np.signbit(element("mod", f32, 4.0, -2.0))
    assert np.signbit(np.mod(np.float32(4), np.float32(-2)))
    assert not torch.signbit(torch.remainder(torch.tensor(4.0), torch.tensor(-2.0)))


def _sign() -> None:
    nan = torch.tensor([math.nan, -2.0, 0.0])
    assert np.isnan(element("sign", f32, np.nan))
    assert np.isnan(np.sign(np.float32(np.nan)))
    assert nan.sign().tolist() == [0, -1, 0]
    assert np.asarray(imported(torch.sign, nan)).tolist() == [0, -1, 0]


def _empty_extremes() -> None:
    empty = np.zeros((2, 0), np.float32)
    assert (run_operator("max", empty, axes=(1,)) == -np.inf).all()
    assert (run_operator("min", empty, axes=(1,)) == np.inf).all()
    with pytest.raises(ValueError, match="zero-size"):
        empty.max(1)


def _zeros() -> None:
    for op in ("min", "max"):
        assert element(op, f32, 0.0, -0.0) == 0
        assert element(op, f32, -0.0, 0.0) == 0


def _numbers() -> None:
    x = np.full(3, 3, bf16.numpy)
    b = GraphBuilder("main")
    value = b.param("x", TensorInfo((as_expr(3),), bf16))
    module = Module().with_functions(b.finish([b.emit("multiply", value, 0.1)]))
    run: Any = tilewright.compile(module, target="cpu")
    tenth = np.float32(bf16.numpy.type(0.1))
    assert float(np.asarray(run(x))[0]) == float(bf16.numpy.type(tenth * 3))


def _contraction() -> None:
    x = np.full(16, 1 + 2.0**-12, np.float32)
    text = """
@prim_func
def f(x: Buffer[(16,), f32], z: Buffer[(16,), f32], y: Out[(16,), f32]):
    for i in range(16):
        with block("b"):
            vi = spatial(i)
            y[vi] = x[vi] * x[vi] + z[vi]
"""
    run: Any = tilewright.compile(tilewright.parse(text), target="cpu")
    z = -(x * x)
    assert (np.asarray(run(x, z)) == np.float32(2.0**-24)).all()
    assert (x * x + z == 0).all()


def _linear() -> None:
    x, w, b = torch.ones(1, 2), torch.tensor([[256.0, 1.0]]), torch.tensor([1.0])
    given = tuple(t.to(torch.bfloat16) for t in (x, w, b))
    found = imported(torch.nn.functional.linear, *given)
    assert float(np.asarray(found).astype(np.float32)[0, 0]) == 256  # 258 if rounded once


def _quotients() -> None:
    x = np.array([1e-40 + 1e-40j, 3e38 + 3e38j], np.complex64)
    y = np.array([1e-40 + 1e-40j, 2 + 2j], np.complex64)
    b = GraphBuilder("main")
    params = [b.param(name, TensorInfo((as_expr(2),), from_numpy(x.dtype))) for name in "xy"]
    module = Module().with_functions(b.finish([b.emit("divide", *params)]))
    run: Any = tilewright.compile(module, target="cpu")
    np.testing.assert_allclose(run(x, y), [1, 1.5e38], rtol=1e-6)
    with np.errstate(all="ignore"):
        assert not np.isfinite(x / y).any()
    assert not torch.isfinite(torch.tensor(x) / torch.tensor(y)).all()


def _called(op: str, *arrays: np.ndarray) -> np.ndarray:
    """Return the compiled result of an operator."""
    b = GraphBuilder("main")
    of = from_numpy(arrays[0].dtype)
    params = [b.param(f"x{k}", TensorInfo((as_expr(x.size),), of)) for k, x in enumerate(arrays)]
    module = Module().with_functions(b.finish([b.emit(op, *params)]))
    run: Any = tilewright.compile(module, target="cpu")
    return run(*arrays)


def _signs() -> None:
    x = np.array([complex(-np.inf, np.inf)])
    with np.errstate(all="ignore"):
        found, numpy = _called("sinh", x), np.sinh(x)
    assert np.isnan(found.imag).all()
    assert np.isnan(numpy.imag).all()
    np.testing.assert_array_equal(np.abs(found.real), np.abs(numpy.real))
    assert np.signbit(found.real) != np.signbit(numpy.real)


def _powers() -> None:
    x, y = np.array([complex(0, np.inf)]), np.array([complex(1, 0)])
    with np.errstate(all="ignore"):
        found, numpy = _called("power", x, y), np.power(x, y)
    assert np.isnan(found).any()
    assert not np.isnan(numpy).any()


def _distinct() -> None:
    x = np.full(3, np.nan, np.float32)
    run: Any = tilewright.compile(
        parse(
            "@graph_func\ndef main(x: Tensor[(3,), f32]):\n    u = unique(x)\n    v = u[0]\n"
            "    return v\n"
        )
    )
    assert run(x).shape == np.unique(x).shape == (1,)
    assert torch.unique(torch.tensor(x)).shape == (3,)


def _on_cuda() -> None:
    for op in ("sort(x)", "argsort(x)", "topk(x, (1,))", "unique(x)", "nonzero(x)"):
        text = f"@graph_func\ndef main(x: Tensor[(3,), f32]):\n    y = {op}\n    return y\n"
        with pytest.raises(NoDeviceLibraryError, match="requires tensors in host memory"):
            tilewright.compile(parse(text), tilewright.Target("cuda", arch="sm_80"))


def _logistic() -> None:
    x = torch.tensor([-90.0, -100.0])
    found = np.asarray(imported(torch.sigmoid, x))
    assert (found != 0).all()
    np.testing.assert_allclose(found, torch.sigmoid(x.double()).numpy(), rtol=1e-6, atol=2e-45)
    assert (torch.sigmoid(x.repeat(32)) == 0).all()


def _gelu() -> None:
    x = torch.tensor([math.inf, 3e38])
    for approximate in ("none", "tanh"):
        function = partial(torch.nn.functional.gelu, approximate=approximate)
        np.testing.assert_array_equal(imported(function, x), x.numpy())
        np.testing.assert_array_equal(function(x.double()).numpy(), x.double().numpy())
    if torch.backends.mkldnn.is_available():
        assert not torch.equal(torch.nn.functional.gelu(x), x)


def _overflowing_mean() -> None:
    x = torch.full((4, 1), 3e38)
    with np.errstate(all="ignore"):
        assert np.isinf(np.var(x.numpy()))
    assert np.isinf(np.asarray(imported(lambda x: x.var(0), x))).all()
    assert torch.isinf(x.var())
    assert x.expand(4, 3).var(0).tolist() == [0, 0, 0]


DTYPE_I8, DTYPE_I32 = (from_numpy(np.dtype(t)) for t in (np.int8, np.int32))
RUN: dict[str, Callable[[], None]] = {
    "cast of a float": _casts,
    "division and remainder of integers": _zero_divisor,
    "negative power": _negative_power,
    "`floor_divide` of floats": _floor_division,
    "`mod` of floats": _zero_remainder,
    "`sign` of NaN": _sign,
    "`unique` of several": _distinct,
    "`sort`, `argsort`": _on_cuda,
    "`max` and `min` of an empty": _empty_extremes,
    "`maximum` and `minimum` of": _zeros,
    "a number as operand": _numbers,
    "`x * y + z`": _contraction,
    "`linear` of 16-bit": _linear,
    "quotient of complex": _quotients,
    "`sigmoid` of float32": _logistic,
    "`gelu` of infinity": _gelu,
    "`var` and `std`": _overflowing_mean,
    "`sin`, `cos`, `sinh`": _signs,
    "`pow` of complex": _powers,
}


@pytest.mark.parametrize("deviation", DEVIATIONS, ids=lambda d: d.operation[:30])
def test_deviations(deviation: Any) -> None:
    (run,) = (r for start, r in RUN.items() if deviation.operation.startswith(start))
    run()
