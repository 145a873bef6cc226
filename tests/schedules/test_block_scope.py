"""Steps inside of blocks: the inside is scheduled like a function of its own."""

from __future__ import annotations

import pytest

from tilewright.codegen.lower import lower_kernel
from tilewright.ir.analysis import tree_of
from tilewright.ir.script import parse
from tilewright.ir.symbolic import to_text as term_text
from tilewright.ir.verify import violations
from tilewright.schedules import Schedule
from tilewright.schedules.primitives.caching.cache_read import CacheRead
from tilewright.schedules.primitives.caching.cache_write import CacheWrite
from tilewright.schedules.primitives.placement.compute_at import ComputeAt
from tilewright.schedules.primitives.placement.compute_inline import ComputeInline
from tilewright.schedules.primitives.reduction.decompose_reduction import DecomposeReduction
from tilewright.schedules.primitives.reduction.rfactor import Rfactor
from tilewright.schedules.requirement import CommonRequirement
from tilewright.target.target import Target

from tests.codegen.kernels import LEVELS
from tests.fuzz import oracles
from tests.fuzz.program import Program
from tests.schedules import helpers
from tests.schedules.helpers import accepted, rejected
from tests.strategies import symbols_of

SIZES = (0, 1, 13, 150)

MATMUL = helpers.MATMUL.replace("lower=1", "lower=0")

ROWS = """
n = symbols("n", lower=0)

@prim_func
def rows(x: Buffer[(n, 24), i32], y: Out[(n, 24), i32]):
    {alloc}
    for io in {kind}(ceildiv(n, 8)):
        with block("tile"):
            vo = spatial(io)
            for i in range(8):
                for j in range(24):
                    with block("first"):
                        vi, vj = spatial(n, vo * 8 + i), spatial(j)
                        guard(vo * 8 + i < n)
                        t[vi, vj] = x[vi, vj] * 2
            for i2 in range(8):
                for j2 in range(24):
                    with block("second"):
                        vi, vj = spatial(n, vo * 8 + i2), spatial(j2)
                        guard(vo * 8 + i2 < n)
                        y[vi, vj] = t[vi, {at}] + x[vi, vj]
"""
"""A block with two nests; its temporary is allocated outside."""


def rows(at: str = "23 - vj", kind: str = "range", alloc: str = "t = alloc((n, 24), i32)") -> str:
    return ROWS.format(at=at, kind=kind, alloc=alloc)


def agrees(text: str, sch: Schedule) -> None:
    """Compare the interpreter, native code, and the emulated GPU with the original program."""
    assert violations(sch.module) == ()
    original = oracles.Original(Program("case", text), parse(text))
    (symbol,) = symbols_of(original.function)
    sizes = [{symbol: size} for size in SIZES]
    for env in sizes[:3]:
        oracles.interpret(original, sch.module.prims[0], env)
    for level in ("", *LEVELS):
        kernel = oracles.native(sch.module.prims[0], level, opt=2)
        for env in sizes:
            oracles.run_native(original, kernel, env, level)
    on_gpu = sch.branch()
    on_gpu.bind(next(iter(tree_of(sch.module.prims[0]).loops.values())).var.name, "blockIdx.x")
    artifact = lower_kernel(on_gpu.module.prims[0], Target("simt"))
    for env in sizes[:3]:
        oracles.run_simt(original, artifact, env, "simt")


def tiled() -> Schedule:
    sch = Schedule(parse(MATMUL))
    i, j, k = sch.get_loops("mm")
    i0, i1 = sch.split(i, factors=(None, 5))
    j0, j1 = sch.split(j, factors=(None, 8))
    sch.reorder((i0, j0, k, i1, j1))
    sch.blockize(i1)
    return sch


def region(sch: Schedule, block: str, buffer: str) -> str:
    """Return the region of a buffer that a block reads, which is one."""
    (found,) = [r for r in sch.state.block(sch.get_block(block)).reads if r.buffer.name == buffer]
    return ", ".join(f"{term_text(x.start)}:+{term_text(x.extent)}" for x in found.ranges)


def test_copies_inside_of_a_block(golden):
    sch = tiled()
    before = region(sch, "mm_o", "A")
    copy = sch.cache_read("mm", "A", "local")
    assert region(sch, "mm_o", "A") == before
    agrees(MATMUL, sch)
    sch.compute_at(copy, "i_1")
    assert region(sch, "mm_o", "A") == before
    golden("copies.txt", str(sch))
    agrees(MATMUL, sch)


def test_results_are_written_through_a_temporary_inside_of_a_block():
    sch = Schedule(parse(MATMUL))
    i, *_ = sch.get_loops("mm")
    _, i1 = sch.split(i, factors=(None, 5))
    sch.blockize(i1)
    copy = sch.cache_write("mm", "C", "local")
    agrees(MATMUL, sch)
    sch.reverse_compute_at(copy, i1)
    temporary = sch.get_buffer("C_local")
    sch.set_scope(temporary, "global")
    agrees(MATMUL, sch)


def test_reductions_inside_of_a_block(golden):
    sch = Schedule(parse(MATMUL))
    _, j, k = sch.get_loops("mm")
    k0, k1 = sch.split(k, factors=(None, 4))
    sch.blockize(j)
    combine = sch.rfactor("mm", k1)
    agrees(MATMUL, sch)
    sch.decompose_reduction("mm", k0)
    sch.decompose_reduction(combine, sch.get_loops(combine)[-1])
    golden("reductions.txt", str(sch))
    agrees(MATMUL, sch)


@pytest.mark.parametrize("kind", ["range", "parallel"])
def test_a_producer_moves_inside_of_a_block(kind):
    text = rows(kind=kind)
    sch = Schedule(parse(text))
    sch.compute_at("first", "i2")
    assert tree_of(sch.module.prims[0]).function.buffers == ()
    if kind == "range":
        agrees(text, sch)
    else:
        assert sch.verify().required()


def test_a_consumer_moves_inside_of_a_block():
    text = rows(at="vj")
    sch = Schedule(parse(text))
    sch.reverse_compute_at("second", "i")
    agrees(text, sch)


def test_inlining_inside_of_a_block():
    text = rows()
    sch = Schedule(parse(text))
    sch.compute_inline("first")
    assert not tree_of(sch.module.prims[0]).temporaries
    agrees(text, sch)
    text = rows(at="vj")
    sch = Schedule(parse(text))
    sch.reverse_compute_inline("second")
    agrees(text, sch)


def test_layouts_inside_of_a_block():
    sch = tiled()
    sch.cache_read("mm", "B", "local", "lambda a, b: (b, a)")
    sch.transform_layout("B_local", "lambda a, b: (a // 4, a % 4, b)")
    sch.cache_read("mm", "A", "global")
    sch.storage_align("A_global", 0, 32, 8)
    assert {b.name for b in tree_of(sch.module.prims[0]).allocs} == {"A_global", "B_local"}
    agrees(MATMUL, sch)


SUMS = """
n = symbols("n", lower=0)

@prim_func
def sums(x: Buffer[(n, 40), i32], y: Out[(n, 40), i32]):
    for i in range(n):
        with block("row"):
            vi = spatial(i)
            for j in range(40):
                with block("sums"):
                    wi, vj = spatial(vi), ordered(j)
                    y[wi, vj] = scan(add, x[wi, vj])
"""


def test_scans_inside_of_a_block():
    sch = Schedule(parse(SUMS))
    sch.scan_blocks("sums", 7)
    agrees(SUMS, sch)


def test_threads_inside_of_a_block_share_its_temporaries():
    """Thread blocks run the block, and the threads of each fill and read its shared memory."""
    sch = tiled()
    sch.cache_read("mm", "A", "shared")
    sch.bind("i_0", "blockIdx.x")
    sch.bind("j_1", "threadIdx.x")
    sch.bind("j_1_init", "threadIdx.x")
    copy = sch.cache_read("mm", "B", "shared")
    sch.bind(sch.get_loops(copy)[-1], "threadIdx.x")
    assert violations(sch.module) == ()
    original = oracles.Original(Program("case", MATMUL), parse(MATMUL))
    (symbol,) = symbols_of(original.function)
    artifact = lower_kernel(sch.module.prims[0], Target("simt"))
    for size in SIZES[:3]:
        oracles.run_simt(original, artifact, {symbol: size}, "simt")


def test_nested_blocks():
    sch = tiled()
    sch.blockize("j_1")
    copy = sch.cache_read("mm", "B", "local")
    tree = tree_of(sch.module.prims[0])
    around = tree.block_around(sch.state.block(copy))
    assert around is not None
    assert around.iters[0].var.name == "vvi_0"
    agrees(MATMUL, sch)


def test_the_init_of_a_block_is_another_function():
    sch = tiled()
    sch.cache_write("mm_init", "C", "local")
    agrees(MATMUL, sch)
    rejected(
        sch,
        ComputeAt(sch.get_block("mm_init"), sch.get_loop("i_1")),
        CommonRequirement.SAME_BLOCK,
        "'mm_init' is inside the init of block 'mm_o', 'i_1' is inside block 'mm_o'",
    )


def test_targets_in_different_blocks_are_rejected():
    sch = Schedule(parse(MATMUL))
    sch.blockize("j")
    sch.cache_read("mm_o", "A", "global")
    rejected(
        sch,
        ComputeAt(sch.get_block("copy_A"), sch.get_loop("k")),
        CommonRequirement.SAME_BLOCK,
        "'copy_A' is outside of blocks, 'k' is inside block 'mm_o'; expected the same block",
    )
    sch.cache_read("mm", "B", "local")
    rejected(
        sch,
        CacheRead(sch.get_block("mm_o"), sch.get_buffer("B_local")),
        CommonRequirement.SAME_BLOCK,
        "'B_local' is allocated inside block 'mm_o', which is not around 'mm_o'",
    )
    other = tiled()
    other.cache_write("mm_init", "C", "local")
    rejected(
        other,
        CacheRead(other.get_block("mm"), other.get_buffer("C_local")),
        CommonRequirement.SAME_BLOCK,
        "'C_local' is allocated inside the init of block 'mm_o', which is not around 'mm'",
    )


def test_a_buffer_of_another_loop_is_rejected():
    text = (
        rows(alloc="")
        + """
    for k in range(n):
        u = alloc((24,), i32)
        for l in range(24):
            with block("third"):
                vl = spatial(l)
                u[vl] = 1
        for m in range(24):
            with block("fourth"):
                vk, vm = spatial(k), spatial(m)
                y[vk, vm] = y[vk, vm] + u[vm]
"""
    )
    text = text.replace("vo = spatial(io)", "vo = spatial(io)\n            t = alloc((n, 24), i32)")
    sch = Schedule(parse(text))
    rejected(
        sch,
        CacheRead(sch.get_block("second"), sch.get_buffer("u")),
        CommonRequirement.SAME_BLOCK,
        "'u' is allocated in another loop, which is not around 'second'",
    )
    sch.compute_at("first", "i2")
    assert sch.verify().required()


def test_the_requirements_hold_inside_of_the_block():
    sch = tiled()
    mm = sch.get_block("mm")
    rejected(
        sch,
        CacheWrite(mm, sch.get_buffer("C")),
        CacheWrite.Requires.IGNORES_OLD_CONTENTS,
        "reads elements of 'C' that it did not write",
    )
    rejected(
        sch,
        DecomposeReduction(mm, sch.get_loop("i_1")),
        DecomposeReduction.Requires.REDUCTION,
        "'mm' is not a reduction with an init; block 'mm_o' around it has an init",
    )
    rejected(sch, Rfactor(mm, sch.get_loop("j_1")), Rfactor.Requires.COMMUTATIVE_REDUCTION)


def test_elements_that_another_iteration_of_the_block_writes_are_kept():
    """The last rows of a tile are read by the next iteration of the block."""
    text = rows().replace("t[vi, 23 - vj]", "t[max(vi - 1, 0), vj]")
    sch = Schedule(parse(text))
    first = sch.get_block("first")
    message = "writes 't', which is allocated outside of block 'tile'"
    rejected(
        sch, ComputeAt(first, sch.get_loop("i2")), ComputeAt.Requires.WRITES_TEMPORARY, message
    )
    rejected(sch, ComputeInline(first), ComputeInline.Requires.WRITES_TEMPORARY)
    accepted(sch, CacheRead(sch.get_block("second"), sch.get_buffer("x")))


def test_loops_around_the_block():
    """Each thread has its own iteration of the block, but not its own shared memory."""
    text = MATMUL.replace("(M, 16)", "(64, 16)").replace("(M, 24)", "(64, 24)")
    text = text.replace("range(M)", "range(64)").replace('M = symbols("M", lower=0)\n', "")
    sch = Schedule(parse(text))
    i0, i1 = sch.split("i", factors=(None, 4))
    sch.blockize(i1)
    sch.bind(i0, "threadIdx.x")
    mm, buffer = sch.get_block("mm"), sch.get_buffer("A")
    rejected(
        sch,
        CacheRead(mm, buffer, "shared"),
        CommonRequirement.ISOLATED,
        "has its own temporary in shared memory, which the threads of loop 'i_0' share",
    )
    accepted(sch, CacheRead(mm, buffer, "local"))


REDUCED = """
n, k = symbols("n k", lower=0)

@prim_func
def reduced(x: Buffer[(n, k), i32], y: InOut[(n,), i32]):
    for i in {kind}(n):
        with block("rows"):
            wi = spatial(i)
            for j in range(k):
                for r in range(1):
                    with block("y"):
                        vi, vj = spatial(wi), reduce(j)
                        with init(): y[vi] = 0
                        y[vi] += x[vi, vj]
"""


@pytest.mark.parametrize(("kind", "count"), [("range", 1), ("vectorized", 0)])
def test_a_fix_inside_of_a_block_is_legal_around_it(kind, count):
    """A step inside of a block around which a loop is vectorized is not legal."""
    sch = Schedule(parse(REDUCED.format(kind=kind)))
    (problem,) = sch.check(DecomposeReduction(sch.get_block("y"), sch.get_loop("r")))
    assert problem.requirement is DecomposeReduction.Requires.OUTERMOST_REDUCTION
    assert len(problem.fixes) == count
    assert not any(sch.check(fix) for fix in problem.fixes)


GUARDED = """
n = symbols("n", lower=0)

@prim_func
def guarded(x: Buffer[(n, 8), i32], y: Out[(ceildiv(n, 3), 8), i32]):
    for b in range(ceildiv(n, 3)):
        for i in range(3):
            for j in range(8):
                with block("y"):
                    vb, vi, vj = spatial(b), reduce(i), spatial(j)
                    guard(b * 3 + i < n)
                    with init(): y[vb, vj] = 0
                    y[vb, vj] += x[vb * 3 + vi, vj]
"""


def test_blocks_use_their_own_iteration_variables():
    """The condition of the partial results is over variables of the inner block."""
    sch = Schedule(parse(GUARDED))
    sch.blockize("i")
    sch.rfactor("y", "i")
    agrees(GUARDED, sch)


RAGGED = """
n = symbols("n", lower=1)
m = symbols("m", lower=0)

@prim_func
def ragged(n: Int, x: Buffer[(m,), i32], p: Buffer[(n + 1,), i32], y: InOut[(m,), i32]):
    for i in range(n):
        with checked(p[i], 0, m + 1) as lo:
            with checked(p[i + 1], 0, m + 1) as hi:
                s = alloc((hi - lo,), i32)
                for j in range(hi - lo):
                    with block("s"):
                        vl, vj = spatial(m + 1, lo), spatial(m + 1, j)
                        s[vj] = x[vl + vj] + 1
                for k in range(hi - lo):
                    with block("y"):
                        wl, wk = spatial(m + 1, lo), spatial(m + 1, k)
                        y[wl + wk] = s[wk]
"""


def test_the_shape_of_a_temporary_is_known_inside_of_the_block():
    sch = Schedule(parse(RAGGED))
    sch.blockize("j")
    rejected(
        sch,
        CacheWrite(sch.get_block("s"), sch.get_buffer("s", "ragged")),
        CommonRequirement.ISOLATED,
        "the shape of a temporary inside block 's_o' would depend on 'hi', 'lo'",
    )
    accepted(sch, CacheRead(sch.get_block("s"), sch.get_buffer("x")))


def test_the_regions_of_a_block_are_known_inside_of_it():
    """The region of s after this split is its whole shape, which depends on loaded integers."""
    sch = Schedule(parse(RAGGED))
    sch.blockize("j")
    sch.split("j", factors=(5, 3, None), tail="epilogue")
    rejected(
        sch,
        CacheRead(sch.get_block("s_o"), sch.get_buffer("x"), "global"),
        CommonRequirement.ISOLATED,
        "after this step, block 's_o' would use 'hi', 'lo' from outside of it",
    )


def test_suggestions_inside_of_a_block():
    sch = Schedule(parse(rows()))
    found = {c.step.title() for c in sch.suggest(sch.get_block("first")) if c.applicable}
    assert {"compute_at(block=first, loop=i2)", "compute_inline(block=first)"} <= found
    drawn = sch.sample_compute_location("first")
    sch.compute_at("first", drawn)
    assert sch.verify().required()


def test_steps_inside_of_a_block_replay():
    sch = tiled()
    sch.cache_read("mm", "A", "local")
    sch.compute_at("copy_A", "i_1")
    again = Schedule(parse(MATMUL))
    again.replay(sch.trace)
    assert str(again) == str(sch)
