"""The semantics of element operations at boundary values."""

import numpy as np
import pytest

from tilewright.ir.dtype import DTYPES, i8, i32, u8
from tilewright.ir.interpreter.elements import COMPARE, cast_to
from tilewright.ir.loop.element_functions import FUNCTIONS


def i32s(*values):
    return tuple(np.int32(v) for v in values)


@pytest.mark.parametrize(
    ("op", "a", "b", "expected"),
    [
        ("add", 2**31 - 1, 1, -(2**31)),
        ("sub", -(2**31), 1, 2**31 - 1),
        ("mul", 2**30, 4, 0),
        ("floordiv", -7, 2, -4),
        ("floordiv", 7, 0, 0),
        ("floordiv", -(2**31), -1, -(2**31)),
        ("mod", -7, 3, 2),
        ("mod", 7, -3, -2),
        ("mod", 7, 0, 0),
        ("shl", 1, 31, -(2**31)),
        ("shl", 1, 32, 0),
        ("shr", -8, 1, -4),
        ("shr", -8, 40, -1),
        ("pow", 3, 40, (3**40 + 2**31) % 2**32 - 2**31),
        ("pow", 3, -1, 0),
        ("min", -3, 4, -3),
        ("max", -3, 4, 4),
        ("xor", 6, 3, 5),
    ],
)
def test_integers_are_total_and_wrap(op, a, b, expected):
    with np.errstate(all="ignore"):
        result = FUNCTIONS[op].reference(*i32s(a, b))
    assert result == expected
    assert result.dtype == np.int32


def test_minimum_and_maximum_propagate_nan():
    nan, one = np.float32("nan"), np.float32(1)
    for op in ("min", "max"):
        assert np.isnan(FUNCTIONS[op].reference(nan, one))
        assert np.isnan(FUNCTIONS[op].reference(one, nan))


def test_float_division_by_zero_is_infinite():
    with np.errstate(all="ignore"):
        assert FUNCTIONS["div"].reference(np.float32(1), np.float32(0)) == np.inf
        assert FUNCTIONS["div"].reference(np.float32(-1), np.float32(0)) == -np.inf
        assert FUNCTIONS["mod"].reference(np.float32(-7), np.float32(3)) == 2


@pytest.mark.parametrize(
    ("target", "value", "expected"),
    [
        (i8, np.float32(300), 127),
        (i8, np.float32(-300), -128),
        (i8, np.float32("inf"), 127),
        (i8, np.float32("-inf"), -128),
        (i8, np.float32("nan"), 0),
        (i8, np.float32(-3.9), -3),
        (u8, np.float32(-1), 0),
        (i8, np.int32(200), -56),
        (u8, np.int32(-1), 255),
        (i32, np.int64(2**40 + 5), 5),
        (i32, np.bool_(True), 1),
    ],
)
def test_casts_saturate_from_floats_and_wrap_from_integers(target, value, expected):
    result = cast_to(target, target.numpy)(value)
    assert result == expected
    assert result.dtype == target.numpy


@pytest.mark.parametrize("op", ["exp", "log", "tanh", "erf", "sigmoid", "rsqrt", "sin", "log1p"])
def test_functions_round_once_from_float64(op):
    x = np.float32(0.7)
    exact = FUNCTIONS[op].reference(np.float64(x))
    assert FUNCTIONS[op].reference(x) == np.float32(exact)
    assert FUNCTIONS[op].reference(x).dtype == np.float32


def test_sigmoid_is_finite_for_large_operands():
    with np.errstate(all="ignore"):
        assert FUNCTIONS["sigmoid"].reference(np.float32(-1000)) == 0
        assert FUNCTIONS["sigmoid"].reference(np.float32(1000)) == 1


def test_round_is_half_to_even_and_sign_keeps_nan():
    found = [FUNCTIONS["round"].reference(np.float32(v)) for v in (0.5, 1.5, 2.5, -0.5)]
    assert found == [0, 2, 2, 0]
    assert FUNCTIONS["sign"].reference(np.float32(-2)) == -1
    assert np.isnan(FUNCTIONS["sign"].reference(np.float32("nan")))


def test_bool_arithmetic_is_logical():
    true, false = np.bool_(True), np.bool_(False)
    assert FUNCTIONS["add"].reference(true, true) == true
    assert FUNCTIONS["mul"].reference(true, false) == false
    assert FUNCTIONS["not"].reference(true) == false
    assert COMPARE["lt"](false, true)


def test_every_dtype_has_a_numpy_dtype():
    assert {t.numpy.itemsize for t in DTYPES.values()} == {1, 2, 4, 8, 16}
