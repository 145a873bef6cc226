"""Lookups of blocks of other names: by the recorded form, and by their position among equals."""

from __future__ import annotations

from tilewright.ir.script import parse
from tilewright.schedules import Schedule, from_python, to_python
from tilewright.schedules.renaming import Renamed

CHAIN = """
@prim_func
def f(x: Buffer[(8,), f32], y: Out[(8,), f32]):
    t = alloc((8,), f32)
    u = alloc((8,), f32)
    for i in range(8):
        with block("{0}"):
            vi = spatial(i)
            t[vi] = x[vi] + 1.0
    for j in range(8):
        with block("{1}"):
            vj = spatial(j)
            u[vj] = t[vj] + 2.0
    for k in range(8):
        with block("{2}"):
            vk = spatial(k)
            y[vk] = max(u[vk], 0.0)
"""


def schedule(*names: str) -> Schedule:
    return Schedule(parse(CHAIN.format(*names)))


def test_the_block_of_the_same_form_and_position() -> None:
    sch = schedule("a", "b", "c")
    sch.unroll(sch.get_loops(sch.get_block("b"))[0])
    sch.vectorize(sch.get_loops(sch.get_block("c"))[0])
    other = schedule("p", "q", "r")
    outcome = other.replay(sch.trace)
    assert outcome.complete
    assert outcome.renamed == (Renamed(0, "get_block", "b", "q"), Renamed(3, "get_block", "c", "r"))
    kinds = {x.var.name: x.kind for x in other.state.tree("f").loops.values()}
    assert kinds == {"i": "serial", "j": "unrolled", "k": "vectorized"}


def test_an_existing_name_is_used_whatever_its_form() -> None:
    sch = schedule("a", "b", "c")
    sch.get_block("b")
    outcome = schedule("b", "a", "c").replay(sch.trace)
    assert outcome.complete
    assert outcome.renamed == ()


def test_without_a_form_several_blocks_are_not_guessed() -> None:
    sch = schedule("a", "b", "c")
    sch.get_block("b")
    read = from_python(to_python(sch.trace))
    outcome = schedule("p", "q", "r").replay(read)
    assert "no block 'b'" in str(outcome.error)
    assert schedule("p", "q", "r").replay(read, names={"b": "q"}).complete


def test_a_form_that_does_not_exist_is_reported() -> None:
    sch = schedule("a", "b", "c")
    sch.get_block("c")
    text = CHAIN.format("p", "q", "r").replace("max(u[vk], 0.0)", "u[vk] * 2.0")
    assert "no block 'c'" in str(Schedule(parse(text)).replay(sch.trace).error)
