import re

import numpy as np
import pytest

from tilewright.codegen import compile
from tilewright.ir.interpreter.loops import call_prim
from tilewright.ir.script import parse
from tilewright.ir.verify import violations
from tilewright.schedules import (
    Schedule,
    StepError,
    from_json,
    from_python,
    to_json,
    to_python,
)
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

COPY = """
n = symbols("n", lower=1)

@prim_func
def f(x: Buffer[(SIZE,), i32], y: Out[(SIZE,), i32]):
    for i in range(SIZE):
        with block("copy"):
            v = spatial(SIZE, i)
            y[v] = x[v]
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


@pytest.mark.parametrize("size", ["128", "127", "n"])
def test_rounds_of_split_and_fuse_keep_the_text_short(size):
    sch = schedule(COPY.replace("SIZE", size))
    lengths: list[int] = []
    for _ in range(50):
        sch.split(sch.get_loops("copy")[0], factors=(None, 2))
        sch.fuse(sch.get_loops("copy"))
        lengths.append(len(str(sch.module)))
    assert max(lengths) < len(COPY) + 200
    assert str(parse(str(sch.module))) == str(sch.module)
    assert sch.verify(runs=2).required().compared[0].exact


def test_long_names_stay_unique():
    sch = schedule(MATMUL)
    loops = sch.get_loops(sch.get_block("mm"))
    for _ in range(12):
        loops = sch.split(sch.fuse(loops), factors=(None, 2, 2))
    names = [loop.name for loop in sch.get_loops(sch.get_block("mm"))]
    assert len(set(names)) == len(names)
    assert max(map(len, names)) <= 44


def test_rounds_of_steps_replay_to_the_same_names():
    """12 rounds of split, reorder, and fuse of two loops, with a copy in each third round."""
    sch = schedule(MATMUL)
    i, j, _ = sch.get_loops("mm")
    for k in range(12):
        (a, b), (c, d) = (sch.split(loop, factors=(None, 2)) for loop in (i, j))
        sch.reorder((a, c, b, d))
        i, j = sch.fuse((a, c)), sch.fuse((b, d))
        if k % 3 == 0:
            sch.cache_read("mm", "A" + k // 3 * "_global", "global")
    words = re.findall(r"[A-Za-z_]\w*", str(sch.module))
    assert max(map(len, words)) <= 44
    assert str(parse(str(sch.module))) == str(sch.module)
    for trace in (from_json(to_json(sch.trace)), from_python(to_python(sch.trace))):
        other = schedule(MATMUL)
        assert not other.replay(trace).pending
        assert str(other.module) == str(sch.module)


def test_a_unit_reduction_with_a_loop_that_repeats_it_is_rejected():
    """The binding of the reduction is 0 afterwards, so its init would run in every iteration."""
    made = Schedule(
        parse("""
@prim_func
def f(x: Buffer[(4, 1), f32], y: Out[(4,), f32]):
    for i in range(4):
        for j in range(1):
            for r in range(3):
                with block("y"):
                    vi, vj = spatial(i), reduce(j)
                    with init(): y[vi] = 0.0
                    y[vi] += x[vi, vj]
""")
    )
    with pytest.raises(StepError) as caught:
        made.fuse(("j", "r"))
    assert caught.value.problems[0].requirement is Fuse.Requires.INIT_BEFORE_LOOPS


@pytest.mark.parametrize("loops", [("j", "k"), ("i", "j"), ("i", "j", "k")])
def test_an_empty_spatial_loop_remains_a_loop_of_the_init(loops):
    """A quotient of the fused variable is 0, and would not keep the init from running."""
    sch = schedule("""
@prim_func
def f(x: Buffer[(4, 16), f32], y: Out[(4, 0), f32]):
    for i in range(4):
        for j in range(0):
            for k in range(16):
                with block("y"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): y[vi, vj] = 0.0
                    y[vi, vj] += x[vi, vk]
""")
    sch.fuse(loops)
    assert violations(sch.module) == ()
    sch.verify()


SCORES = """
n = symbols("n", lower=0)

@prim_func
def f(q: Buffer[(n, 16), f32], k: Buffer[(n, 16), f32], y: Out[(n, 16), f32]):
    s = alloc((n, n), f32)
    for i in range(n):
        for j in range({extent}):
            for d in range(16):
                with block("s"):
                    vi, vj, vd = spatial(i), spatial(n, j), reduce(d)
                    with init(): s[vi, vj] = 0.0
                    s[vi, vj] += q[vi, vd] * k[vj, vd]
    for i2 in range(n):
        for e in range(16):
            for j2 in range({last}):
                with block("y"):
                    wi, we, wj = spatial(i2), spatial(e), reduce(n, j2)
                    with init(): y[wi, we] = 0.0
                    y[wi, we] += s[wi, wj] * k[wj, we]
"""


def scores_in_parallel_rows(extent, last):
    sch = schedule(SCORES.format(extent=extent, last=last))
    outer, _ = sch.split("i2", (None, 4))
    sch.compute_at("s", outer)
    sch.parallel(outer)
    _, i, j, d = sch.get_loops("s")
    return sch, i, j, d


@pytest.mark.parametrize(("extent", "last"), [("n", "n"), ("i + 1", "i2 + 1")])
def test_the_rows_of_a_temporary_in_a_parallel_loop_are_fused(extent, last):
    sch, i, j, _ = scores_in_parallel_rows(extent, last)
    sch.fuse(i, j)
    kernel = compile(sch.module)["f"]
    for n in (0, 1, 2, 3, 7, 17):
        q, k = np.random.default_rng(n).standard_normal((2, n, 16)).astype(np.float32)
        scores = q @ k.T if extent == "n" else np.tril(q @ k.T)
        np.testing.assert_allclose(kernel(q, k), scores @ k, rtol=2e-4, atol=1e-4)


def test_an_empty_loop_with_one_possible_value_remains_a_loop_of_the_init():
    text = """
n = symbols("n", lower=0, upper=1)

@prim_func
def f(x: Buffer[(4, n), i32], z: InOut[(5,), i32]):
    for q in range(n):
        for r in range(4):
            with block("z"):
                vi, vr = spatial(5, q), reduce(4, r)
                with init():
                    z[vi] = 5
                z[vi] += x[vr, 0]
"""
    sch = Schedule(parse(text))
    fused = sch.fuse(sch.get_loops("z"))
    assert violations(sch.module) == ()
    assert parse(str(sch.module)).prim("f") is not None
    sch.split(fused, (None, 2))
    for n, expected in enumerate(([7] * 5, [9, 7, 7, 7, 7])):
        x, z = np.ones((4, n), np.int32), np.full(5, 7, np.int32)
        assert call_prim(sch.module.prim("f"), (x, z.copy()))[-1].tolist() == expected
        assert compile(sch, "cpu")(x, z.copy()).tolist() == expected
