"""The parts of a program that its artifact depends on."""

from __future__ import annotations

from tilewright.codegen.program_key import program_words
from tilewright.ir.graph.libraries import library_function
from tilewright.ir.script import parse

PROGRAM = """
@graph_func
def main(x: Tensor[(4,), f32], c: Tensor[(), bool]):
    if c:
        a: Tensor[(4,), f32] = call_library("test.key", x)
        y: Tensor[(4,), f32] = a
    else:
        b = relu(x)
        y = b
    return y
"""


def test_a_function_inside_of_a_branch_is_a_part_of_the_key() -> None:
    module = parse(PROGRAM)
    library_function("test.key", lambda x, *, by: x * by, attributes={"by": 1.0})
    first = program_words(module)
    assert "test.key" in first
    library_function("test.key", lambda x, *, by: x * by, attributes={"by": 2.0})
    assert program_words(module) != first


def test_names_are_a_part_of_the_key() -> None:
    module = parse(PROGRAM)
    assert program_words(module) != program_words(parse(PROGRAM.replace("x", "z")))
