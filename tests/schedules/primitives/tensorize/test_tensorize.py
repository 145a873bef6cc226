"""Tests of tensorize: a rejected case per requirement, and the legality of its fixes."""

import random
from collections import Counter

import numpy as np
import pytest

from tilewright.codegen import compile as build
from tilewright.ir.script import parse, to_text
from tilewright.ir.verify import violations
from tilewright.schedules import (
    Schedule,
    explain_match,
    from_json,
    from_python,
    replay,
    to_json,
    to_python,
)
from tilewright.schedules.apply import prepared
from tilewright.schedules.gallery import ATTEMPTS
from tilewright.schedules.handles import BindingRef, LoopRef
from tilewright.schedules.intrinsics.registry import intrinsics_for
from tilewright.schedules.primitives.annotate.annotate import Annotate
from tilewright.schedules.primitives.caching.cache_read import CacheRead
from tilewright.schedules.primitives.caching.cache_write import CacheWrite
from tilewright.schedules.primitives.layout.set_scope import SetScope
from tilewright.schedules.primitives.layout.transform_layout import TransformLayout
from tilewright.schedules.primitives.loops.split import Split
from tilewright.schedules.primitives.placement.compute_inline import ComputeInline
from tilewright.schedules.primitives.tensorize import _site
from tilewright.schedules.primitives.tensorize.tensorize import REQUIREMENTS, Tensorize
from tilewright.schedules.requirement import CommonRequirement
from tilewright.target.target import Target

from tests.codegen.tensorized import FMA_AVX2, FMA_AVX512, MATMUL_F32
from tests.schedules.helpers import rejected
from tests.schedules.random_steps import same_results
from tests.strategies import symbols_of

FMA = "avx512.fma.f32.14x32"


def tile(text=MATMUL_F32, rows=14, columns=32, target=FMA_AVX512.target, *, started=True):
    """Return the matmul split into tiles, with the loops of one tile."""
    sch = Schedule(parse(text), target)
    mm = sch.get_block("mm")
    i, j, k = sch.get_loops(mm)
    i0, i1 = sch.split(i, (None, rows))
    j0, j1 = sch.split(j, (None, columns))
    sch.reorder((i0, j0, k, i1, j1))
    if started:
        sch.decompose_reduction(mm, k)
    return sch, mm, (i0, j0, k, i1, j1)


def program(**parts):
    """Return a matmul with some parts of its text replaced."""
    text = MATMUL_F32
    for old, new in parts.values():
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("example", [FMA_AVX512, FMA_AVX2], ids=["avx512", "avx2"])
def test_a_naive_matmul_reaches_the_tile(example, golden):
    sch = example.scheduled()
    golden(f"{example.target.features[0]}.txt", str(sch))
    assert violations(sch.module) == ()
    assert all(c.exact for c in sch.verify(runs=6).required().compared)


def test_the_text_of_a_tensorized_block_reads_back():
    text = str(FMA_AVX512.scheduled())
    assert to_text(parse(text).prims[0]) == text


def test_traces_replay_in_both_forms():
    sch = FMA_AVX512.scheduled()
    start = FMA_AVX512.naive().state
    for trace in (from_json(to_json(sch.trace)), from_python(to_python(sch.trace))):
        again = replay(start, trace).completed()
        assert to_text(again.module) == to_text(sch.module)


def test_tails_of_every_size():
    """The predicates stay inside the block, so partial tiles run their iterations only."""
    sch, _, (*_, i1, _) = tile(rows=6, columns=16, target=FMA_AVX2.target)
    before = sch.module.prims[0]
    sch.tensorize(i1, "avx2.fma.f32.6x16")
    after = sch.module.prims[0]
    rng = random.Random(5)
    for m in range(1, 14):
        env = {v: rng.randint(1, 36) for v in symbols_of(before)}
        env |= {v: m for v in env if v.name == "M"}
        assert same_results(before, after, env)


def test_loops_in_another_order_and_operands_exchanged():
    text = program(swap=("A[vi, vk] * B[vk, vj]", "B[vk, vj] * A[vi, vk]"))
    sch, _, (*_, i1, j1) = tile(text)
    sch.reorder((j1, i1))
    sch.vectorize(j1)
    block = sch.tensorize(j1, FMA)
    assert [sch.state.loop(x).kind for x in (i1, j1)] == ["unrolled", "vectorized"]
    assert sch.state.block(block).body is sch.state.loop(i1)
    assert sch.verify().required().compared[0].exact


def test_a_transposed_operand_differs_only_in_its_stride():
    text = program(
        a=("A: Buffer[(M, K), f32]", "A: Buffer[(K, M), f32]"), at=("A[vi, vk]", "A[vk, vi]")
    )
    sch, _, (*_, i1, _) = tile(text)
    sch.tensorize(i1, FMA)
    assert sch.verify().ok


def test_unit_loops_are_removed():
    sch, mm, (*_, i1, _) = tile()
    unit = sch.add_unit_loop(mm)
    sch.tensorize(i1, FMA)
    absence = [p.message for p in sch.check(Split(unit, (None, 2)))]
    assert "removed a loop of one iteration" in absence[0]
    assert sch.verify().ok


def test_a_block_made_by_blockize():
    sch, _, (*_, i1, _) = tile()
    block = sch.blockize(i1)
    assert sch.tensorize(block, FMA) == block
    assert dict(sch.state.block(block).annotations) == {"intrinsic": FMA}
    assert sch.verify().ok


def test_unannotate_undoes_tensorize():
    sch, _, (*_, i1, j1) = tile()
    block = sch.tensorize(i1, FMA)
    rejected(
        sch,
        Split(j1, (None, 8)),
        CommonRequirement.OUTSIDE_OF_INSTRUCTIONS,
        f"which {FMA} implements",
    )
    sch.unannotate(block, "intrinsic")
    assert sch.state.block(block).annotations == ()
    sch.tensorize(block, FMA)


def test_requires_an_intrinsic_and_an_untensorized_nest():
    sch, mm, (_, _, k, i1, _) = tile(started=False)
    rejected(
        sch,
        Tensorize(i1, "avx512.fma.f32.14x33"),
        Tensorize.Requires.INTRINSIC_EXISTS,
        "intrinsics are avx512.fma.f32.14x32",
    )
    sch.decompose_reduction(mm, k)
    outer = sch.get_loops(mm)[0]
    rejected(
        sch, Tensorize(outer, FMA), Tensorize.Requires.PERFECT_NEST, "blocks inside: mm_init, mm"
    )
    block = sch.tensorize(i1, FMA)
    rejected(
        sch,
        Tensorize(block, FMA),
        Tensorize.Requires.NOT_TENSORIZED,
        "already tensorized by avx512.fma.f32.14x32",
    )


def test_requires_same_extents():
    sch, _, (*_, i1, _) = tile(rows=16)
    problem = rejected(
        sch,
        Tensorize(i1, FMA),
        Tensorize.Requires.SAME_EXTENTS,
        "extent 16 of loop 'i_1' differs from extent 14",
    )
    assert [f.title() for f in problem.fixes] == ["split(loop=i_1, factors=(None, 14))"]
    sch, _, (*_, k, i1, j1) = tile()
    problem = rejected(
        sch, Tensorize(j1, FMA), Tensorize.Requires.SAME_EXTENTS, "no counterpart of loop 'i'"
    )
    assert f"tensorize(target=i_1, intrinsic='{FMA}')" in [f.title() for f in problem.fixes]
    assert k != i1


def test_requires_same_dtypes():
    text = program(f32=("f32]", "f64]"))
    sch, _, (*_, i1, _) = tile(text)
    rejected(
        sch,
        Tensorize(i1, FMA),
        Tensorize.Requires.SAME_DTYPES,
        "'A' has dtype f64; the instruction requires f32",
    )


def test_requires_same_layouts():
    text = program(
        b=("B: Buffer[(K, N), f32]", "B: Buffer[(N, K), f32]"), at=("B[vk, vj]", "B[vj, vk]")
    )
    sch, _, (*_, i1, _) = tile(text)
    problem = rejected(
        sch,
        Tensorize(i1, FMA),
        Tensorize.Requires.SAME_LAYOUTS,
        "stride K of 'B' along loop 'j_1' differs from stride 1",
    )
    assert problem.fixes[0].title().startswith("cache_read(block=mm, buffer=B")


def test_requires_same_accesses():
    text = program(at=("A[vi, vk] *", "A[vi // 2, vk] *"))
    sch, _, (*_, i1, _) = tile(text)
    rejected(sch, Tensorize(i1, FMA), Tensorize.Requires.SAME_ACCESSES, "is not linear in i_1, j_1")
    text = program(sine=("* B[vk, vj]", "* exp(B[vk, vj])"))
    sch, _, (*_, i1, _) = tile(text)
    rejected(
        sch,
        Tensorize(i1, FMA),
        Tensorize.Requires.SAME_ACCESSES,
        "the program computes exp(B[k, j_0 * 32 + j_1])",
    )


ALIAS = """
@prim_func
def alias(B: Buffer[(8, 32), f32], C: InOut[(14, 32), f32]):
    for k in range(8):
        for i in range(14):
            for j in range(32):
                with block("mm"):
                    vk, vi, vj = ordered(k), spatial(i), spatial(j)
                    C[vi, vj] += C[vi, 0] * B[vk, vj]
"""

SAME_ROW = """
@prim_func
def rows(A: Buffer[(14,), f32], B: Buffer[(32,), f32], C: InOut[(32,), f32]):
    for i in range(14):
        for j in range(32):
            with block("mm"):
                vi, vj = spatial(i), spatial(j)
                C[vj] += A[vi] * B[vj]
"""


def test_aliased_outputs_and_repeated_writes():
    sch = Schedule(parse(ALIAS), FMA_AVX512.target)
    rejected(
        sch,
        Tensorize(sch.get_loop("i"), FMA),
        Tensorize.Requires.SAME_ACCESSES,
        "'C' is both 'C' and 'A'",
    )
    sch = Schedule(parse(SAME_ROW), FMA_AVX512.target)
    rejected(
        sch,
        Tensorize(sch.get_loop("i"), FMA),
        Tensorize.Requires.SAME_ACCESSES,
        "may write the same elements of 'C'",
    )


def test_requires_same_reduction():
    sch, _, (*_, i1, _) = tile(started=False)
    problem = rejected(sch, Tensorize(i1, FMA), Tensorize.Requires.SAME_REDUCTION, "has an init")
    assert [f.title() for f in problem.fixes] == ["decompose_reduction(block=mm, loop=k)"]
    text = program(
        init=("C[vi, vj] = 0.0", "C[vi, vj] = -inf"),
        top=(
            "C[vi, vj] += A[vi, vk] * B[vk, vj]",
            "C[vi, vj] = max(C[vi, vj], A[vi, vk] * B[vk, vj])",
        ),
    )
    sch, _, (*_, i1, _) = tile(text)
    rejected(
        sch,
        Tensorize(i1, FMA),
        Tensorize.Requires.SAME_REDUCTION,
        "reduces with 'max', the instruction with 'add'",
    )


def gallery(title):
    attempt = next(a for a in ATTEMPTS if a.title == title)
    sch = attempt.prepared()
    return sch, attempt.step(sch)


def test_requires_same_scopes():
    sch, step = gallery("Operands that are not in fragments")
    problem = next(p for p in sch.check(step) if p.requirement is Tensorize.Requires.SAME_SCOPES)
    assert "'A_pad' is in 'global'; the instruction requires 'fragment' for 'A'" in problem.message
    sch.set_scope("B_pad", "fragment")
    rejected(
        sch,
        Tensorize(step.target, step.intrinsic),
        Tensorize.Requires.SAME_SCOPES,
        "'A_pad' is in 'global'",
    )


def test_requires_supported_by_target():
    target = Target("cpu", features=("avx2",))
    sch, _, (*_, i1, _) = tile(target=target)
    rejected(
        sch,
        Tensorize(i1, FMA),
        Tensorize.Requires.SUPPORTED_BY_TARGET,
        "avx512.fma.f32.14x32 needs avx512f, which",
    )
    gpu, _, (*_, i1, _) = tile(target=Target("cuda", arch="sm_80"))
    rejected(
        gpu,
        Tensorize(i1, FMA),
        Tensorize.Requires.SUPPORTED_BY_TARGET,
        "Target('cuda', arch='sm_80') does not have",
    )


def test_requires_limiting_predicate():
    sch, step = gallery("A guard inside a warp's tile")
    for symbol in ("M", "N"):
        sch.assume(sch.get_function("matmul"), symbol, 16)
    problem = rejected(
        sch,
        Tensorize(step.target, step.intrinsic),
        Tensorize.Requires.LIMITING_PREDICATE,
        "a warp executes either all",
    )
    assert [f.title() for f in problem.fixes] == [
        "assume(function=matmul, symbol='K', multiple_of=16)"
    ]


CAUSAL = """
@prim_func
def causal(A: Buffer[(14, 8), f32], B: Buffer[(8, 32), f32], C: InOut[(14, 32), f32]):
    for k in range(8):
        for i in range(14):
            for j in range(32):
                with block("mm"):
                    vk, vi, vj = ordered(k), spatial(i), spatial(j)
                    guard({})
                    C[vi, vj] += A[vi, vk] * B[vk, vj]
"""


@pytest.mark.parametrize("guard", ["j <= i", "2 <= i", "i != 3", "i % 2 < 1"])
def test_predicates_that_are_not_tails(guard):
    sch = Schedule(parse(CAUSAL.format(guard)), FMA_AVX512.target)
    rejected(
        sch,
        Tensorize(sch.get_loop("i"), FMA),
        Tensorize.Requires.LIMITING_PREDICATE,
        "is not an upper bound of the single loop",
    )


@pytest.mark.parametrize("guard", ["i < 5", "j + k < 20", "k < 3", "i < 20", "i < 3 and j <= k"])
def test_predicates_that_are_tails(guard):
    sch = Schedule(parse(CAUSAL.format(guard)), FMA_AVX512.target)
    sch.tensorize(sch.get_loop("i"), FMA)
    assert sch.verify().required().compared[0].exact


REPEATED_UPDATE = """
@prim_func
def rows(A: Buffer[(14,), f32], B: Buffer[(32,), f32], C: InOut[(14, 32), f32]):
    for r in range(2):
        for i in range(14):
            for j in range(32):
                with block("mm"):
                    vi, vj = spatial(i), spatial(32, j // COPIES)
                    C[vi, vj] += A[vi] * B[vj]
"""


def test_a_nest_that_repeats_an_update_is_rejected():
    sch = Schedule(parse(REPEATED_UPDATE.replace("COPIES", "2")), FMA_AVX512.target)
    rejected(
        sch,
        Tensorize(sch.get_loop("i"), FMA),
        Tensorize.Requires.RUNS_ONCE,
        "do not determine the iterations of loop 'j', so an instance may run more than once",
    )


def test_a_nest_that_an_outer_loop_repeats_is_accepted():
    sch = Schedule(parse(REPEATED_UPDATE.replace("COPIES", "1")), FMA_AVX512.target)
    sch.tensorize(sch.get_loop("i"), FMA)
    assert sch.verify().required().compared[0].exact


def test_all_kinds_have_a_requirement():
    compared = set(Tensorize.Requires) - {
        Tensorize.Requires.INTRINSIC_EXISTS,
        Tensorize.Requires.PERFECT_NEST,
        Tensorize.Requires.NOT_TENSORIZED,
        Tensorize.Requires.ONE_KIND_PER_VARIABLE,
        Tensorize.Requires.RUNS_ONCE,
    }
    assert set(REQUIREMENTS.values()) == compared


def test_suggestions_match_or_are_similar():
    sch, _, (*_, i1, _) = tile()
    found = [c for c in sch.suggest(i1) if c.step.verb() == "tensorize"]
    assert [(c.step.intrinsic, c.applicable) for c in found] == [(FMA, True)]
    naive = FMA_AVX512.naive()
    found = [c for c in naive.suggest(naive.get_loop("i")) if c.step.verb() == "tensorize"]
    assert 1 <= len(found) <= 4
    assert not any(c.applicable for c in found)
    assert found[0].step.intrinsic == FMA  # the AVX2 tile is equally similar, but smaller


def test_a_selection_is_compared_with_each_intrinsic_once(monkeypatch):
    """Comparisons are memoized; without that, a selection took a third of a second."""
    compared, tried = Counter(), _site._compared

    def counting(state, where, intrinsic):
        compared[id(state), where, intrinsic.name] += 1
        return tried(state, where, intrinsic)

    monkeypatch.setattr(_site, "_compared", counting)
    naive = FMA_AVX512.naive()
    i, *_ = naive.get_loops("mm")
    naive.suggest(i)
    of_the_loop = [key for key in compared if key[:2] == (id(naive.state), i)]
    assert len(of_the_loop) > 3
    assert set(compared.values()) == {1}
    assert compared.total() <= 6 * len(intrinsics_for(naive.state.target))
    before = compared.total()
    naive.suggest(i)
    assert compared.total() == before


def test_a_tensorized_block_keeps_its_buffers():
    sch, mm, (*_, i1, _) = tile()
    sch.cache_read(mm, "B", "global")
    block = sch.tensorize(i1, FMA)
    name = "avx512.fma.f32.14x32"
    packed = sch.get_buffer("B_global")
    rejected(
        sch,
        CacheRead(block, sch.get_buffer("A")),
        CacheRead.Requires.NOT_TENSORIZED,
        f"is tensorized: {name}",
    )
    rejected(
        sch,
        CacheWrite(block, sch.get_buffer("C")),
        CacheWrite.Requires.NOT_TENSORIZED,
        f"is tensorized: {name}",
    )
    rejected(
        sch,
        SetScope(packed, "local"),
        SetScope.Requires.NOT_TENSORIZED,
        f"{name} accesses 'B_global'",
    )
    step = prepared(sch.state, TransformLayout(packed, "lambda a, b: (b, a)"))
    assert [p.requirement for p in sch.check(step)] == [TransformLayout.Requires.NOT_TENSORIZED]
    rejected(
        sch,
        ComputeInline(sch.get_block("copy_B")),
        ComputeInline.Requires.NOT_TENSORIZED,
        f"is tensorized: {name}",
    )


def test_an_instruction_inside_of_a_block_keeps_its_buffers():
    """The copy would be read by the instruction, whose strides it may not have."""
    sch, _, (*_, k, i1, _) = tile()
    sch.tensorize(i1, FMA)
    outer = sch.blockize(k)
    for step in (
        CacheRead(outer, sch.get_buffer("A")),
        CacheRead(outer, sch.get_buffer("B")),
        CacheWrite(outer, sch.get_buffer("C")),
    ):
        found = sch.check(step)
        assert step.Requires.NOT_TENSORIZED in {p.requirement for p in found}, found


def test_only_tensorize_sets_the_intrinsic_annotation():
    sch, _, (*_, i1, _) = tile()
    block = sch.blockize(i1)
    rejected(
        sch,
        Annotate(block, "intrinsic", FMA),
        Annotate.Requires.UNRESERVED_KEY,
        "reserved for the tensorize step",
    )


REPEATED = """
@prim_func
def repeated(A: Buffer[(14,), f32], B: Buffer[(32,), f32], C: InOut[(32,), f32]):
    for i in range(14):
        for j in range(32):
            with block("mm"):
                vj = spatial(j)
                C[vj] += A[0] * B[vj]
"""


def test_a_loop_that_only_repeats_is_rejected():
    sch = Schedule(parse(REPEATED), FMA_AVX512.target)
    rejected(
        sch,
        Tensorize(sch.get_loop("i"), FMA),
        Tensorize.Requires.SAME_ACCESSES,
        "iterations of loop 'i' may write the same",
    )


LOOPS_IN_BODY = """
@prim_func
def direct(A: Buffer[(14,), f32], B: Buffer[(32,), f32], C: InOut[(14, 32), f32]):
    for k in range(2):
        with block("tile"):
            vk = ordered(k)
            reads(A[0:14], B[0:32])
            writes(C[0:14, 0:32])
            for i in range(14):
                for j in range(32):
                    C[i, j] += A[i] * B[j]
"""


def test_blocks_without_a_perfect_nest():
    sch = Schedule(parse(LOOPS_IN_BODY), FMA_AVX512.target)
    tile_block = sch.get_block("tile")
    rejected(
        sch,
        Tensorize(tile_block, FMA),
        Tensorize.Requires.PERFECT_NEST,
        "does not contain a perfect nest",
    )
    rejected(
        sch,
        Tensorize(sch.get_loop("i"), FMA),
        Tensorize.Requires.PERFECT_NEST,
        "blocks inside: none",
    )
    match = explain_match(sch.state, tile_block, FMA)
    assert not match.matches
    sch, mm, (*_, i1, j1) = tile()
    rejected(
        sch, Tensorize(mm, FMA), Tensorize.Requires.PERFECT_NEST, "does not contain a perfect nest"
    )
    sch.blockize(j1)
    rejected(sch, Tensorize(i1, FMA), Tensorize.Requires.PERFECT_NEST, "nested blocks (mm_o, mm)")
    assert not explain_match(sch.state, i1, FMA).matches


def test_the_init_of_an_outer_block():
    sch, _, (_, _, k, i1, _) = tile(started=False)
    block = sch.blockize(i1)
    problem = rejected(
        sch, Tensorize(block, FMA), Tensorize.Requires.SAME_REDUCTION, "block 'mm_o' has an init"
    )
    assert [f.title() for f in problem.fixes] == ["decompose_reduction(block=mm_o, loop=k)"]
    sch.decompose_reduction(block, k)
    sch.tensorize(block, FMA)
    assert violations(sch.module) == ()
    assert sch.verify().required().compared[0].exact


GATHER = """
n = symbols("n", lower=1)

@prim_func
def gather(x: Buffer[(n, 32), f32], at: Buffer[(n,), i32], y: Out[(n, 32), f32]):
    for i in range(n):
        with checked(at[i], 0, n) as p:
            for j in range(32):
                with block("take"):
                    vi, vj, vp = spatial(i), spatial(j), spatial(n, p)
                    y[vi, vj] = x[vp, vj]
"""


def test_requires_one_kind_per_variable():
    text = GATHER.replace("checked(at[i], 0, n)", "checked(at[i], 0, i + 1)")
    sch = Schedule(parse(text), FMA_AVX512.target)
    rejected(
        sch,
        Tensorize(sch.get_loop("j"), FMA),
        Tensorize.Requires.ONE_KIND_PER_VARIABLE,
        "depends on 'p', which is read from memory",
    )


PAGES = """
n = symbols("n", lower=1)

@prim_func
def scores(
    table: Buffer[(n,), i32], Q: Buffer[(16, 6), f32], K: Buffer[(4, 16, 16), f32],
    C: InOut[(n, 6, 16), f32]
):
    for g in range(n):
        with checked(table[g], 0, 4) as p:
            for k in range(16):
                for i in range(6):
                    for j in range(16):
                        with block("mm"):
                            vg, vp, vk = spatial(g), spatial(4, p), reduce(k)
                            vi, vj = spatial(i), spatial(j)
                            C[vg, vi, vj] += Q[vk, vi] * K[vp, vk, vj]
"""


def test_a_block_of_a_page_table_is_tensorized():
    sch = Schedule(parse(PAGES), FMA_AVX2.target)
    sch.tensorize(sch.get_loop("i"), "avx2.fma.f32.6x16")
    assert violations(sch.module) == ()
    rng = np.random.default_rng(0)
    q, keys = rng.integers(-4, 5, (16, 6)), rng.integers(-4, 5, (4, 16, 16))
    table = np.array([3, 0, 3], np.int32)
    start = np.zeros((3, 6, 16), np.float32)
    result = build(sch, target=FMA_AVX2.target)(
        table, q.astype(np.float32), keys.astype(np.float32), start
    )
    np.testing.assert_array_equal(result, np.einsum("ki,gkj->gij", q, keys[table]))


TWO_STORES = """
@prim_func
def two(
    A: Buffer[(14,), f32], B: Buffer[(32,), f32], C: InOut[(14, 32), f32], D: Out[(14, 32), f32]
):
    for i in range(14):
        for j in range(32):
            with block("both"):
                vi, vj = spatial(i), spatial(j)
                C[vi, vj] += A[vi] * B[vj]
                D[vi, vj] = B[vj]
"""


def test_a_block_of_two_stores():
    sch = Schedule(parse(TWO_STORES), FMA_AVX512.target)
    i = sch.get_loop("i")
    rejected(
        sch,
        Tensorize(i, FMA),
        Tensorize.Requires.PERFECT_NEST,
        "contains several statements instead of one store",
    )
    match = explain_match(sch.state, i, FMA)
    assert [m.kind for m in match.mismatches] == ["access"]


def test_fixes_for_a_function_that_has_the_name_of_a_removed_one():
    module = parse("""
n = symbols("n", lower=1)

@graph_func
def main(
    x: Tensor[(3, 4), f32], y: Tensor[(4, 5), f32], z: Tensor[(n, 4), f32], w: Tensor[(4, 6), f32]
):
    u = matmul(x, y)
    v = matmul(z, w)
    return u
""")
    sch = Schedule(module, Target("simt", arch="sm_80"))
    sch.legalize()
    removed = sch.get_loop("i", "matmul_1")
    sch.split(removed, (None, 16))
    sch.dead_code()
    (call,) = (b.value for b in sch.module.graph().bindings)
    clone = sch.clone_function("matmul", (BindingRef("main", call.uid, call.name),))
    assert clone.function == removed.function
    step = Tensorize(LoopRef(clone.function, removed.uid), "cuda.fill.f32.16x8")
    assert step.target == sch.get_loop("i", clone)
    assert any(problem.fixes for problem in sch.check(step))
