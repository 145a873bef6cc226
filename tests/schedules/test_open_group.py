"""Groups of steps that a with statement encloses."""

from __future__ import annotations

import threading

import pytest

from tilewright.schedules import ScheduleError, StaleEditError, StepError, TraceError

from tests.schedules.helpers import MATMUL, schedule


def test_steps_of_a_with_statement_are_one_version():
    sch = schedule(MATMUL)
    before = sch.head
    with sch.composite("cut", loop="j", sizes=(2, None)):
        j_0, _ = sch.split("j", factors=(None, 8))
        sch.returns(j_0)
    (group,) = sch.trace.groups
    assert dict(group.arguments)["sizes"] == (2, None)
    assert (group.op, group.names, group.edited) == ("cut", ("j_0",), False)
    assert sch.undo() is before
    sch.redo()
    assert [s.op for s in sch.trace.folded().steps] == ["cut"]


def test_arguments_of_a_known_step_are_converted():
    sch = schedule(MATMUL)
    with sch.composite("tile", "edited", i="i", j="j", sizes=[4, 8]):
        sch.split("i", factors=(None, 4))
    (group,) = sch.trace.groups
    assert [name for name, _ in group.arguments] == ["i", "j", "sizes"]
    assert dict(group.arguments)["sizes"] == (4, 8)
    assert group.edited


def test_a_failure_moves_back():
    sch = schedule(MATMUL)
    before = sch.head
    with pytest.raises(StepError), sch.composite("cut"):
        sch.split("j", factors=(None, 8))
        sch.split("i", factors=(None, 0))
    assert sch.head is before
    with pytest.raises(TraceError, match="group cut has no steps"), sch.composite("cut"):
        pass
    with (
        pytest.raises(TraceError, match="were undone"),
        sch.composite("cut", loop=sch.get_loop("i")),
    ):
        sch.undo()
    assert sch.head.step.op == "get_loop"


def test_misuse_is_named():
    sch = schedule(MATMUL)
    with pytest.raises(ScheduleError, match="outside of a group"):
        sch.returns()
    with (
        pytest.raises(TraceError, match="arguments without a name: 'x'"),
        sch.composite("cut", "x"),
    ):
        pass
    message = "group cut: {} is not a valid value of argument 'x'"
    with pytest.raises(TraceError, match=message), sch.composite("cut", x=[{}]):
        pass


def test_a_group_of_a_step_that_was_changed_since_is_recorded():
    sch = schedule(MATMUL)
    with sch.composite("tile", outer="i", sizes=[4]):
        sch.split("i", factors=(None, 4))
    assert sch.trace.groups[0].arguments == (("outer", "i"), ("sizes", (4,)))


def test_groups_of_two_threads_do_not_overlap():
    sch = schedule(MATMUL)
    errors = []

    def enter():
        try:
            with sch.composite("other"):
                sch.split("i", factors=(None, 4))
        except StaleEditError as error:
            errors.append(error.message)

    with sch.composite("cut"):
        sch.split("j", factors=(None, 8))
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        sch.unroll("j_1")
    assert errors == ["group other would overlap group cut of another thread"]
    assert [g.op for g in sch.trace.groups] == ["cut"]
    enter()
    assert [g.op for g in sch.trace.groups] == ["cut", "other"]
