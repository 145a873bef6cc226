"""Excerpts of a program around the targets of handles."""

from tilewright.schedules import BindingRef, BlockRef, BufferRef, FunctionRef, LoopRef
from tilewright.schedules.excerpts import excerpts_of

from tests.schedules.helpers import CHAIN, MATMUL, schedule

GRAPH = """
@graph_func
def main(x: Tensor[(4, 8), f32]):
    y = relu(x)
    z = exp(y)
    return z
"""


def marked(sch, *where):
    """Return the underlined words with their lines, of all excerpts."""
    found = []
    for excerpt in excerpts_of(sch.module, where):
        lines = dict(excerpt.lines)
        found += [(m.line, lines[m.line][m.column - 1 : m.end - 1]) for m in excerpt.marks]
    return found


def test_definitions_of_loops_blocks_and_buffers():
    sch = schedule(MATMUL)
    assert marked(sch, sch.get_loop("k")) == [(7, "k")]
    assert marked(sch, sch.get_block("mm")) == [(8, "mm")]
    assert marked(sch, sch.get_buffer("B")) == [(4, "B")]


def test_uses_of_a_buffer_inside_a_block():
    sch = schedule(CHAIN)
    second, t = sch.get_block("second"), sch.get_buffer("t")
    assert marked(sch, second, t) == [(12, "second"), (14, "t")]
    first = sch.get_block("first")
    assert marked(sch, second, first, t) == [(8, "first"), (10, "t"), (12, "second")]


def test_uses_of_a_buffer_inside_a_loop():
    sch = schedule(CHAIN)
    assert marked(sch, sch.get_loop("j"), sch.get_buffer("u")) == [(11, "j"), (14, "u")]


def test_the_definition_of_a_buffer_that_the_block_does_not_use():
    sch = schedule(CHAIN)
    assert marked(sch, sch.get_block("first"), sch.get_buffer("u")) == [(6, "u"), (8, "first")]


def test_the_name_of_a_function():
    sch = schedule(MATMUL)
    assert marked(sch, FunctionRef("matmul")) == [(4, "matmul")]
    assert marked(sch, LoopRef("matmul", 10**6, "q")) == [(4, "matmul")]
    assert marked(sch, FunctionRef("absent"), LoopRef("absent", 1, "i")) == []


def test_one_excerpt_per_function():
    sch = schedule(MATMUL + CHAIN)
    i, t = sch.get_loop("i", "matmul"), sch.get_buffer("t", "chain")
    assert [x.function for x in excerpts_of(sch.module, (i, t))] == ["matmul", "chain"]


def test_bindings():
    sch = schedule(GRAPH)
    (z,) = (b.value for b in sch.module.graph("main").bindings if b.value.name == "z")
    assert marked(sch, BindingRef("main", z.uid, "z")) == [(4, "z")]


def test_handles_without_a_target_are_ignored():
    sch = schedule(MATMUL)
    absent = (BlockRef("matmul", 10**6), BufferRef("matmul", 10**6))
    assert marked(sch, *absent, sch.get_loop("j")) == [(6, "j")]
