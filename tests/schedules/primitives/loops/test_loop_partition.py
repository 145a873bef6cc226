from tilewright.schedules.apply import prepared
from tilewright.schedules.primitives.loops.loop_partition import LoopPartition

from tests.schedules.helpers import CHAIN, MATMUL, rejected, schedule


def step(sch, loop, point):
    return prepared(sch.state, LoopPartition(loop, point))


def test_the_main_part_needs_no_predicate(golden):
    sch = schedule(MATMUL)
    i, _, _ = sch.get_loops(sch.get_block("mm"))
    i0, _ = sch.split(i, factors=(None, 14))
    main, _ = sch.loop_partition(i0, "M // 14")
    assert main == i0
    golden("loop_partition.txt", str(sch))
    assert str(sch.state.block(sch.get_block("mm")).predicate) == "True"
    assert sch.verify().required().compared[0].exact


def test_a_reduction_continues_in_the_second_part():
    sch = schedule(MATMUL)
    *_, k = sch.get_loops(sch.get_block("mm"))
    sch.loop_partition(k, 5)
    assert sch.state.block(sch.get_block("mm_1")).init is None
    assert sch.verify().required().compared[0].exact


def test_requirements():
    sch = schedule(MATMUL)
    i, j, k = sch.get_loops(sch.get_block("mm"))
    problem = rejected(sch, step(sch, i, 7), LoopPartition.Requires.POINT_IN_RANGE, "past the end")
    assert problem.counterexample is not None
    rejected(sch, step(sch, j, -1), LoopPartition.Requires.POINT_IN_RANGE, "less than 0")
    rejected(
        sch,
        LoopPartition(j, sch.state.loop(i).var),
        LoopPartition.Requires.POINT_IN_RANGE,
        "not a term over the symbols",
    )
    rejected(
        sch,
        step(sch, k, 0),
        LoopPartition.Requires.INIT_IN_FIRST_PART,
        "may have to run in the second part",
    )
    sch.unroll(k)
    rejected(sch, step(sch, k, 4), LoopPartition.Requires.SERIAL, "is unrolled")


def test_suggested_at_the_last_full_tile():
    sch = schedule(CHAIN)
    (j,) = sch.get_loops(sch.get_block("second"))
    j0, _ = sch.split(j, factors=(None, 8))
    found = [c.step for c in sch.suggest(j0) if isinstance(c.step, LoopPartition)]
    assert [str(s.point) for s in found] == ["n // 8"]
    sch.apply(found[0])
    assert sch.verify().ok
