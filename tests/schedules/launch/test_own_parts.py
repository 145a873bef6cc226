"""Loops whose iterations write different elements of a temporary."""

from __future__ import annotations

import pytest

from tilewright.codegen.lower import lower_kernel
from tilewright.codegen.lower.passes.compact_buffers import CompactBuffers
from tilewright.ir.analysis import tree_of
from tilewright.ir.analysis.occurrences import occurrences
from tilewright.ir.loop.nodes import PrimFunc
from tilewright.ir.script import parse
from tilewright.ir.thread.text import to_text
from tilewright.schedules import Schedule
from tilewright.schedules.launch.own_parts import writes_own_part
from tilewright.schedules.launch.realize_blocks import RealizeBlocks
from tilewright.target.target import Target

CPU = Target("cpu", features=("avx2",))

TWO = """
m, n = symbols("m n", lower=1)
@prim_func(scheduled=True)
def f(x: Buffer[(n, m), f32], y: Out[(n, m), f32]):
    {outside}
    for i in {kind}(n):
        {inside}
        for j in range(m):
            with block("a"):
                vi, vj = spatial(i), spatial(j)
                t[{first}] = x[vi, vj]
        for k in range({size}):
            with block("b"):
                ui, uk = spatial(n, i), spatial(m, k)
                t[{second}] = x[ui, uk] * 2.0
        for l in range(m):
            with block("c"):
                wi, wl = spatial(i), spatial(l)
                y[wi, wl] = t[{read}]
"""


def two(first: str, second: str, shape: str, size: str = "m", kind: str = "parallel") -> str:
    """Return a program with two writes of a temporary in each iteration."""
    read = first.replace("vi", "wi").replace("vj", "wl")
    return TWO.format(
        outside=f"t = alloc({shape}, f32)", inside="", kind=kind, first=first, second=second,
        size=size, read=read,
    )  # fmt: skip


def realized(text: str) -> PrimFunc:
    """Return a function whose indices are terms of loops."""
    return RealizeBlocks().run(parse(text, check=False).prim("f"), CPU)


WRITES = [
    ("rows", two("vi, vj", "ui, uk", "(n, m)"), True),
    ("row and column", two("vi, vj", "ui, m - 1 - uk", "(n, m)"), True),
    ("parts of a line", two("vi * m + vj", "ui * m + uk", "(n * m,)"), True),
    ("a shorter part", two("vi * m + vj", "ui * m + uk", "(n * m,)", "m // 2"), True),
    ("shifted rows", two("vi, vj", "ui + 1, uk", "(n + 1, m)"), False),
    ("shifted parts", two("vi * m + vj", "(ui + 1) * m + uk", "(n * m + m,)"), False),
    ("columns", two("0, vj", "0, uk", "(1, m)"), False),
]


@pytest.mark.parametrize(("text", "expected"), [w[1:] for w in WRITES], ids=[w[0] for w in WRITES])
def test_iterations_that_write_different_elements(text: str, expected: bool):
    tree = tree_of(realized(text))
    accesses = [a for a in occurrences(tree.function.body) if a.buffer.name == "t"]
    loop = next(x for x in tree.loops.values() if x.var.name == "i")
    assert writes_own_part(loop, accesses, tree) is expected


def test_workers_do_not_share_elements_that_two_iterations_write():
    for inside in (False, True):
        text = two("vi * m + vj", "(ui + 1) * m + uk", "(n * m + m,)")
        if inside:
            line = "t = alloc((n * m + m,), f32)"
            text = text.replace(f"    {line}\n", "").replace("        \n", f"        {line}\n")
        func = CompactBuffers().run(realized(text), CPU)
        assert [b.scope for b in func.buffers] == ["local"]


def test_workers_share_a_large_temporary_of_which_each_writes_a_part():
    line = "t = alloc((n * m,), f32)"
    text = two("vi * m + vj", "ui * m + uk", "(n * m,)")
    text = text.replace(f"    {line}\n", "").replace("        \n", f"        {line}\n")
    func = CompactBuffers().run(realized(text), CPU)
    assert [b.scope for b in func.buffers] == ["global"]


COPY = """
@prim_func
def f(x: Buffer[(64, 64), f32], y: Out[(64, 64), f32]):
    for i in range(64):
        for j in range(64):
            with block("w"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, vj] * 2.0
"""


def test_lanes_that_write_different_elements_are_a_vector():
    sch = Schedule(parse(COPY))
    _, lane = sch.split("j", factors=(None, 8))
    sch.cache_read("w", "x", "local")
    sch.compute_at("copy_x", lane)
    sch.vectorize(lane)
    assert "x_local[0]: f32x8 = " in to_text(lower_kernel(sch.module.prim("f"), CPU).function)


def test_threads_that_write_different_elements_of_shared_memory_use_one_array():
    sch = Schedule(parse(COPY), Target("simt", arch="sm_90a"))
    sch.split("i", factors=(None, 8))
    _, column = sch.split("j", factors=(None, 8))
    sch.reorder("i_0", "j_0", "i_1", column)
    sch.cache_read("w", "x", "shared")
    sch.compute_at("copy_x", "i_1")
    sch.bind("i_0", "blockIdx.y")
    sch.bind("j_0", "blockIdx.x")
    sch.bind("i_1", "threadIdx.y")
    sch.bind(column, "threadIdx.x")
    sch.bind(sch.get_loops("copy_x")[-1], "threadIdx.x")
    text = to_text(lower_kernel(sch.module.prim("f"), Target("simt", arch="sm_90a")).function)
    assert "x_shared: ptr.shared = allocate(256, align=16)" in text
