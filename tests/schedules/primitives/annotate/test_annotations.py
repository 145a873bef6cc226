"""Tests of annotate and unannotate."""

from tilewright.schedules.primitives.annotate.annotate import Annotate
from tilewright.schedules.primitives.annotate.unannotate import Unannotate

from tests.schedules.helpers import CHAIN, rejected, schedule


def test_annotations_are_added_and_removed():
    sch = schedule(CHAIN)
    block = sch.get_block("first")
    (loop,) = sch.get_loops(block)
    sch.annotate(block, "weight", 2)
    sch.annotate(loop, "prefetch", 4)
    assert sch.state.block(block).annotations == (("weight", 2),)
    assert "prefetch" in str(sch)
    assert Unannotate(loop, "prefetch") in [c.step for c in sch.suggest(loop)]
    sch.unannotate(loop, "prefetch")
    assert sch.state.loop(loop).annotations == ()


def test_requirements():
    sch = schedule(CHAIN)
    block = sch.get_block("first")
    rejected(
        sch,
        Annotate(block, "not a name", 1),
        Annotate.Requires.IDENTIFIER_KEY,
        "not a Python identifier",
    )
    sch.annotate(block, "weight", 2)
    problem = rejected(
        sch,
        Annotate(block, "weight", 3),
        Annotate.Requires.NEW_KEY,
        "already has the annotation weight=2",
    )
    assert problem.fixes == (Unannotate(block, "weight"),)
    rejected(sch, Unannotate(block, "wait"), Unannotate.Requires.KEY_EXISTS, "no annotation 'wait'")
