import pytest

from tilewright.ir.symbolic import var
from tilewright.schedules.primitives.loops.split import Split

from tests.schedules.helpers import CHAIN, MATMUL, rejected, schedule


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
    rejected(sch, Split(i, (None, None)), 2, "2 of them None")
    rejected(sch, Split(i, (8,)), 2, "got 1 factors")
    rejected(sch, Split(j, (None, 0)), 3, "factor 0")
    rejected(sch, Split(j, (None, var("q"))), 3, "not a term over the symbols")
    problem = rejected(sch, Split(i, (2, 4)), 4, "product of the factors is 8")
    assert problem.counterexample is not None
    assert problem.counterexample["M"] > 8
    rejected(sch, Split(j, (5, 4)), 4, "is less than the extent 24")
    sch.parallel(i)
    rejected(sch, Split(i, (None, 2)), 1, "is parallel")
    sch.annotate(j, "note", 1)
    rejected(sch, Split(j, (None, 2)), 1, "annotations (note)")


def test_a_factor_that_may_be_zero_is_rejected():
    sch = schedule(CHAIN)
    (i,) = sch.get_loops(sch.get_block("first"))
    problem = rejected(sch, Split(i, (None, sch.state.loop(i).extent)), 3, "not provably positive")
    assert problem.counterexample == {"n": 0}


def test_stale_and_foreign_handles_are_explained():
    sch = schedule(MATMUL)
    i, _, _ = sch.get_loops(sch.get_block("mm"))
    sch.split(i, factors=(None, 2))
    problem = rejected(sch, Split(i, (None, 2)), 0, "replaced it by i_0, i_1")
    assert problem.where == (i,)
    missing = type(i)("matmul", 999, "q")
    rejected(sch, Split(missing, (None, 2)), 0, "no loop 'q'; loops of function 'matmul' are i_0")
    elsewhere = type(i)("matmull", 1, "i")
    rejected(sch, Split(elsewhere, (None, 2)), 0, "no function 'matmull'")


@pytest.mark.parametrize("size", [8, 16])
def test_tiles_are_suggested(size):
    sch = schedule(MATMUL)
    i, _, _ = sch.get_loops(sch.get_block("mm"))
    assert Split(i, (None, size)) in [c.step for c in sch.suggest(i) if c.applicable]
