"""The table of element functions agrees with the dtypes of elements and with the text format."""

from __future__ import annotations

import math

import numpy as np
import onnx
import pytest
import torch

from tilewright.ir.dtype import DTYPES, bf16, bool_, c64, f16, f32, f64, i32, u32
from tilewright.ir.graph.operators import OPERATORS
from tilewright.ir.interpreter import run_prim
from tilewright.ir.interpreter.elements import computed
from tilewright.ir.loop.element_functions import (
    FUNCTIONS,
    ElementFunction,
    ElementFunctionError,
    element_function,
    named,
    register,
)
from tilewright.ir.loop.element_references import philox
from tilewright.ir.loop.nodes import Binary, Number, Ternary, Unary
from tilewright.ir.loop.typing import dtype_problems
from tilewright.ir.script import parse, vocabulary
from tilewright.ir.script.errors import ScriptTypeError
from tilewright.ir.words import OutsideFunctionError

CALLED = {*vocabulary.element_functions.__all__, "abs", "round", "min", "max", "pow", "complex"}
MACHINE = [dtype for dtype in DTYPES.values() if dtype.is_machine]
FLOATS = (f64, f32, f16, bf16)


def values_of(function: ElementFunction, dtype, operands) -> list:
    """Return operands in the dtypes of a function."""
    dtypes = [dtype, function.second or dtype, dtype][: function.arity]
    return [t.numpy.type(v) for t, v in zip(dtypes, operands, strict=True)]


def applied(function: ElementFunction, dtype):
    """Return the function applied to ones."""
    one = Number(dtype.number(1), dtype)
    operands = [one] * function.arity
    if function.second is not None:
        operands[1] = Number(1, function.second)
    return (Unary, Binary, Ternary)[function.arity - 1](function.name, *operands)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_references_have_the_dtype_of_the_result(name: str) -> None:
    function = FUNCTIONS[name]
    for dtype in DTYPES.values():
        problems = list(dtype_problems(applied(function, dtype)))
        assert bool(problems) != function.accepts(dtype)
        if function.accepts(dtype):
            reference = function.reference
            if not dtype.is_machine and not dtype.is_complex:
                reference = computed(reference, dtype)
            with np.errstate(all="ignore"):
                result = reference(*values_of(function, dtype, [1] * function.arity))
            assert np.asarray(result).dtype == function.result_dtype(dtype).numpy


@pytest.mark.parametrize("name", sorted(CALLED))
def test_functions_are_written_as_calls(name: str) -> None:
    function = FUNCTIONS[name]
    source = next(t for t in (f32, u32, c64) if function.accepts(t))
    dtype = function.result_dtype(source)
    operands = ["x[vi]", "k[vi]" if function.second else "x[vi]", "x[vi]"][: function.arity]
    call = f"{name}({', '.join(operands)})"
    module = parse(
        f"""
@prim_func
def f(x: Buffer[(2,), {source}], k: Buffer[(2,), i32], y: Out[(2,), {dtype}]):
    for i in range(2):
        with block("b"):
            vi = spatial(i)
            y[vi] = {call}
"""
    )
    assert call in str(module)
    y = np.empty(2, dtype.numpy)
    x = np.array([5, 1 << 31] if source is u32 else [0.5, 1], source.numpy)
    with np.errstate(all="ignore"):
        run_prim(module.prim("f"), [x, np.int32([3, -1]), y])
        expected = [
            function.reference(*values_of(function, source, [a, b, a][: function.arity]))
            for a, b in zip(x, [3, -1] if function.second else x, strict=True)
        ]
    np.testing.assert_array_equal(y, np.array(expected))


def test_every_function_with_the_form_of_a_call_is_a_keyword() -> None:
    from tilewright.ir.script.parser.elements import CALLED as PARSED

    assert set(PARSED) == CALLED
    assert set(vocabulary.element_functions.__all__) <= set(vocabulary.__all__)
    with pytest.raises(OutsideFunctionError, match="'tanh' was called outside"):
        vocabulary.tanh(1.0)


def test_errors_of_the_registry() -> None:
    with pytest.raises(ElementFunctionError, match="no element function 'tanhh'") as raised:
        element_function("tanhh")
    assert "tanh" in raised.value.hint
    with pytest.raises(ElementFunctionError, match="registered twice"):
        register(FUNCTIONS["exp"])


def test_an_unknown_function_is_an_error_of_the_node() -> None:
    with pytest.raises(ElementFunctionError, match="no element function 'softplus'"):
        _ = Unary("softplus", Number(1.0, f32)).dtype
    with pytest.raises(ElementFunctionError, match="no element function 'gcd'"):
        list(dtype_problems(Binary("gcd", Number(1, i32), Number(1, i32))))


# ---------------------------------------------------------------- completeness of the rows


@pytest.mark.parametrize("name", FUNCTIONS)
def test_rows_are_complete(name: str) -> None:
    function = FUNCTIONS[name]
    accepted = [dtype for dtype in DTYPES.values() if function.accepts(dtype)]
    assert accepted
    assert function.domain
    assert function.cost > 0
    floats = [dtype for dtype in accepted if dtype.is_float]
    if floats and function.result != "complex":
        assert function.special, "state results at zeros, infinities, and the ends of the domain"
        assert all(len(row) == function.arity + 1 for row in function.special)
        bounds = [function.ulps(dtype) for dtype in floats]
        assert all(0 <= bound <= 4 for bound in bounds)
        assert function.predicate or any(bounds) == bool(function.units) or function.bounds
    if function.names.operator:
        assert function.names.operator in OPERATORS


@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values_of_references(name: str) -> None:
    function = FUNCTIONS[name]
    for dtype in FLOATS:
        for *operands, result in function.special if function.accepts(dtype) else ():
            with np.errstate(all="ignore"):
                found = float(function.reference(*values_of(function, dtype, operands)))
                expected = float(np.float64(result).astype(dtype.numpy))
            assert found == expected or (math.isnan(found) and math.isnan(expected)), operands
            assert math.isnan(found) or math.copysign(1, found) == math.copysign(1, expected)


@pytest.mark.parametrize("name", [n for n, f in FUNCTIONS.items() if f.accepts(f32)])
def test_nan_is_propagated_unless_the_row_states_another_result(name: str) -> None:
    function = FUNCTIONS[name]
    for k in range(function.arity):
        operands = [2.0] * function.arity
        operands[k] = math.nan
        stated = any(math.isnan(row[k]) for row in function.special)
        if stated or function.predicate or (k == 1 and function.second):
            continue
        found = function.reference(*values_of(function, f32, operands))
        assert np.isnan(found) != (name == "copysign" and k == 1)


def test_names_elsewhere_exist() -> None:
    assert all(hasattr(np, name) for name in named("numpy"))
    assert all(hasattr(torch.ops.aten, name) for name in named("torch"))
    assert all(onnx.defs.has(name) for name in named("onnx"))
    names = [n for e in ("operator", "torch", "onnx") for n in named(e)]
    rows = [getattr(f.names, e) for e in ("operator", "torch", "onnx") for f in FUNCTIONS.values()]
    assert sorted(names) == sorted(filter(None, rows)), "a name belongs to two functions"


@pytest.mark.parametrize("name", [n for n, f in FUNCTIONS.items() if f.names.numpy])
def test_references_equal_numpy(name: str) -> None:
    function = FUNCTIONS[name]
    dtype = next(t for t in (f32, c64, i32, bool_) if function.accepts(t))
    rng = np.random.default_rng(0)
    if dtype.is_inexact:
        arrays = [rng.normal(0, 2, (200, 2)).astype(np.float32) for _ in range(function.arity)]
        arrays = [a[:, 0] if dtype is f32 else a.view(np.complex64)[:, 0] for a in arrays]
    else:
        arrays = [rng.integers(0, 2 if dtype is bool_ else 20, 200).astype(dtype.numpy)] * (
            function.arity
        )
    if function.second is not None:
        arrays[1] = rng.integers(-160, 160, 200).astype(function.second.numpy)
    with np.errstate(all="ignore"):
        found = np.array([function.reference(*row) for row in zip(*arrays, strict=True)])
        expected = getattr(np, function.names.numpy)(*arrays)
    np.testing.assert_allclose(found, expected, rtol=3e-7)


# ---------------------------------------------------------------- operands of several kinds

TEXT = """
@prim_func
def f(x: Buffer[(2,), {0}], k: Buffer[(2,), i32], y: Out[(2,), {0}]):
    for i in range(2):
        with block("b"):
            vi = spatial(i)
            y[vi] = {1}
"""


@pytest.mark.parametrize("call", [
    "fma(x[vi], 2.0, 1.0)", "fma(2.0, x[vi], x[vi])", "fma(f32(1.0), 2.0, 3.0)",
    "fma(2.0, 3.0, x[vi] + 1.0)", "ldexp(x[vi], 3)", "ldexp(x[vi], k[vi] + 1)", "ldexp(1.5, k[vi])",
    "ldexp(x[vi], i32(vi))", "fma(ldexp(x[vi], 1), 2.0, hypot(x[vi], 3.0))",
])  # fmt: skip
def test_calls_survive_a_round_trip(call: str) -> None:
    text = str(parse(TEXT.format("f32", call)))
    assert str(parse(text)) == text


def test_literals_of_calls_have_the_dtype_of_the_other_operands() -> None:
    module = parse(TEXT.format("f32", "fma(2.0, x[vi], ldexp(1.5, k[vi]))"))
    y = np.empty(2, np.float32)
    run_prim(module.prim("f"), [np.float32([1, 10]), np.int32([1, -1]), y])
    assert y.tolist() == [5.0, 20.75]


@pytest.mark.parametrize(("dtype", "call", "message"), [
    ("f32", "ldexp(x[vi], x[vi])", "ldexp is not defined for dtypes f32 and f32"),
    ("i32", "ldexp(x[vi], k[vi])", "ldexp is not defined for dtypes i32 and i32"),
    ("f32", "fma(x[vi], x[vi], k[vi])", "fma is not defined for dtypes f32, f32, and i32"),
    ("f32", "nextafter(f64(x[vi]), x[vi])", "nextafter is not defined for dtypes f64 and f32"),
    ("i32", "random_bits(k[vi], k[vi])", "random_bits is not defined for dtypes i32 and i32"),
])  # fmt: skip
def test_wrong_dtypes_are_named(dtype: str, call: str, message: str) -> None:
    with pytest.raises(ScriptTypeError, match=message):
        parse(TEXT.format(dtype, call))


# ---------------------------------------------------------------- random bits

KNOWN = (
    ((0,) * 4, (0,) * 2, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    (
        (0xFFFFFFFF,) * 4,
        (0xFFFFFFFF,) * 2,
        (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
    ),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
)
"""The published test vectors of Philox 4x32-10: counter, key, and result."""


@pytest.mark.parametrize(("counter", "key", "words"), KNOWN)
def test_philox_has_the_published_results(counter, key, words) -> None:
    assert philox(counter, key) == words


def test_random_bits_are_the_stream_of_philox() -> None:
    reference = FUNCTIONS["random_bits"].reference
    stream = [w for block in range(3) for w in philox((block, 0, 0, 0), (9, 0))]
    found = [reference(np.uint32(k), np.uint32(9)) for k in range(12)]
    assert [int(v) for v in found] == stream
    wide = [int(reference(np.uint64(k), np.uint64(9))) for k in range(6)]
    assert wide == [a | b << 32 for a, b in zip(stream[::2], stream[1::2], strict=True)]
    block = (1 << 63) >> 1
    words = philox((block & 0xFFFFFFFF, block >> 32, 0, 0), (1, 5))
    assert int(reference(np.uint64(1 << 63), np.uint64(5 << 32 | 1))) == words[0] | words[1] << 32
