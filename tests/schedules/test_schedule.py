"""The head of a schedule: undo, redo, branches, versions, threads."""

import threading
from dataclasses import replace

import pytest

from tilewright.ir.module import Module
from tilewright.ir.script import parse
from tilewright.ir.verify import IllFormedProgramError
from tilewright.nearest import UnknownAttributeError
from tilewright.schedules import Schedule, ScheduleError, StaleEditError, StepError
from tilewright.schedules.primitives.annotate.annotate import Annotate
from tilewright.schedules.primitives.loops.parallel import Parallel
from tilewright.schedules.problem import ParameterError
from tilewright.schedules.state import StaleHandleError
from tilewright.schedules.suggest_names import NotFoundError
from tilewright.target.effective import TargetMismatchError
from tilewright.target.target import Target

from tests.schedules.helpers import CHAIN, MATMUL, schedule
from tests.static_html import check_static


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


def test_another_target_keeps_all_versions_and_changes_their_checks():
    sch = schedule(MATMUL)
    before = sch.head.id
    sch.parallel(sch.get_loops(sch.get_block("mm"))[0])
    heads: list[str] = []
    sch.subscribe(lambda node: heads.append(node.id))
    after = sch.head.id
    sch.retarget(Target("cpu", features=("avx2",)))
    assert sch.head.id == after
    assert heads == [after]
    assert sch.state.target == Target("cpu", features=("avx2",))
    assert {node.state.target for node in sch.history} == {sch.state.target}
    assert sch.goto(before).state.target == sch.state.target
    stated = MATMUL.replace("@prim_func", "@prim_func(target=Target('cuda'))")
    with pytest.raises(TargetMismatchError, match="is for"):
        schedule(stated).retarget("cpu")


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
    assert caught.value.problems[0].requirement is Parallel.Requires.ITERATION_KINDS
    assert caught.value.to_json()["details"]["problems"][0]["requirement"] == "iteration_kinds"


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


def test_methods_have_names_documents_and_signatures():
    assert Schedule.split.__name__ == "split"
    assert "Split a loop" in (Schedule.split.__doc__ or "")
    import inspect

    assert list(inspect.signature(Schedule.split).parameters)[:3] == ["self", "loop", "factors"]


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


def test_show_prints_the_program_a_function_or_the_properties_of_a_part(capsys):
    sch = schedule(MATMUL)
    i, j, _ = sch.get_loops(sch.get_block("mm"))
    sch.show()
    assert capsys.readouterr().out == f"{sch}\n"
    sch.show("matmul")
    assert capsys.readouterr().out == f"{sch.module.prim('matmul')}\n"
    sch.show(i)
    assert capsys.readouterr().out == f"{sch.describe(i)}\n"
    sch.show(highlight=[i, j])
    assert "^" in capsys.readouterr().out
    with pytest.raises(NotFoundError, match="no name 'q'"):
        sch.show(highlight="q")


def test_diff_compares_the_head_with_other_versions():
    sch = schedule(MATMUL)
    i, _, _ = sch.get_loops(sch.get_block("mm"))
    before = sch.head
    sch.parallel(i)
    expected = sch.diff()
    assert expected.titles == ("start", "head")
    assert "-    for i in range(M):\n+    for i in parallel(M):" in str(expected)
    assert str(sch.diff(before)).startswith(f"--- {before.id[:8]}\n")
    assert sch.diff(before.id[:10]).counts == expected.counts
    assert sch.diff(before.state.module).counts == expected.counts
    assert not sch.diff(sch.branch())


def test_diff_rejects_other_types():
    with pytest.raises(ParameterError, match="expected a program, a schedule or a version"):
        schedule(MATMUL).diff(3)


def test_reprs_are_one_line():
    sch = schedule(MATMUL)
    i, _, _ = sch.get_loops(sch.get_block("mm"))
    assert repr(i) == str(i) == "<loop i of matmul>"
    assert repr(sch.head) == f"<Version {sch.head.id[:8]}: get_loops>"
    assert repr(sch.state).startswith("<State: 2 steps on <Module: ")
    suggestions = sch.suggest(i)
    assert repr(suggestions[0]).startswith("<Suggestion ")
    assert str(suggestions[0].step) == suggestions[0].step.title()
    assert str(suggestions).splitlines()[0].split() == ["step", "legal", "first", "problem"]
    check_static(suggestions._repr_html_())
    check_static(sch._repr_html_())
    sch.parallel(i)
    verified = sch.verify()
    assert repr(verified).endswith("comparisons agree>")
    check_static(verified._repr_html_())


def test_names_may_contain_surrogates():
    name = "zero\ud800"
    function = replace(schedule(MATMUL).module.prim("matmul"), name=name)
    made = Schedule(Module().with_functions(function))
    assert len(made.history) == 1
    assert "\ud800" not in str(made)


def test_an_ill_formed_program_is_not_scheduled():
    text = "@prim_func\ndef f(x: Buffer[(8,), f32]):\n    for i in range(8): x[i] = 0.0"
    module = parse(text, check=False)
    with pytest.raises(IllFormedProgramError, match="has access mode 'in' but is written"):
        Schedule(module)


def test_an_attribute_that_a_handle_lacks():
    loop = schedule(MATMUL).get_loop("i")
    with pytest.raises(UnknownAttributeError, match="LoopRef has no attribute") as caught:
        loop.extent  # noqa: B018
    assert "sch.state.loop(h) is its node" in caught.value.hint
