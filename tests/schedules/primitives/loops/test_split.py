import itertools
import random

import numpy as np
import pytest

import tilewright as tw
from tilewright.ir.interpreter import run_prim
from tilewright.ir.symbolic import var
from tilewright.schedules import StepError, from_json, to_json, to_python
from tilewright.schedules.primitives.loops.split import Split
from tilewright.schedules.primitives.loops.vectorize import Vectorize
from tilewright.schedules.primitives.specialize.assume import Assume
from tilewright.schedules.problem import ParameterError
from tilewright.schedules.requirement import CommonRequirement

from tests.schedules.equality import same_after
from tests.schedules.helpers import CHAIN, MATMUL, SCAN, rejected, schedule
from tests.strategies import outputs, symbols_of

TAILS = ("predicate", "epilogue", "perfect")


def test_a_symbolic_loop_gets_a_predicate(golden):
    sch = schedule(MATMUL)
    i, j, _ = sch.get_loops(sch.get_block("mm"))
    sch.split(i, factors=(None, 14))
    sch.split(j, factors=(None, 3, 4))
    assert [s.decisions.get("guard") for s in sch.trace.steps] == [None, None, "predicate", "none"]
    golden("split.txt", str(sch))
    assert sch.verify().required().compared[0].exact


def test_any_factor_may_be_derived():
    sch = schedule(MATMUL)
    _, j, _ = sch.get_loops(sch.get_block("mm"))
    j0, j1 = sch.split(j, factors=(5, None))
    assert [str(sch.state.loop(r).extent) for r in (j0, j1)] == ["5", "5"]
    assert sch.verify().ok


def test_factors_may_be_symbolic():
    sch = schedule(MATMUL)
    i, _, _ = sch.get_loops(sch.get_block("mm"))
    i0, i1 = sch.split(i, factors=("M", 1))
    assert [str(sch.state.loop(r).extent) for r in (i0, i1)] == ["M", "1"]
    assert sch.trace[-1].decisions == {"guard": "none"}


def test_split_of_a_fused_loop_leaves_no_division():
    sch = schedule(MATMUL)
    i, j, _ = sch.get_loops(sch.get_block("mm"))
    fused = sch.fuse((i, j))
    sch.split(fused, factors=("M", 24))
    bindings = [str(v.binding) for v in sch.state.block(sch.get_block("mm")).iters]
    assert not any("//" in b or "%" in b for b in bindings), bindings


def test_requirements():
    sch = schedule(MATMUL)
    i, j, _ = sch.get_loops(sch.get_block("mm"))
    rejected(sch, Split(i, (None, None)), Split.Requires.FACTOR_COUNT, "2 of them None")
    rejected(sch, Split(i, (8,)), Split.Requires.FACTOR_COUNT, "got 1 factors")
    rejected(sch, Split(j, (None, 0)), Split.Requires.POSITIVE_FACTORS, "factor 0")
    rejected(
        sch,
        Split(j, (None, var("q"))),
        Split.Requires.POSITIVE_FACTORS,
        "not a term over the symbols",
    )
    problem = rejected(
        sch, Split(i, (2, 4)), Split.Requires.COVERS_EXTENT, "product of the factors is 8"
    )
    assert problem.counterexample is not None
    assert problem.counterexample["M"] > 8
    rejected(sch, Split(j, (5, 4)), Split.Requires.COVERS_EXTENT, "is less than the extent 24")
    problem = rejected(
        sch,
        Split(i, (None, 8), "perfect"),
        Split.Requires.PERFECT,
        "the extent M of loop 'i' may not be a multiple of 8, the product of the factors",
    )
    assert problem.counterexample is not None
    assert problem.counterexample["M"] % 8
    assert [fix.title() for fix in problem.fixes] == [
        "split(loop=i, factors=(None, 8))",
        "split(loop=i, factors=(None, 8), tail='epilogue')",
        "assume(function=matmul, symbol='M', multiple_of=8)",
    ]
    rejected(sch, Split(j, (None, 5), "perfect"), Split.Requires.PERFECT, "is not a multiple of 5")
    rejected(sch, Split(j, (4, 5), "perfect"), Split.Requires.PERFECT, "is different from")
    problem = rejected(
        sch, Split(j, (5, 5), "epilogue"), Split.Requires.WITHIN_EXTENT, "is greater than"
    )
    assert problem.fixes == (Split(j, (None, 5), "epilogue"),)
    rejected(sch, Split(i, (2, 2), "epilogue"), Split.Requires.WITHIN_EXTENT, "greater than")
    sch.parallel(i)
    rejected(sch, Split(i, (None, 2)), Split.Requires.SERIAL, "is parallel")
    sch.annotate(j, "note", 1)
    rejected(sch, Split(j, (None, 2)), Split.Requires.SERIAL, "annotations (note)")


def test_a_factor_that_may_be_zero_is_rejected():
    sch = schedule(CHAIN)
    (i,) = sch.get_loops(sch.get_block("first"))
    problem = rejected(
        sch,
        Split(i, (None, sch.state.loop(i).extent)),
        Split.Requires.POSITIVE_FACTORS,
        "not provably positive",
    )
    assert problem.counterexample == {"n": 0}
    matmul = schedule(MATMUL)
    i, *_ = matmul.get_loops(matmul.get_block("mm"))
    below = Split(i, (None, matmul.state.loop(i).extent - 1))
    rejected(matmul, below, Split.Requires.POSITIVE_FACTORS, "not provably positive")


def test_stale_and_foreign_handles_are_explained():
    sch = schedule(MATMUL)
    i, _, _ = sch.get_loops(sch.get_block("mm"))
    sch.split(i, factors=(None, 2))
    problem = rejected(
        sch, Split(i, (None, 2)), CommonRequirement.TARGETS_EXIST, "replaced it by i_0, i_1"
    )
    assert [ref.name for ref in problem.where] == ["i", "i_0", "i_1"]
    missing = type(i)("matmul", 999, "q")
    rejected(
        sch,
        Split(missing, (None, 2)),
        CommonRequirement.TARGETS_EXIST,
        "no loop 'q'; loops of function 'matmul' are i_0",
    )
    elsewhere = type(i)("matmull", 1, "i")
    rejected(
        sch, Split(elsewhere, (None, 2)), CommonRequirement.TARGETS_EXIST, "no function 'matmull'"
    )


@pytest.mark.parametrize("size", [8, 16])
def test_tiles_are_suggested(size):
    sch = schedule(MATMUL)
    i, _, _ = sch.get_loops(sch.get_block("mm"))
    assert Split(i, (None, size)) in [c.step for c in sch.suggest(i) if c.applicable]


def test_the_default_tail_is_not_written():
    sch = schedule(MATMUL)
    i, j, _ = sch.get_loops(sch.get_block("mm"))
    sch.split(i, factors=(None, 4), tail="predicate")
    sch.split(j, factors=(None, 7), tail="epilogue")
    assert to_python(sch.trace).splitlines()[-2:] == [
        "i_0, i_1 = sch.split(loop=i, factors=(None, 4))",
        "j_0, j_1 = sch.split(loop=j, factors=(None, 7), tail='epilogue')",
    ]
    again = schedule(MATMUL)
    again.replay(from_json(to_json(sch.trace))).completed()
    assert str(again) == str(sch)


def test_a_misspelled_tail_is_reported_with_the_similar_one():
    sch = schedule(MATMUL)
    with pytest.raises(ParameterError, match=r"'epilog' .*'tail'; did you mean 'epilogue'\?"):
        sch.split("i", (None, 4), tail="epilog")


def test_an_epilogue_follows_the_complete_tiles(golden):
    sch = schedule(MATMUL)
    i, _, k = sch.get_loops(sch.get_block("mm"))
    sch.split(k, (None, 4, 3), tail="epilogue")
    results = sch.split(i, (None, 8), tail="epilogue")
    golden("split_epilogue.txt", str(sch))
    assert [s.decisions for s in sch.trace.steps if s.op == "split"] == [{"guard": "epilogue"}] * 2
    assert sch.verify(runs=8).required().ok
    assert [loop.name for loop in results] == ["i_0", "i_1"]
    assert sch.get_loops(sch.get_block("mm"))[:2] == results
    assert str(sch.state.loop(sch.get_loop("i_tail")).extent) == "M % 8"
    assert sch.get_loops(sch.get_block("mm_tail"))[-1].name == "k_tail"
    with pytest.raises(StepError, match="replaced it by i_0, i_1"):
        sch.vectorize(i)


def test_existing_handles_refer_to_the_complete_tiles():
    sch = schedule(MATMUL)
    block = sch.get_block("mm")
    i, j, k = sch.get_loops(block)
    i0, i1 = sch.split(i, (None, 8), tail="epilogue")
    assert sch.get_loops(block) == (i0, i1, j, k)
    sch.reorder(i1, k)
    sch.split(sch.get_loop("i_tail"), (None, 2))
    assert sch.verify(runs=6).required().ok


@pytest.mark.parametrize("tail", ["epilogue", "perfect"])
def test_an_exact_split_has_neither_guard_nor_epilogue(tail):
    sch = schedule(MATMUL)
    sch.assume("matmul", "M", multiple_of=16)
    sch.split("i", (None, 8), tail=tail)
    sch.split("j", (4, 6), tail=tail)
    assert [s.decisions for s in sch.trace.steps if s.op == "split"] == [{"guard": "none"}] * 2
    assert len(sch.get_blocks("matmul")) == 1
    assert str(sch.state.loop(sch.get_loop("i_0")).extent) == "M // 8"
    assert str(sch.state.block(sch.get_block("mm")).predicate) == "True"


def test_the_assumption_makes_a_split_perfect():
    sch = schedule(MATMUL)
    i, _, _ = sch.get_loops(sch.get_block("mm"))
    *_, fix = sch.check(Split(i, (None, 4, 2), "perfect"))[0].fixes
    assert isinstance(fix, Assume)
    sch.apply(fix)
    sch.split(i, (None, 4, 2), tail="perfect")
    assert len(sch.get_blocks("matmul")) == 1


def test_a_tile_larger_than_the_extent_has_only_the_epilogue():
    sch = schedule(SCAN)
    sch.split("i", (None, 16), tail="epilogue")
    assert [str(sch.state.loop(sch.get_loop(n)).extent) for n in ("i_0", "i_1", "i_tail")] == [
        "0",
        "16",
        "7",
    ]
    assert sch.verify().required().ok


def test_all_factors_may_be_stated_with_an_epilogue():
    sch = schedule(MATMUL)
    sch.split("j", (2, 5), tail="epilogue")
    assert [str(sch.state.loop(sch.get_loop(n)).extent) for n in ("j_0", "j_1", "j_tail")] == [
        "2",
        "5",
        "14",
    ]
    assert sch.verify().required().ok


def test_a_loop_with_a_negative_extent_has_no_epilogue():
    sch = schedule("""
n = symbols("n", lower=0)

@prim_func
def head(x: Buffer[(n,), i32], y: InOut[(n,), i32]):
    for i in range(n - 5):
        y[i] = x[i]
""")
    sch.split("i", (None, 4), tail="epilogue")
    check_sizes(sch, ("n",), (0, 1, 4, 5, 6, 9, 11))


FUSED_REDUCTION = """
n = symbols("n", lower=1)

@prim_func
def rows(x: Buffer[(n, 8), i32], y: Out[(n,), i32]):
    for ik in range(n * 8):
        with block("y"):
            vi, vk = spatial(n, ik // 8), reduce(8, ik % 8)
            with init(): y[vi] = 0
            y[vi] += x[vi, vk]
"""

TRIANGLE = """
n = symbols("n", lower=1)

@prim_func
def columns(x: Buffer[(n, n), i32], y: Out[(n,), i32]):
    for k in range(n):
        for i in range(k + 1):
            with block("y"):
                vi, vk = spatial(n, i), reduce(n, k)
                with init(): y[vi] = 0
                y[vi] += x[vi, vk]
"""


@pytest.mark.parametrize(
    ("text", "loop", "message"),
    [
        (FUSED_REDUCTION, "ik", "iterates spatial and reduction iteration variables of block 'y'"),
        (TRIANGLE, "k", "the init of block 'y' runs in the first iteration of its reduction"),
    ],
)
def test_an_init_that_may_run_in_either_part_is_rejected(text, loop, message):
    sch = schedule(text)
    step = Split(sch.get_loop(loop), (None, 5), "epilogue")
    problem = rejected(sch, step, Split.Requires.INIT_BEFORE_TILES, message)
    assert problem.fixes == (Split(step.loop, (None, 5)),)


def test_an_init_that_runs_in_both_parts_needs_no_epilogue_if_tiles_are_complete():
    sch = schedule(FUSED_REDUCTION)
    assert sch.check(Split(sch.get_loop("ik"), (None, 4), "epilogue")) == ()


INITS = """
@prim_func
def repeated(x: Buffer[(8,), i32], y: InOut[(8,), i32]):
    for i in range(3):
        for j in range(3):
            for k in range(j + 1):
                with block("y"):
                    vi, vk = spatial(8, ROW), reduce(8, COLUMN)
                    with init(): y[vi] = 0
                    y[vi] = max(y[vi], x[vk])
"""


@pytest.mark.parametrize(
    ("row", "column", "loop", "message"),
    [
        ("i", "k % 2", "k", "init would not run as often in loop k_0"),
        ("i + k", "k % 2", "j", "a partial tile of loop 'j' would add some"),
        ("i + k", "k % 2", "k", "a partial tile of loop 'k' would add some"),
    ],
)
def test_splits_that_change_inits_are_rejected(row, column, loop, message):
    sch = schedule(INITS.replace("ROW", row).replace("COLUMN", column))
    step = Split(sch.get_loop(loop), (None, 2))
    rejected(sch, step, Split.Requires.SAME_INITS, message)


def test_a_fused_loop_is_split_into_rows_and_columns():
    sch = schedule(FUSED_REDUCTION)
    sch.split(sch.get_loop("ik"), (None, 4))
    assert sch.verify().required().compared[0].exact


OUTER = """
@prim_func
def outer(x: Buffer[(16,), i32], y: InOut[(8,), i32]):
    for j in range(2):
        for i in range(5):
            for k in range(2):
                with block("y"):
                    vi, vk = spatial(8, i // 2 + j), reduce(16, i * 2 + k)
                    with init(): y[vi] = 0
                    y[vi] += x[vk]
"""


def test_a_split_that_moves_an_init_out_of_a_loop_is_rejected():
    sch = schedule(OUTER)
    step = Split(sch.get_loop("i"), (None, 2))
    rejected(sch, step, Split.Requires.SAME_INITS, "would not run as often in loop j")


BAND = """
n = symbols("n", lower=0)

@prim_func
def band(n: Int, x: Buffer[(n * 4 + 8,), f32], y: InOut[(n + 1,), f32]):
    for i in range(n + 1):
        for r in range(SIZE):
            with block("y"):
                vi, vr = spatial(n + 1, i), reduce(SIZE, r)
                guard(CONDITION)
                with init(): y[vi] = 0.0
                y[vi] += x[vi * 4 + vr]
"""


def band(condition, size):
    return schedule(BAND.replace("CONDITION", condition).replace("SIZE", str(size)))


@pytest.mark.parametrize(
    ("condition", "size", "factors", "added"),
    [
        ("i * 4 + r < n * 4", 5, (None, 4), "i < n"),
        ("i * 2 + r < n * 2", 3, (None, 2), "i < n"),
        ("i + r >= 1", 3, (4, None), "i > 0"),
    ],
)
def test_conditions_on_a_reduction_remain_such_in_complete_tiles(condition, size, factors, added):
    """If all iterations of the tiles agree on a condition, it would keep the init from running."""
    sch = band(condition, size)
    step = Split(sch.get_loop("r"), factors, "epilogue")
    rejected(sch, step, Split.Requires.SAME_INITS, f"of block 'y' becomes {added}")


@pytest.mark.parametrize("condition", ["i * 4 + r < n * 4", "i + r >= 1", "i + r < n", "i < n"])
@pytest.mark.parametrize("size", [1, 3, 4, 5, 8])
@pytest.mark.parametrize("tail", TAILS)
def test_accepted_splits_of_a_band_keep_the_inits(condition, size, tail):
    accepted = 0
    for factors in ((None, 1), (None, 2), (None, 3), (None, 4), (2, None), (4, None)):
        sch = band(condition, size)
        step = Split(sch.get_loop("r"), factors, tail)
        if not sch.check(step):
            accepted += 1
            sch.perform(step)
            check_sizes(sch, ("n",), (0, 1, 3))
    assert accepted


GUARDED = """
n = symbols("n", lower=0)

@prim_func
def guarded(x: Buffer[(n, n), i32], y: InOut[(n, n), i32]):
    t = alloc((n,), i32)
    for i in range(n):
        for k in range(n):
            with block("t"):
                vi, vk = spatial(i), reduce(k)
                guard(i % 3 != 1)
                with init(): t[vi] = 1
                t[vi] += x[vi, vk]
        for j in range(n):
            with block("y"):
                vi, vj = spatial(i), spatial(j)
                guard(i % 3 != 1)
                y[vi, vj] = y[vi, vj] - t[vi] * x[vi, vj]
"""

SUM = """
n, m = symbols("n m", lower=0)

@prim_func
def total(x: Buffer[(n, m), i32], y: Out[(m,), i32], z: Out[(), i32]):
    for k in range(n):
        for i in range(m):
            with block("y"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = 0
                y[vi] += x[vk, vi]
    for p in range(n):
        for q in range(m):
            with block("z"):
                vp, vq = reduce(p), reduce(q)
                with init(): z[()] = 7
                z[()] += x[vp, vq] * y[vq]
"""

PREFIX = """
n = symbols("n", lower=0)

@prim_func
def prefix(x: Buffer[(n,), i32], y: InOut[(n + 1,), i32]):
    for i in range(n):
        with block("step"):
            vi = ordered(i)
            y[vi + 1] = y[vi] + x[vi]
"""

PROGRAMS = {"matmul": MATMUL, "chain": CHAIN, "guarded": GUARDED, "sum": SUM, "prefix": PREFIX}
SIZES = (0, 1, 2, 5, 7, 13, 17)


def check_sizes(sch, names, sizes):
    """Compare the results before and after all steps at the product of some sizes."""
    before, after = sch.history[0].state.module.prims[0], sch.module.prims[0]
    symbols = {v.name: v for v in symbols_of(before)}
    for values in itertools.product(sizes, repeat=len(names)):
        env = {symbols[n]: v for n, v in zip(names, values, strict=True)}
        if any(v < (symbol.lower or 0) for symbol, v in env.items()):
            continue
        old, new = outputs(before, run_prim, env), outputs(after, run_prim, env)
        for a, b in zip(old, new, strict=True):
            assert np.array_equal(a, b), f"{env}\n{sch}"


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_stay_the_same_at_all_kinds_of_sizes(name, seed):
    rng = random.Random(seed)
    sch = schedule(PROGRAMS[name])
    function = sch.module.prims[0].name
    applied = dict.fromkeys(TAILS, 0)
    while sum(applied.values()) < 4:
        loops = [loop for b in sch.get_blocks(function) for loop in sch.get_loops(b)]
        factors: list[int | str | None] = [rng.choice([1, 2, 3, 4, 8]) for _ in range(2)]
        factors.insert(rng.randint(0, 2), None)
        loop, tail = rng.choice(loops), TAILS[(seed + sum(applied.values())) % 3]
        if tail == "perfect":
            factors = [sch.state.loop(loop).extent, 1]
        step = Split(loop, tuple(factors[: rng.choice([2, 3])]), tail)
        if step.factors.count(None) > 1 or sch.check(step):
            step = Split(loop, (None, 3, 2), rng.choice(["predicate", "epilogue"]))
        if not sch.check(step):
            sch.apply(step)
            applied[step.tail] += 1
    check_sizes(sch, [v.name for v in symbols_of(sch.history[0].state.module.prims[0])], SIZES)


@pytest.mark.parametrize("name", ["matmul", "sum", "guarded"])
def test_native_code_agrees_with_the_interpreter(name):
    sch = schedule(PROGRAMS[name])
    function = sch.module.prims[0]
    for block in sch.get_blocks(function.name):
        for loop in sch.get_loops(block):
            if sch.state.loop(loop).kind == "serial" and "_" not in loop.name:
                step = Split(loop, (None, 4), "epilogue")
                if not sch.check(step):
                    _, inner = sch.apply(step).results
                    if sch.check(Vectorize(inner)) == ():
                        sch.vectorize(inner)
    exe = tw.compile(sch)
    symbols = symbols_of(function)
    for size in (0, 1, 3, 4, 13):
        env = {v: max(size + k, v.lower or 0) for k, v in enumerate(symbols)}

        def run(_func, arrays, _scalars):
            exe[function.name].into(*arrays)

        old, new = outputs(function, run_prim, env), outputs(function, run, env)
        for a, b in zip(old, new, strict=True):
            assert np.array_equal(a, b), env


SUFFIXES = """
n = symbols("n", lower=0)

@prim_func
def suffixes(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        for k in range(n - i):
            with block("sum"):
                vi, vk = spatial(i), reduce(n, k)
                with init(): y[vi] = 0.0
                y[vi] += x[vk]
"""


def test_iterations_of_a_reduction_do_not_imply_the_guard_of_its_init():
    """That ``k in range(n - i)`` runs implies ``i < n``, but the init runs without ``k``."""
    sch = schedule(SUFFIXES)
    outer, _ = sch.split("i", factors=(None, 4))
    sch.split(outer, factors=(None, 2))
    assert "i_0_0 * 8 + i_0_1 * 4 + i_1 < n" in str(sch)
    check_sizes(sch, ["n"], (0, 1, 2, 5, 17))


@pytest.mark.parametrize("extent", [0, -3])
def test_the_init_of_a_reduction_without_iterations_is_not_guarded(extent):
    sch = schedule(f"""
@prim_func
def total(x: Buffer[(8,), i32], y: Out[(1,), i32]):
    for i in range(1):
        for k in range({extent}):
            with block("y"):
                vi, vk = spatial(i), reduce(8, k)
                with init(): y[vi] = 7
                y[vi] += x[vk]
""")
    sch.split("k", factors=(2, 3))
    for module in (sch.module, tw.parse(str(sch))):
        y = np.zeros(1, np.int32)
        run_prim(module.prim("total"), [np.arange(8, dtype=np.int32), y])
        assert y.tolist() == [7]


@pytest.mark.parametrize(
    ("head", "reduced", "length"), [("", 0, "m"), ("m: Int, ", "m", "max(m, 1)")]
)
def test_iterations_of_a_reduction_do_not_imply_the_extent_of_a_loop_of_its_init(
    head, reduced, length
):
    sch = schedule(f"""
m = symbols("m", lower=0)

@prim_func
def total({head}x: Buffer[(8,), i32], y: Out[({length},), i32]):
    for r in range({reduced}):
        for j in range({length}):
            with block("y"):
                vr, vj = reduce(8, r), spatial(j)
                guard(r < 8)
                with init(): y[vj] = 7
                y[vj] += x[vr]
""")
    sch.split("j", factors=(2, None), tail="epilogue")
    func = sch.module.prim("total")
    for m in (0, 1, 2, 3, 7):
        y = np.zeros(m if length == "m" else max(m, 1), np.int32)
        run_prim(func, [np.zeros(8, np.int32), y], {v.name: m for v in func.scalar_params})
        assert y.tolist() == [7] * y.size


def test_an_inner_loop_may_have_more_iterations_where_the_tail_is_guarded():
    """The first part has one iteration of `j`, of which `j % 3` is `j`; the tile has four."""
    sch = schedule("""
n = symbols("n", lower=1)

@prim_func
def f(x: Buffer[(n,), f32], y: InOut[(n,), f32]):
    for j in range(n):
        for l in range(j % 3):
            with block("y"):
                vj, vl = spatial(j), reduce(n, l)
                y[vj] = y[vj] + x[vl]
""")
    sch.loop_partition("j", 1)
    sch.split("j", (None, 4))
    assert sch.verify().required().ok
    tw.parse(str(sch))


@pytest.mark.parametrize("compare", ["!=", "=="])
def test_a_branch_on_an_equality_depends_on_the_split_variable(compare):
    """The variable of the loop of 3 iterations matters only between the ends of its range."""
    text = """
n = symbols("n", lower=0)

@prim_func
def f(x: Buffer[(n,), f32], y: InOut[(n,), f32]):
    for i in range(n):
        if i COMPARE 1:
            with block("y"):
                vi = spatial(i)
                y[vi] = x[vi] + y[vi]
"""
    sch = tw.Schedule(tw.parse(text.replace("COMPARE", compare)))
    _, inner = sch.split("i", factors=(None, 3))
    sch.split(inner, factors=(None, 4))
    assert f"{compare} 1" in str(sch)
    assert sch.verify().required()


@pytest.mark.parametrize("factors", [(None, "m"), ("m", None)])
def test_a_factor_is_the_name_of_a_dimension(factors):
    same_after(
        """
n, m = symbols("n, m", lower=1)
@prim_func
def f(x: Buffer[(n, m), f32], y: Out[(n, m), f32]):
    for i in range(n):
        for j in range(m):
            with block("y"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, vj] * 2.0
""",
        lambda s: s.split("i", factors=factors),
    )
