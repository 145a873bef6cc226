from __future__ import annotations

import pytest

import tilewright as tw
from tilewright.schedules import Schedule

from tests.static_html import check_static

PROGRAM = """
@prim_func
def scale(x: Buffer[(32, 8), f32], y: Out[(32, 8), f32]):
    for i in range(32):
        for j in range(8):
            with block("y"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, vj] * 2.0
"""


@pytest.fixture
def schedule() -> Schedule:
    return Schedule(tw.parse(PROGRAM))


def lines(schedule: Schedule) -> list[str]:
    """Return the lines of the tree without ids."""
    return [line[:2] + line[12:] for line in str(schedule.history).splitlines()]


def test_a_chain(schedule):
    schedule.get_block("y")
    assert lines(schedule) == ["  start", "> y = sch.get_block(name='y')"]
    assert repr(schedule.history).startswith("<History: 2 versions, head <Version ")


def test_branches_are_indented_beside_that_of_the_head(schedule):
    i, j = schedule.get_loops(schedule.get_block("y"))
    start = schedule.head.id
    schedule.split(i, factors=(None, 8))
    schedule.goto(start)
    schedule.unroll(j)
    schedule.unroll(i)
    schedule.goto(start)
    schedule.vectorize(j)
    assert lines(schedule)[3:] == [
        "  |- i_0, i_1 = sch.split(loop=i, factors=(None, 8))",
        "  |- sch.unroll(loop=j)",
        "  |  sch.unroll(loop=i)",
        "> sch.vectorize(loop=j)",
    ]
    schedule.undo()
    assert lines(schedule)[2].startswith("> ")


def test_the_shown_prefix_is_accepted_by_goto(schedule):
    schedule.get_block("y")
    first = str(schedule.history).splitlines()[0].split()[0]
    assert schedule.goto(first).parent is None


def test_a_composite_step_is_one_line(schedule):
    i, j = schedule.get_loops(schedule.get_block("y"))
    schedule.tile(i, j, sizes=(8, 4))
    assert lines(schedule)[-1].startswith("> sch.tile(i=i, j=j, sizes=(8, 4))  (")


def test_it_is_a_sequence_of_versions(schedule):
    schedule.get_block("y")
    history = schedule.history
    assert len(history) == 2
    assert history[-1] is schedule.head
    assert history[:1] == (history[0],)
    assert list(history) == [history[0], history[1]]
    assert history == schedule.history == tuple(history)
    assert hash(history) == hash(schedule.history)
    assert history != schedule.branch()


def test_a_long_history_prints(schedule):
    i, _ = schedule.get_loops(schedule.get_block("y"))
    for _ in range(400):
        schedule.annotate(i, key="k", value=1)
        schedule.unannotate(i, key="k")
    assert len(str(schedule.history).splitlines()) == len(schedule.history)
    check_static(schedule.history._repr_html_())


def test_names_are_escaped(schedule):
    i, _ = schedule.get_loops(schedule.get_block("y"))
    schedule.annotate(i, key="k", value="</pre>\x1b")
    assert "</pre>" in check_static(schedule.history._repr_html_())
