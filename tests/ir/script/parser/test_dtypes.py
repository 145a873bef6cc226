"""Errors about the dtypes of element expressions."""

from __future__ import annotations

import pytest

from tilewright.ir.script import ScriptTypeError, parse

HEAD = (
    "@prim_func\n"
    "def f(x: Buffer[(8,), f32], h: Buffer[(8,), f16], w: Buffer[(8,), i32], "
    "c: Buffer[(8,), bool], y: Out[(8,), f32]):\n"
    "    for i in range(8):\n"
)

# The statement, a part of the message, the underlined part, a part of the hint.
MISTAKES = [
    ("y[i] = x[i] * w[i]", "mul is not defined for dtypes f32 and i32", "x[i] * w[i]", "f32(w[i])"),
    ("y[i] = w[i] + x[i]", "add is not defined for dtypes i32 and f32", "w[i] + x[i]", "f32(w[i])"),
    ("y[i] = h[i] - x[i]", "sub is not defined for dtypes f16 and f32", "h[i] - x[i]", "f32(h[i])"),
    ("y[i] = exp(f32(i) * w[i])", "dtypes f32 and i32", "f32(i) * w[i]", "f32(w[i])"),
    ("y[i] = exp(w[i])", "exp is not defined for dtype i32", "exp(w[i])", "floating-point"),
    ("y[i] = max(x[i], w[i])", "max is not defined for", "max(x[i], w[i])", "f32(w[i])"),
    ("y[i] = x[i] << 2.0", "shl is not defined for", "x[i] << 2.0", "integer"),
    ("y[i] = f32(not x[i])", "not is not defined for dtype f32", "not x[i]", "dtype bool"),
    ("y[i] = where(x[i], 1.0, 2.0)", "must have dtype bool", "where(", "x[i] != 0"),
    ("y[i] = where(c[i], x[i], w[i])", "must have the same dtype", "where(", "f32(w[i])"),
    ("y[i] = where(x[i] < w[i], 1.0, 2.0)", "comparison lt", "x[i] < w[i]", "f32(w[i])"),
    ("y[i] = w[i]", "a value of dtype i32 is stored in buffer 'y'", "w[i]", "f32(w[i])"),
    ("y[i] += w[i]", "add is not defined for dtypes f32 and i32", "w[i]", "f32(w[i])"),
    ("y[i] = f32(i8(300))", "number 300 is not a value of dtype i8", "300", "dtype i8"),
    (
        "y[i] = f32(f8_e4m3(-inf))",
        "-inf is not a value of dtype f8_e4m3: its largest is 448.0",
        "-inf",
        "dtype f8_e4m3",
    ),
    ("y[i] = f32(f8_e4m3(465.0))", "465.0 is not a value of dtype f8_e4m3", "465.0", "f8_e4m3"),
]


@pytest.mark.parametrize(
    ("text", "words", "part", "hint"), MISTAKES, ids=[text for text, *_ in MISTAKES]
)
def test_a_mistake_is_underlined_with_a_cast(text: str, words: str, part: str, hint: str) -> None:
    with pytest.raises(ScriptTypeError) as caught:
        parse(f"{HEAD}        {text}")
    error = caught.value
    assert words in error.message
    assert error.location.text[error.column - 1 :].startswith(part)
    assert hint in error.hint


COMPLEX = (
    "@prim_func\n"
    "def f(x: Buffer[(8,), c64], z: Buffer[(8,), c128], w: Buffer[(8,), f32], y: Out[(8,), c64], "
    "r: Out[(8,), f32], k: Out[(8,), i64], b: Out[(8,), bool]):\n"
    "    for i in range(8):\n"
)

COMPLEX_MISTAKES = [
    ("b[i] = x[i] < x[i]", "comparison lt is not defined for dtypes c64", "x[i] <", "no order"),
    ("y[i] = max(x[i], 1.0)", "max is not defined for dtypes c64", "max(", "abs(x)"),
    ("y[i] = x[i] % x[i]", "mod is not defined for dtypes c64", "x[i] %", "requires real numbers"),
    ("y[i] = floor(x[i])", "floor is not defined for dtype c64", "floor(", "real(x)"),
    ("k[i] = i64(x[i])", "c64 is not converted to dtype i64", "x[i])", "real(x[i])"),
    ("b[i] = bool(x[i])", "c64 is not converted to dtype bool", "x[i])", "real(x[i])"),
    ("r[i] = x[i]", "c64 is stored in buffer 'r'", "x[i]", "real(x[i]), imag(x[i]), or abs(x[i])"),
    ("y[i] = x[i] * w[i]", "mul is not defined for dtypes c64 and f32", "x[i] *", "c64(w[i])"),
    ("y[i] = x[i] * z[i]", "mul is not defined for dtypes c64 and c128", "x[i] *", "c128(x[i])"),
    ("y[i] = complex(w[i], x[i])", "dtypes f32 and c64", "complex(", "f32 or f64"),
    ("y[i] = complex(f16(0.0), f16(w[i]))", "dtypes f16 and f16", "complex(", "f32 or f64"),
    ("r[i] = real(w[i])", "real is not defined for dtype f32", "real(", "complex dtype"),
    ("r[i] = 1j", "expected f32, got 1.0j", "1j", "c64 and c128"),
    ("k[i] = reinterpret(x[i], i64)", "reinterpret is not defined", "reinterpret(", "imag(x)"),
]


@pytest.mark.parametrize(("text", "words", "part", "hint"), COMPLEX_MISTAKES)
def test_a_mistake_with_complex_numbers(text: str, words: str, part: str, hint: str) -> None:
    with pytest.raises(ScriptTypeError) as caught:
        parse(f"{COMPLEX}        {text}")
    error = caught.value
    assert words in error.message
    assert error.location.text[error.column - 1 :].startswith(part)
    assert hint in error.hint


def test_an_index_of_a_complex_number_is_rejected() -> None:
    text = COMPLEX + "        with checked(x[i], 0, 8) as q:\n            y[i] = x[q]"
    with pytest.raises(ScriptTypeError, match="expected an integer dtype"):
        parse(text)


@pytest.mark.parametrize(
    "value", ["1j", "2.0 + 1j", "c64(2)", "c64(1j)", "-1j * x[i]", "complex(w[i], -0.0)", "c64(i)",
              "x[i] + 3", "c64(z[i]) - 0.5", "where(x[i] == 1j, conj(x[i]), exp(x[i]) / x[i])"]
)  # fmt: skip
def test_complex_values_survive_a_round_trip(value: str) -> None:
    text = f"{COMPLEX}        y[i] = {value}\n        r[i] = abs(x[i]) + angle(x[i])\n"
    made = parse(text + "        k[i] = i\n        b[i] = x[i] != 2j")
    assert str(parse(str(made))) == str(made)


def test_casts_make_the_program_legal() -> None:
    text = f"{HEAD}        y[i] = x[i] * f32(w[i]) + f32(h[i])"
    assert parse(text).prim("f").name == "f"


def test_an_index_of_a_float_is_rejected() -> None:
    text = HEAD + "        with checked(x[i], 0, 8) as q:\n            y[i] = x[q]"
    with pytest.raises(ScriptTypeError, match="expected an integer dtype"):
        parse(text)


@pytest.mark.parametrize("value", ["x[i] * 0.25 + complex(0.5, 0.125)", "complex(1.0, 2.0) - x[i]"])
def test_a_complex_number_of_literals_has_the_dtype_of_the_other_operand(value: str) -> None:
    text = f"{COMPLEX}        y[i] = x[i]\n        r[i] = abs({value})\n"
    made = str(parse(text + "        k[i] = i\n        b[i] = x[i] != 2j"))
    assert "complex(" in made
    assert str(parse(made)) == made
