from tilewright.schedules.primitives.loops.fuse import Fuse

from tests.schedules.helpers import CHAIN, MATMUL, rejected, schedule

TRIANGLE = """
@prim_func
def triangle(x: Buffer[(8,), i32], y: Out[(8, 8), i32]):
    for i in range(8):
        for j in range(i + 1):
            with block("lower"):
                vi, vj = spatial(i), spatial(8, j)
                y[vi, vj] = x[vi]
"""


def test_three_loops_become_one(golden):
    sch = schedule(MATMUL)
    loops = sch.get_loops(sch.get_block("mm"))
    fused = sch.fuse(loops)
    golden("fuse.txt", str(sch))
    assert all(sch.state.follow(loop) == (fused,) for loop in loops)
    assert sch.verify().required().compared[0].exact


def test_origins_are_united():
    sch = schedule(MATMUL)
    i, j, _ = sch.get_loops(sch.get_block("mm"))
    loops = [sch.state.loop(r) for r in (i, j)]
    ref = sch.fuse((i, j))
    fused = sch.state.loop(ref)
    assert fused.origins == loops[0].origins | loops[1].origins


def test_requirements():
    sch = schedule(MATMUL)
    i, j, k = sch.get_loops(sch.get_block("mm"))
    rejected(sch, Fuse((i,)), Fuse.Requires.DIFFERENT_LOOPS, "at least two")
    rejected(sch, Fuse((i, i)), Fuse.Requires.DIFFERENT_LOOPS, "different")
    rejected(sch, Fuse((i, k)), Fuse.Requires.PERFECT_NEST, "not the whole body")
    rejected(sch, Fuse((j, i)), Fuse.Requires.PERFECT_NEST, "not the whole body")
    sch.unroll(k)
    rejected(sch, Fuse((j, k)), Fuse.Requires.SERIAL, "is unrolled")
    other = schedule(TRIANGLE)
    rejected(
        other,
        Fuse(other.get_loops(other.get_block("lower"))),
        Fuse.Requires.INDEPENDENT_EXTENTS,
        "depends on i",
    )
    chain = schedule(CHAIN)
    first, second = (chain.get_loops(chain.get_block(b))[0] for b in ("first", "second"))
    rejected(chain, Fuse((first, second)), Fuse.Requires.PERFECT_NEST, "not the whole body")


def test_suggested_with_the_loop_inside():
    sch = schedule(MATMUL)
    i, j, _ = sch.get_loops(sch.get_block("mm"))
    assert Fuse((i, j)) in [c.step for c in sch.suggest(i)]
