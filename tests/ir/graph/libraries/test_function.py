"""Definitions of library functions, and checks of their calls."""

from __future__ import annotations

import re
from typing import Any

import pytest

import tilewright as tw
from tilewright.ir.dtype import f32
from tilewright.ir.graph.builder import GraphBuilder
from tilewright.ir.graph.libraries import (
    LIBRARY_FUNCTIONS,
    LibraryFunction,
    UnknownLibraryFunctionError,
    get_library_function,
    library_function,
)
from tilewright.ir.graph.libraries.function import LibraryDefinitionError
from tilewright.ir.graph.nodes import TensorInfo
from tilewright.ir.graph.operators import OperandError
from tilewright.ir.graph.operators.signature import AttributeSpec, Signature
from tilewright.ir.script import parse
from tilewright.ir.symbolic import as_expr
from tilewright.ir.verify import IllFormedProgramError, violations

PROGRAM = """
n = symbols("n", lower=0)

@graph_func
def main(a: Tensor[(n, 4), f32], b: Tensor[(4, 4), f32], p: Tensor[(8,), i4]):
    y: Tensor[({shape}), {dtype}] = call_library({call})
    return y
"""


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ('"blas.sgemm", a', "expected 2 to 3 operands, got 1"),
        ('"blas.sgemm", a, b, gamma=1.0', "no attribute 'gamma'"),
        ('"blas.sgemm", a, b, alpha=True', "attribute 'alpha' must be a float, got True"),
        ('"blas.sgemm", b, b, beta=1.0', "beta is not 0, but operand 'c' is missing"),
        ('"blas.dgemm", a, b', "expected dtype f64, got f32"),
        ('"blas.sgemm", a, p', "expected a floating-point dtype, got i4"),
        ('"std.sort", p', "elements of dtype i4 are packed"),
        ('"std.sort", a', "expected 2 outputs, got 1"),
    ],
)
def test_wrong_calls_are_violations(call: str, message: str) -> None:
    with pytest.raises(IllFormedProgramError, match=re.escape(message)):
        parse(PROGRAM.format(call=call, shape="n, 4", dtype="f32"))


def test_a_wrong_annotation_is_a_violation() -> None:
    text = PROGRAM.format(call='"blas.sgemm", b, b', shape="5, 4", dtype="f32")
    with pytest.raises(IllFormedProgramError, match=r"output 0 of 'blas\.sgemm'"):
        parse(text)


def test_a_correct_call_has_no_violations() -> None:
    text = PROGRAM.format(call='"blas.sgemm", a, b, alpha=2.0', shape="n, 4", dtype="f32")
    assert violations(parse(text)) == ()
    assert violations(parse(text.replace("blas.sgemm", "some.function"))) == ()


def test_unknown_names_are_reported_with_similar_ones() -> None:
    with pytest.raises(UnknownLibraryFunctionError) as error:
        get_library_function("blas.sgem")
    assert "'blas.sgemm'" in error.value.hint


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"symbol": "f"}, "symbol 'f' needs the path of its shared library"),
        ({"attributes": {"mode": "fast"}}, "attribute 'mode' has the default value 'fast'"),
        (
            {"attributes": [AttributeSpec("mode", "str", "fast")]},
            "attribute 'mode' of type str cannot be passed",
        ),
        (
            {"attributes": [AttributeSpec("axes", "ints", (1,))]},
            "attribute 'axes' of type ints cannot be passed",
        ),
    ],
)
def test_invalid_definitions(options: dict[str, Any], message: str) -> None:
    with pytest.raises(LibraryDefinitionError, match=message):
        library_function("test.invalid", lambda x: x, **options)
    assert "test.invalid" not in LIBRARY_FUNCTIONS


def test_a_reference_that_is_not_a_function() -> None:
    with pytest.raises(LibraryDefinitionError, match="got int"):
        library_function("test.invalid", 3)  # type: ignore[arg-type]


def test_a_program_without_a_shared_library() -> None:
    (reference,) = parse(
        "@prim_func\ndef f(x: Buffer[(4,), f32], y: Out[(4,), f32]):\n"
        "    for i in range(4):\n        y[i] = x[i]\n"
    ).prims
    with pytest.raises(LibraryDefinitionError, match="needs the path of a shared library"):
        library_function("test.invalid", reference)


def test_attributes_are_words() -> None:
    specs = (
        AttributeSpec("size", "int", 3),
        AttributeSpec("fast", "bool", default=False),
        AttributeSpec("mode", "str", "b", ("a", "b", "c")),
        AttributeSpec("by", "float", 1.0),
    )
    function = LibraryFunction("test.words", lambda: None, Signature((), specs))
    words = function.encoded({"size": -2, "mode": "c", "by": -1.5})
    assert words == (-2, 0, 2, -0x4008000000000000)
    decoded = {"size": -2, "fast": False, "mode": "c", "by": -1.5}
    assert function.decoded(words) == decoded
    assert function.values({"mode": "a"}) == {"size": 3, "fast": False, "mode": "a", "by": 1.0}


def test_a_builder_deduces_the_outputs() -> None:
    graph = GraphBuilder("main")
    x = graph.param("x", TensorInfo((as_expr(3), as_expr(4)), f32))
    values, positions = graph.library("std.sort", x, descending=True)
    assert (str(values.info), str(positions.info)) == ("Tensor[(3, 4), f32]", "Tensor[(3, 4), i64]")
    tw.library_function("test.open", lambda x: x)
    with pytest.raises(OperandError, match="outputs of the library function are not deduced"):
        graph.library("test.open", x)
