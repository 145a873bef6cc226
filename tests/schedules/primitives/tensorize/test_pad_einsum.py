"""Tests of pad_einsum."""

import numpy as np
import pytest

from tilewright.codegen import compile as build
from tilewright.ir.interpreter import call_prim
from tilewright.ir.script import parse, to_text
from tilewright.ir.symbolic import to_text as term_text
from tilewright.ir.verify import violations
from tilewright.schedules import Schedule
from tilewright.schedules.primitives.tensorize.pad_einsum import PadEinsum
from tilewright.target.target import Target

from tests.codegen.kernels import LEVELS
from tests.codegen.tensorized import MATMUL_F32
from tests.schedules.helpers import MATMUL, SCAN, rejected, schedule

ROWS = """
n, m = symbols("n m", lower=0)

@prim_func
def rows(x: Buffer[(n, m), i32], w: Buffer[(n,), i32], y: Out[(n,), i32]):
    for i in range(n):
        for k in range(m):
            with block("sum"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = {start}
                y[vi] {update}
"""


def padded(text, padding, name="mm"):
    sch = schedule(text)
    return sch, sch.pad_einsum(sch.get_block(name), padding)


def test_a_matmul(golden):
    sch, made = padded(MATMUL_F32, (16, 8, 16))
    golden("pad_einsum.txt", str(sch))
    assert [r.name for r in made] == ["pad_A", "pad_B", "crop_C"]
    assert violations(sch.module) == ()
    assert all(c.exact for c in sch.verify(runs=6).required().compared)
    assert to_text(parse(str(sch)).prims[0]) == str(sch)


def test_padded_tiles_need_no_predicate():
    sch, _ = padded(MATMUL_F32, (16, 8, 16))
    for loop, size in zip(sch.get_loops("mm"), (16, 8, 16), strict=True):
        outer, _ = sch.split(loop, (None, size))
        assert sch.trace[-1].decisions == {"guard": "none"}
        assert term_text(sch.state.loop(outer).extent).startswith("ceildiv")


def test_only_padded_operands_are_copied():
    sch, made = padded(MATMUL, (16, 8, 16))
    assert [r.name for r in made] == ["pad_A", "crop_C"]
    assert sch.verify().required().compared[0].exact


def test_a_copy_that_pads_while_fetching():
    sch, (pad, _, crop) = padded(MATMUL_F32, (16, 8, 16))
    mm = sch.get_block("mm")
    i, j, k = sch.get_loops(mm)
    i0, i1 = sch.split(i, (None, 16))
    j0, j1 = sch.split(j, (None, 8))
    k0, k1 = sch.split(k, (None, 16))
    sch.reorder((i0, j0, k0, i1, j1, k1))
    fetch = sch.cache_read(mm, "A_pad", "shared")
    sch.compute_at(fetch, k0)
    sch.compute_inline(pad)
    sch.reverse_compute_at(crop, j0)
    assert violations(sch.module) == ()
    assert sch.verify(runs=4).required().compared[0].exact


@pytest.mark.parametrize("update", ["+= x[vi, vk]", "+= x[vi, vk] * 3", "+= x[vi, vk] * x[vi, vk]"])
def test_sums_that_zeros_do_not_change(update):
    sch, _ = padded(ROWS.format(start=0, update=update), (4, 4), "sum")
    assert sch.verify(runs=4).required().compared[0].exact


def test_requires_einsum():
    scan = schedule(SCAN)
    rejected(
        scan,
        PadEinsum(scan.get_block("step"), (4,)),
        PadEinsum.Requires.EINSUM,
        "ordered iteration variables",
    )
    sch = schedule(MATMUL)
    mm = sch.get_block("mm")
    sch.decompose_reduction(mm, sch.get_loops(mm)[2])
    rejected(
        sch, PadEinsum(mm, (16, 16, 16)), PadEinsum.Requires.EINSUM, "not the only writer of 'C'"
    )
    text = MATMUL.replace("A[vi, vk]", "A[vi, 0]")
    sch = schedule(text)
    rejected(
        sch,
        PadEinsum(sch.get_block("mm"), (16, 1, 1)),
        PadEinsum.Requires.EINSUM,
        "not iteration variables",
    )


def test_requires_whole_loops():
    sch = schedule(MATMUL)
    mm = sch.get_block("mm")
    sch.split(sch.get_loops(mm)[0], (None, 16))
    rejected(sch, PadEinsum(mm, (16, 16, 16)), PadEinsum.Requires.WHOLE_LOOPS, "not a perfect nest")


def test_requires_tile_sizes():
    sch = schedule(MATMUL)
    mm = sch.get_block("mm")
    rejected(
        sch,
        PadEinsum(mm, (16, 16)),
        PadEinsum.Requires.TILE_SIZES,
        "each of the 3 iteration variables of block 'mm'",
    )
    rejected(sch, PadEinsum(mm, (16, 16, 0)), PadEinsum.Requires.TILE_SIZES, "positive tile size")


def test_requires_zero_padding():
    sch = schedule(ROWS.format(start=-5, update="= max(y[vi], x[vi, vk])"))
    block = sch.get_block("sum")
    problem = rejected(
        sch, PadEinsum(block, (4, 4)), PadEinsum.Requires.ZERO_PADDING, "is not a sum"
    )
    assert problem.fixes == (PadEinsum(block, (4, 1)),)
    sch = schedule(ROWS.format(start=0, update="+= x[vi, vk] * w[vi]"))
    rejected(
        sch,
        PadEinsum(sch.get_block("sum"), (1, 4)),
        PadEinsum.Requires.ZERO_PADDING,
        "'w' is not indexed by 'vk'",
    )
    sch = schedule(ROWS.format(start=0, update="+= abs(x[vi, vk])"))
    rejected(
        sch,
        PadEinsum(sch.get_block("sum"), (1, 4)),
        PadEinsum.Requires.ZERO_PADDING,
        "not a sum of products",
    )


def test_requires_incomplete_tile():
    sch = schedule(MATMUL)
    rejected(
        sch,
        PadEinsum(sch.get_block("mm"), (1, 8, 16)),
        PadEinsum.Requires.INCOMPLETE_TILE,
        "are already multiples of (1, 8, 16)",
    )


def test_suggested_for_an_einsum():
    sch = Schedule(parse(MATMUL_F32))
    found = [c.step.title() for c in sch.suggest(sch.get_block("mm")) if c.applicable]
    assert "pad_einsum(block=mm, padding=(16, 16, 16))" in found


@pytest.mark.parametrize("features", [(), *((level,) for level in LEVELS)])
def test_the_vectorized_padding_of_a_row_compiles(features):
    sch = schedule("""
@prim_func
def f(e: Buffer[(6, 20), f32], s: Out[(6,), f32]):
    for c in range(6):
        for d in range(20):
            with block("sum"):
                vc, vd = spatial(c), reduce(d)
                with init(): s[vc] = 0.0
                s[vc] += e[vc, vd]
""")
    sch.pad_einsum("sum", (16, 16))
    sch.vectorize("ax1")
    target = Target("cpu", features=features)
    found = build(sch.module, target)["f"](np.ones((6, 20), np.float32))
    np.testing.assert_array_equal(found, np.full(6, 20, np.float32))


def test_an_update_in_place_is_not_an_einsum():
    sch = schedule("""
@prim_func
def f(x: Buffer[(5,), f32], y: InOut[(5,), f32]):
    for i in range(5):
        with block("a"):
            vi = spatial(i)
            y[vi] = min(y[vi], x[vi])
""")
    step = PadEinsum(sch.get_block("a"), (4,))
    rejected(sch, step, PadEinsum.Requires.EINSUM, "reads its output 'y'")


def test_operands_larger_than_the_loops_are_padded_from_the_extents() -> None:
    text = """
@prim_func
def f(a: Buffer[(8, 20), f32], b: Buffer[(20,), f32], y: Out[(4,), f32]):
    for i in range(4):
        for k in range(6):
            with block("y"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = 0.0
                y[vi] += a[vi, vk] * b[vk]
"""
    sch = Schedule(parse(text))
    sch.pad_einsum("y", padding=(16, 16))
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((8, 20), (20,)))
    (y,) = call_prim(sch.module.prim("f"), (a, b), {})
    np.testing.assert_array_equal(y, a[:4, :6] @ b[:6])


def test_an_operand_that_a_where_guards_is_padded_from_its_own_size() -> None:
    sch = Schedule(
        parse("""
m = symbols("m", lower=1)

@prim_func
def f(x: Buffer[(m,), f32], y: Out[(m,), f32]):
    for i in range(m):
        for k in range(1):
            with block("y"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = inf
                y[vi] = min(y[vi], x[vi])
""")
    )
    copy, _ = sch.pad_einsum("y", padding=(3, 1))
    sch.compute_inline(copy)
    sch.pad_einsum("y", padding=(6, 1))
    x = np.arange(4, dtype=np.float32)
    (y,) = call_prim(sch.module.prim("f"), (x,), {"m": 4})
    np.testing.assert_array_equal(y, x)
