"""Loops that do not start at 0 or may be empty, and unsupported statements."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ir.interpreter.loops import call_prim
from tilewright.ir.script import ParseError, parse

HEAD = 'n = symbols("n", lower=1)\n@prim_func\ndef f(x: Buffer[(n,), f32], y: Out[(n,), f32]):\n'


def error_of(body: str) -> ParseError:
    with pytest.raises(ParseError) as caught:
        parse(HEAD + "\n".join(f"    {line}" for line in body.splitlines()))
    return caught.value


LOOPS = [
    ("range(2, 16)", "range(14): and use i + 2 in place of i"),
    ("range(0, 16)", "range(16):"),
    ("range(0, n)", "range(n):"),
    ("range(1, n)", "range(n - 1): and use i + 1 in place of i"),
    ("range(n, n + 4)", "range(n + 4 - n): and use i + n in place of i"),
    ("range(n - 1, n)", "range(n - (n - 1)): and use i + n - 1 in place of i"),
    ("range(0, 16, 3)", "range(6): and use i * 3 in place of i"),
    ("range(1, n, 2)", "range(ceildiv(n - 1, 2)): and use i * 2 + 1 in place of i"),
    ("parallel(4, 8)", "parallel(4): and use i + 4 in place of i"),
    ("range(8, 2)", "range(0): and use i + 8 in place of i"),
]


@pytest.mark.parametrize(("loop", "fix"), LOOPS, ids=[loop for loop, _ in LOOPS])
def test_a_loop_that_does_not_start_at_zero(loop: str, fix: str) -> None:
    error = error_of(f"for i in {loop}:\n    y[i] = x[i]")
    assert error.message.endswith(f"got {loop}")
    assert error.hint == f"write for i in {fix}"
    assert "^" * len(loop) in str(error)


@pytest.mark.parametrize("number", ["9" * 500, "0x" + "f" * 5000])
def test_large_numbers_are_described(number: str) -> None:
    error = error_of(f"for i in range({number}, 16):\n    y[i] = x[i]")
    assert "loops start at 0" in error.message
    assert len(error.hint) < 200


def test_the_second_argument_of_a_thread_loop_is_its_axis() -> None:
    text = HEAD + '    for i in thread(n, "threadIdx.x"):\n        y[i] = x[i]'
    assert parse(text).prim("f").body.thread == "threadIdx.x"


STATEMENTS = [
    ("while n > 0: pass", "while", "for i in range(n)"),
    ("return y", "return", "Out parameters"),
    ("assert n > 0", "assert", "fact(condition)"),
    ("import os", "import", "names of the text format"),
    ("def g(): pass", "def", "beside each other"),
    ("t: f32 = 0.0", "assignment with annotation", "alloc"),
    ("y[0] //= 2.0", "loop-level function", "augmented assignments are"),
    ("y[0] = x[0] = 0.0", "several targets", "one assignment per buffer"),
    ("print(n)", "call of print", "statements are"),
    ("1 + 2", "loop-level function", "statements are"),
]


@pytest.mark.parametrize(("text", "word", "hint"), STATEMENTS, ids=[s[0] for s in STATEMENTS])
def test_unsupported_statements(text: str, word: str, hint: str) -> None:
    error = error_of(text)
    assert word in error.message
    assert hint in error.hint


ASSIGNED = [
    ("s = 0.0", "s = alloc((), f32)"),
    ("pid = tl.program_id(0)", 'for pid in thread(n, "blockIdx.x")'),
]


@pytest.mark.parametrize(("text", "hint"), ASSIGNED, ids=[a[0] for a in ASSIGNED])
def test_assignments_to_names(text: str, hint: str) -> None:
    assert hint in error_of(text).hint


@pytest.mark.parametrize(
    "program",
    [
        "@prim_func\ndef f(y: Out[(-4,), f32]):\n    for i in range(4):\n        y[i] = 0.0",
        "@prim_func\ndef f(y: Out[(4,), f32]):\n    t = alloc((2, -4), f32)\n    pass",
        "@graph_func\ndef f(x: Tensor[(-4,), f32]):\n    return x",
    ],
)
def test_a_negative_extent_of_a_shape(program: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(program)
    assert caught.value.message == "expected an extent of at least 0, got -4"
    assert str(caught.value).count("^") == len("-4")


def test_an_attribute_passed_as_a_value() -> None:
    with pytest.raises(ParseError) as caught:
        parse('@graph_func\ndef f(x: Tensor[(4,), f32]):\n    y = cast(x, "f16")\n    return y')
    assert caught.value.hint == "attributes are passed by name: y = cast(x, dtype='f16')"


@pytest.mark.parametrize(("name", "dtype"), [("bool", "bool"), ("f16", "f16"), ("int32", "i32")])
def test_a_dtype_as_an_attribute_is_a_string(name: str, dtype: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(
            "@graph_func\ndef f(x: Tensor[(4,), f32]):\n"
            f"    y = cast(x, dtype={name})\n    return y"
        )
    assert caught.value.message == f"a dtype as an attribute is a string, got {name}"
    assert caught.value.hint == f'write "{dtype}"'


def test_a_symbol_named_as_a_dtype_is_an_attribute() -> None:
    text = (
        'i8 = symbols("i8", lower=1)\n@prim_func\ndef f(y: Out[(i8,), f32]):\n'
        '    for i in range(i8):\n        with block("b", extent=i8):\n'
        "            v = spatial(i)\n            y[v] = 0.0"
    )
    assert "extent=i8" in str(parse(text).prims[0])


def test_a_dtype_of_an_annotation_is_a_name() -> None:
    with pytest.raises(ParseError) as caught:
        parse('@graph_func\ndef f(x: Tensor[(4,), "bool"]):\n    return x')
    assert caught.value.message == "expected the name of a dtype, got 'bool'"
    assert caught.value.hint == "write bool"


def test_an_operator_by_its_name_in_numpy() -> None:
    with pytest.raises(ParseError) as caught:
        parse("@graph_func\ndef f(x: Tensor[(4, 4), f32]):\n    y = transpose(x)\n    return y")
    assert caught.value.hint == "write permute_dims"


def test_an_empty_loop_of_a_constant_result_keeps_its_init_from_running():
    text = """
n = symbols("n", lower=0, upper=1)

@prim_func
def f(x: Buffer[(4, n), i32], z: InOut[(5,), i32]):
    for q in range(n * 4):
        with block("z"):
            vi, vr = spatial(5, q // 4), reduce(4, q % 4)
            with init():
                z[vi] = 5
            z[vi] += x[vr, 0]
"""
    module = parse(text)
    assert "if n > 0:\n        for q in range(n * 4):" in str(module)
    assert str(parse(str(module))) == str(module)
    for n, expected in enumerate((7, 9)):
        x, z = np.ones((4, n), np.int32), np.full(5, 7, np.int32)
        assert call_prim(module.prim("f"), (x, z))[-1].tolist() == [expected, 7, 7, 7, 7]
