"""Every operator, compiled by the default rules, equals its reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special

import tilewright
from tilewright.ir.dtype import DType, bf16, f16, from_numpy
from tilewright.ir.graph.builder import GraphBuilder
from tilewright.ir.graph.nodes import Call, TensorInfo
from tilewright.ir.graph.operators import get_operator
from tilewright.ir.module import Module
from tilewright.ir.symbolic import as_expr

from tests.ir.graph.case_table import Case, T
from tests.ir.graph.cases import CASES
from tests.ir.graph.test_operators import Program, close, flat

pytestmark = pytest.mark.slow


def with_sizes(case: Case) -> Program:
    """A case in a function that has its symbols as whole dimensions of one more parameter."""
    return Program(case, T(("n", "m", 0)))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_compiled_operators_equal_their_reference(case: Case) -> None:
    program = with_sizes(case)
    assert isinstance(program.call, Call)
    module = Module().with_functions(program.function)
    run: Any = tilewright.compile(module, target="cpu")
    tolerance = max(case.tolerance, 1e-5)
    for sizes in case.at:
        values = program.values(sizes)
        expected = flat(get_operator(case.op).reference(values, program.call.attributes))
        tensors = [v for v in values if isinstance(v, np.ndarray)]
        found = flat(run(*tensors, np.zeros((sizes["n"], sizes["m"], 0), np.float32)))
        for have, want in zip(map(np.asarray, found), expected, strict=True):
            assert have.shape == want.shape
            assert have.dtype == want.dtype
            close(have, want, tolerance)


HALVES = [f16, bf16]


def call(op: str, *arrays: np.ndarray, **attributes: Any) -> np.ndarray:
    """Compile one operator alone, and call it."""
    b = GraphBuilder("main")
    params = [
        b.param(f"x{k}", TensorInfo(tuple(map(as_expr, a.shape)), from_numpy(a.dtype)))
        for k, a in enumerate(arrays)
    ]
    module = Module().with_functions(b.finish([b.emit(op, *params, **attributes)]))
    run: Any = tilewright.compile(module, target="cpu")
    return np.asarray(run(*arrays))


def every(dtype: DType) -> np.ndarray:
    """Return every finite number of a 16-bit dtype."""
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype.numpy)
    with np.errstate(invalid="ignore"):  # signaling NaN
        return x[np.isfinite(x)]


def activation(name: str, x: np.ndarray) -> np.ndarray:
    """Return an activation function in double precision."""
    match name:
        case "silu":
            return x * special.expit(x)
        case "none":
            return x * special.ndtr(x)
        case _:
            return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", ["silu", "none", "tanh"])
def test_activations_of_16_bits_are_computed_in_single_precision(name: str, dtype: DType) -> None:
    x = every(dtype)
    attributes = {} if name == "silu" else {"approximate": name}
    found = call("silu" if name == "silu" else "gelu", x, **attributes).astype(np.float64)
    with np.errstate(over="ignore"):
        exact = activation(name, x.astype(np.float64))
        rounded = exact.astype(dtype.numpy)
        step = np.spacing(np.abs(rounded)).astype(np.float64)
    # 1 + erf cancels in single precision; near the largest number, a step is not finite.
    allowed = np.where(np.isfinite(step), step, 0) + np.abs(x.astype(np.float64)) * 2.0**-22
    same = found == rounded.astype(np.float64)
    assert (same | (np.abs(found - exact) <= allowed)).all(), x[~same][:5]
    assert np.mean(~same) < 0.02


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_running_sums_of_16_bits_are_computed_in_single_precision(dtype: DType) -> None:
    found = call("cumsum", np.ones(5000, dtype.numpy))
    expected = np.arange(1, 5001, dtype=np.float32).astype(dtype.numpy)
    np.testing.assert_array_equal(found.astype(np.float64), expected.astype(np.float64))


CHAIN: list[tuple[str, dict[str, Any]]] = [
    ("gelu", {}),
    ("exp", {}),
    ("negative", {}),
    ("silu", {}),
    ("tanh", {}),
    ("gelu", {"approximate": "tanh"}),
    ("softmax", {"axis": -1}),
    ("layer_norm", {}),
    ("sigmoid", {}),
    ("cumsum", {"axis": 1}),
]


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_a_fused_chain_of_16_bits_equals_its_operators_bit_for_bit(dtype: DType) -> None:
    x = np.random.default_rng(4).normal(0, 2, (19, 33)).astype(dtype.numpy)
    b = GraphBuilder("main")
    value = b.param("x", TensorInfo((as_expr(19), as_expr(33)), dtype))
    expected = x
    for op, attributes in CHAIN:
        before = value
        value = b.emit(op, value, **attributes)
        value = b.emit("multiply", b.emit("add", value, before), 0.75)
        alone = call(op, expected, **attributes)
        numbers = np.full_like(alone, 0.75)
        expected = call("multiply", call("add", alone, expected), numbers)
    module = Module().with_functions(b.finish([value]))
    run: Any = tilewright.compile(module, target="cpu")
    found = np.asarray(run(x))
    np.testing.assert_array_equal(found.view(np.uint16), expected.view(np.uint16))
