"""Tests of cache_read and cache_write."""

from tilewright.schedules.coerce import index_map
from tilewright.schedules.primitives.caching.cache_read import CacheRead
from tilewright.schedules.primitives.caching.cache_write import CacheWrite

from tests.schedules.helpers import CHAIN, MATMUL, rejected, schedule

IN_PLACE = """
@prim_func
def twice(x: InOut[(8,), i32]):
    for i in range(8):
        with block("double"):
            vi = spatial(i)
            x[vi] = x[vi] + x[vi]
"""

HOLES = """
@prim_func
def holes(x: Buffer[(8,), i32], y: Out[(16,), i32]):
    for i in range(16):
        with block("zero"):
            vz = spatial(i)
            y[vz] = 0
"""

EVEN = """
@prim_func
def even(x: Buffer[(8,), i32], y: InOut[(16,), i32]):
    for i in range(8):
        with block("spread"):
            vi = spatial(i)
            y[vi * 2] = x[vi]
"""


def test_cache_read_copies_before_the_block(golden):
    sch = schedule(MATMUL)
    copy = sch.cache_read("mm", "B", "global")
    assert copy.name == "copy_B"
    golden("cache_read.txt", str(sch))
    assert sch.verify().required().compared[0].exact


def test_the_copy_is_inside_a_loop_of_the_producer():
    sch = schedule(CHAIN)
    second = sch.get_block("second")
    (j,) = sch.get_loops(second)
    sch.compute_at("first", j)
    copy = sch.cache_read(second, "t", "local")
    assert j in sch.get_loops(copy)
    assert sch.verify().ok


def test_cache_write_copies_after_the_block(golden):
    sch = schedule(MATMUL)
    mm = sch.get_block("mm")
    i, j, _ = sch.get_loops(mm)
    i0, _ = sch.split(i, factors=(None, 14))
    sch.split(j, factors=(None, 8))
    copy = sch.cache_write(mm, "C", "local")
    sch.reverse_compute_at(copy, i0)
    golden("cache_write.txt", str(sch))
    assert sch.verify().required().compared[0].exact


def test_requirements_of_cache_read():
    sch = schedule(MATMUL)
    mm, c, b = sch.get_block("mm"), sch.get_buffer("C"), sch.get_buffer("B")
    rejected(
        sch, CacheRead(mm, b, "cellar"), CacheRead.Requires.SCOPE_EXISTS, "no memory scope 'cellar'"
    )
    rejected(sch, CacheRead(mm, c), CacheRead.Requires.ONLY_READS_BUFFER, "also writes 'C'")
    chain = schedule(CHAIN)
    first, u = chain.get_block("first"), chain.get_buffer("u")
    rejected(chain, CacheRead(first, u), CacheRead.Requires.READS_BUFFER, "it reads x")


def test_requirements_of_cache_write():
    sch = schedule(MATMUL)
    mm, c, a = sch.get_block("mm"), sch.get_buffer("C"), sch.get_buffer("A")
    rejected(sch, CacheWrite(mm, a), CacheWrite.Requires.WRITES_BUFFER, "it writes C")
    rejected(sch, CacheWrite(mm, c, "cellar"), CacheWrite.Requires.SCOPE_EXISTS)
    *_, k = sch.get_loops(mm)
    sch.decompose_reduction(mm, k)
    rejected(sch, CacheWrite(mm, c), CacheWrite.Requires.ONLY_WRITER, "also written by mm_init")
    twice = schedule(IN_PLACE)
    rejected(
        twice,
        CacheWrite(twice.get_block("double"), twice.get_buffer("x")),
        CacheWrite.Requires.IGNORES_OLD_CONTENTS,
    )
    even = schedule(EVEN)
    rejected(
        even,
        CacheWrite(even.get_block("spread"), even.get_buffer("y")),
        CacheWrite.Requires.WRITES_WHOLE_BOX,
        "does not provably write every element",
    )
    holes = schedule(HOLES)
    assert not holes.check(CacheWrite(holes.get_block("zero"), holes.get_buffer("y")))


def test_suggested_for_accessed_buffers():
    sch = schedule(MATMUL)
    steps = {c.step.title() for c in sch.suggest(sch.get_block("mm")) if c.applicable}
    assert "cache_read(block=mm, buffer=A, scope='local')" in steps
    assert "cache_write(block=mm, buffer=C, scope='local')" in steps


def test_a_copy_in_another_layout():
    sch = schedule(MATMUL)
    sch.cache_read("mm", "B", "global", "lambda a, b: (b // 8, a, b % 8)")
    assert sch.trace[-1].decisions == {"padded": False}
    assert [str(d) for d in sch.state.buffer(sch.get_buffer("B_global")).shape] == ["3", "16", "8"]
    assert sch.verify().required().compared[0].exact
    mm, buffer = sch.get_block("mm"), sch.get_buffer("A")
    crossed = index_map("lambda a, b: (a + b,)", {})
    rejected(
        sch,
        CacheRead(mm, buffer, "global", crossed),
        CacheRead.Requires.LEGAL_INDEX_MAP,
        "is not injective in",
    )
