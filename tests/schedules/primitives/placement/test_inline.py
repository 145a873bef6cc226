"""Tests of compute_inline and reverse_compute_inline."""

from tilewright.schedules.primitives.placement.compute_inline import ComputeInline
from tilewright.schedules.primitives.placement.reverse_compute_inline import ReverseComputeInline

from tests.schedules.helpers import CHAIN, MATMUL, rejected, schedule

TRANSPOSED = """
@prim_func
def transposed(x: Buffer[(4, 8), i32], y: Out[(8, 4), i32]):
    t = alloc((8, 4), i32)
    for i in range(8):
        for j in range(4):
            with block("turn"):
                vi, vj = spatial(i), spatial(j)
                t[vi, vj] = x[vj, vi] + vi
    for a in range(8):
        for b in range(4):
            with block("double"):
                va, vb = spatial(a), spatial(b)
                y[va, vb] = t[va, vb] * 2
"""

PART = """
@prim_func
def part(x: Buffer[(8,), i32], y: Out[(4,), i32]):
    t = alloc((8,), i32)
    for i in range(4):
        with block("first"):
            vi = spatial(4, i)
            t[vi] = x[vi]
    for j in range(4):
        with block("second"):
            vj = spatial(j)
            y[vj] = t[vj]
"""

OVERWRITTEN = """
@prim_func
def overwritten(x: InOut[(8,), i32], y: Out[(8,), i32]):
    t = alloc((8,), i32)
    for i in range(8):
        with block("first"):
            vi = spatial(i)
            t[vi] = x[vi]
    for k in range(8):
        with block("clear"):
            vk = spatial(k)
            x[vk] = 0
    for j in range(8):
        with block("second"):
            vj = spatial(j)
            y[vj] = t[vj] + x[vj]
"""


def test_compute_inline(golden):
    sch = schedule(CHAIN)
    first, t = sch.get_block("first"), sch.get_buffer("t")
    sch.compute_inline(first)
    sch.compute_inline("second")
    golden("compute_inline.txt", str(sch))
    assert sch.state.follow(first) == ()
    assert sch.state.follow(t) == ()
    assert sch.verify().required().compared[0].exact


def test_reverse_compute_inline(golden):
    sch = schedule(TRANSPOSED)
    sch.reverse_compute_inline("double")
    golden("reverse_compute_inline.txt", str(sch))
    assert sch.verify().required().compared[0].exact


def test_requirements_of_compute_inline():
    sch = schedule(MATMUL)
    rejected(sch, ComputeInline(sch.get_block("mm")), 1, "not spatial (kinds: spatial, reduce)")
    chain = schedule(CHAIN)
    rejected(chain, ComputeInline(chain.get_block("third")), 2, "is a parameter")
    text = CHAIN.replace("u[vj] = t[vj] * x[vj]", "u[vj] = x[vj]")
    unread = schedule(text)
    rejected(unread, ComputeInline(unread.get_block("first")), 4, "no block reads 't'")
    part = schedule(PART)
    rejected(
        part,
        ComputeInline(part.get_block("first")),
        3,
        "has extent 4, but it indexes a dimension of 't' of size 8",
    )
    old = schedule(OVERWRITTEN)
    rejected(
        old, ComputeInline(old.get_block("first")), 5, "'clear' writes input 'x' of the producer"
    )


def test_requirements_of_reverse_compute_inline():
    sch = schedule(MATMUL)
    rejected(sch, ReverseComputeInline(sch.get_block("mm")), 1, "not spatial")
    copy = sch.cache_write("mm", "C", "local")
    rejected(sch, ReverseComputeInline(copy), 3, "'mm' does not store exactly one element")
    chain = schedule(CHAIN)
    rejected(chain, ReverseComputeInline(chain.get_block("first")), 2, "0 temporaries")
    text = CHAIN.replace("y[vk] = u[vk] - x[vk]", "y[vk] = u[n - 1 - vk]")
    turned = schedule(text)
    rejected(
        turned,
        ReverseComputeInline(turned.get_block("third")),
        4,
        "expected its iteration variables",
    )
    text = TRANSPOSED.replace("y[va, vb] = t[va, vb]", "y[va, vb] = t[va, va]").replace(
        "t = alloc((8, 4)", "t = alloc((8, 8)"
    )
    diagonal = schedule(text)
    rejected(diagonal, ReverseComputeInline(diagonal.get_block("double")), 4, "(va, va)")
    part = schedule(PART)
    rejected(part, ReverseComputeInline(part.get_block("second")), 4, "has extent 4")
    old = schedule(OVERWRITTEN)
    rejected(old, ReverseComputeInline(old.get_block("second")), 5, "violate a dependence on 'x'")
    text = TRANSPOSED.replace("y: Out[(8, 4), i32]", "y: Out[(8,), i32]").replace(
        "y[va, vb]", "y[va]"
    )
    last = schedule(text)
    rejected(last, ReverseComputeInline(last.get_block("double")), 6, "are not injective in vb")
