"""The head of a schedule: undo, redo, branches, versions, threads."""

import threading

import pytest

from tilewright.schedules import Schedule, ScheduleError, StaleEditError, StepError
from tilewright.schedules.primitives.annotate.annotate import Annotate
from tilewright.schedules.primitives.loops.parallel import Parallel
from tilewright.schedules.problem import ParameterError
from tilewright.schedules.state import StaleHandleError
from tilewright.schedules.suggest_names import NotFoundError

from tests.schedules.helpers import CHAIN, MATMUL, schedule


def test_undo_and_redo():
    sch = schedule(MATMUL)
    start = str(sch)
    i, _, _ = sch.get_loops(sch.get_block("mm"))
    sch.parallel(i)
    done = str(sch)
    assert done != start
    sch.undo()
    assert str(sch) == start
    assert str(Schedule(sch.redo().state.module)) == done
    with pytest.raises(ScheduleError, match="nothing to redo"):
        sch.redo()
    for _ in range(3):
        sch.undo()
    with pytest.raises(ScheduleError, match="nothing to undo"):
        sch.undo()
    with pytest.raises(ScheduleError, match="the root of a history has no step"):
        _ = sch.head.step


def test_versions_are_known_by_their_content():
    one, two = schedule(MATMUL), schedule(MATMUL)
    for sch in (one, two):
        i, j, _ = sch.get_loops(sch.get_block("mm"))
        sch.parallel(i)
        sch.vectorize(j)
    assert one.head.id == two.head.id
    assert one.head.id != schedule(CHAIN).head.id
    one.undo()
    _, _, k = one.get_loops(one.get_block("mm"))
    one.unroll(k)
    assert one.head.id != two.head.id


def test_branches_share_the_history_and_not_the_head():
    sch = schedule(MATMUL)
    i, j, _ = sch.get_loops(sch.get_block("mm"))
    other = sch.branch()
    sch.parallel(i)
    other.parallel(j)
    assert sch.state.loop(i).kind == "parallel"
    assert other.state.loop(i).kind == "serial"
    assert {n.id for n in sch.history} == {n.id for n in other.history}
    sch.goto(other.head.id)
    assert str(sch) == str(other)
    with pytest.raises(ScheduleError, match="0 versions have an id"):
        sch.goto("nonsense")


def test_a_failing_step_changes_nothing():
    sch = schedule(MATMUL)
    *_, k = sch.get_loops(sch.get_block("mm"))
    head = sch.head
    with pytest.raises(StepError) as caught:
        sch.parallel(k)
    assert sch.head is head
    assert caught.value.problems[0].requirement == 3
    assert caught.value.to_json()["details"]["problems"][0]["requirement"] == 3


def test_error_text(golden):
    sch = schedule(MATMUL)
    i, _, _ = sch.get_loops(sch.get_block("mm"))
    with pytest.raises(StepError) as caught:
        sch.split(i, factors=(3, 4))
    golden("error.txt", str(caught.value))


def test_a_stale_edit_reports_both_heads():
    sch = schedule(MATMUL)
    i, j, _ = sch.get_loops(sch.get_block("mm"))
    seen = sch.head.id
    sch.parallel(i)
    with pytest.raises(StaleEditError) as caught:
        sch.apply(Parallel(j), expected=seen)
    assert caught.value.details["expected"] == seen
    assert caught.value.details["head"] == sch.head.id


def test_two_threads_editing_one_schedule():
    sch = schedule(MATMUL)
    mm = sch.get_block("mm")
    outcomes: list[str] = []
    gate = threading.Barrier(2)

    def edit(name: str) -> None:
        gate.wait()
        for k in range(20):
            while True:
                try:
                    sch.apply(Annotate(mm, f"{name}{k}", k))
                except StaleEditError:
                    outcomes.append("stale")
                else:
                    break

    threads = [threading.Thread(target=edit, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    notes = dict(sch.state.block(mm).annotations)
    assert len(notes) == 40
    assert len(sch.trace) == 41


def test_watchers_are_called_after_every_move():
    sch = schedule(MATMUL)
    seen: list[str] = []
    end = sch.subscribe(lambda node: seen.append(node.id))
    mm = sch.get_block("mm")
    sch.undo()
    sch.redo()
    assert len(seen) == 3
    end()
    sch.get_loops(mm)
    assert len(seen) == 3


def test_names_may_stand_for_handles():
    sch = schedule(CHAIN)
    sch.compute_inline("first")
    sch.annotate("j", "note", 1)
    assert dict(sch.state.loop(sch.get_loop("j")).annotations) == {"note": 1}
    with pytest.raises(NotFoundError, match="no block 'frist'; blocks of the module are"):
        sch.compute_inline("frist")


def test_queries():
    sch = schedule(CHAIN)
    first, second, third = sch.get_blocks("chain")
    assert sch.get_consumers(first) == (second,)
    assert sch.get_producers(third) == (second,)
    assert sch.get_output_blocks("chain") == (third,)
    (loop,) = sch.get_loops(second)
    assert sch.get_child_blocks(loop) == (second,)
    assert sch.get_loop("j") == loop
    assert sch.get_function("chain").function == "chain"
    assert [f.function for f in sch.get_functions()] == ["chain"]
    assert sch.get_functions(origin="linear") == ()
    with pytest.raises(NotFoundError, match="no block 'mm'"):
        sch.get_block("mm")
    with pytest.raises(
        NotFoundError, match="no function 'chains'; functions of the module are chain"
    ):
        sch.get_function("chains")
    with pytest.raises(StaleHandleError, match="no block"):
        sch.state.block(type(first)("chain", 99, "q"))


def test_the_same_name_in_several_functions_asks_for_the_function():
    text = CHAIN + CHAIN.replace('n = symbols("n", lower=0)', "").replace("chain", "other")
    sch = schedule(text)
    with pytest.raises(NotFoundError, match="in several functions: chain, other"):
        sch.get_block("first")
    assert sch.get_block("first", "other").function == "other"


def test_a_schedule_of_another_type_is_rejected():
    with pytest.raises(ScheduleError, match="expected a Module or a PrimFunc, got str"):
        Schedule("double.tw")  # pyright: ignore[reportArgumentType]


def test_a_parameter_of_the_wrong_type():
    sch = schedule(MATMUL)
    i, _, _ = sch.get_loops(sch.get_block("mm"))
    with pytest.raises(ParameterError, match="invalid value 'eight' for parameter 'factors'"):
        sch.split(i, factors="eight")


@pytest.mark.parametrize(
    ("call", "wrong"),
    [
        (lambda sch, i, j: sch.reorder(i, j), "reorder: too many positional arguments"),
        (lambda sch, i, _: sch.split(i), "split: missing a required argument: 'factors'"),
        (lambda sch, i, _: sch.split(i, factor=4), "split: "),
    ],
)
def test_an_invalid_call_reports_the_signature(call, wrong):
    sch = schedule(MATMUL)
    i, j, _ = sch.get_loops(sch.get_block("mm"))
    with pytest.raises(ParameterError, match=wrong) as caught:
        call(sch, i, j)
    verb = wrong.partition(":")[0]
    wanted = {"reorder": "(loops: tuple[LoopRef, ...])", "split": "(loop: LoopRef, factors: "}
    assert caught.value.hint.startswith(f"usage: {verb}{wanted[verb]}")
    assert len(sch.trace) == 2


def test_methods_have_names_documents_and_signatures():
    assert Schedule.split.__name__ == "split"
    assert "Split a loop" in (Schedule.split.__doc__ or "")
    import inspect

    assert list(inspect.signature(Schedule.split).parameters) == ["self", "loop", "factors"]


def test_suggestions_put_legal_steps_first():
    sch = schedule(MATMUL)
    i, _, _ = sch.get_loops(sch.get_block("mm"))
    found = sch.suggest(i)
    order = [c.applicable for c in found]
    assert order == sorted(order, reverse=True)
    assert {"parallel", "split", "fuse", "reorder"} <= {
        c.step.verb() for c in found if c.applicable
    }
    blocked = next(c for c in found if c.step.verb() == "vectorize")
    assert blocked.problems[0].fixes
