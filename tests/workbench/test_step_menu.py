"""The menu of steps for a selection, its forms, and the catalog of all steps."""

from __future__ import annotations

import pytest

import tilewright as tw
from tilewright.schedules import Primitive
from tilewright.schedules.registry import composites, primitives
from tilewright.workbench.protocol_steps import StepData
from tilewright.workbench.selection import to_view
from tilewright.workbench.step_data import FormError, to_data, to_step
from tilewright.workbench.step_menu import catalog, checked_view, menu_view

from tests.workbench.conftest import MATMUL


def schedule(text: str) -> tw.Schedule:
    return tw.Schedule(tw.parse(text), tw.Target("cpu"))


def test_a_parameter_with_fixed_values_offers_them() -> None:
    sch = schedule(MATMUL)
    loop = sch.get_loop("i")
    menu = menu_view(sch.state, sch.head.id, loop)
    view = next(s for s in menu.suggestions if s.step == "split")
    fields = {field.name: field for field in view.fields}
    assert fields["tail"].choices == ["'predicate'", "'epilogue'", "'perfect'"]
    assert fields["tail"].value == "'predicate'"
    assert not fields["tail"].required
    assert fields["loop"].kinds == ["loop"]
    assert fields["factors"].kinds == []
    values = {**view.data.values, "tail": "'epilogue'"}
    data = StepData("split", "matmul", view.data.handles, values)
    step = to_step(data, sch.state)
    assert step.title() == "split(loop=i, factors=(None, 8), tail='epilogue')"


def test_a_suggestion_does_not_repeat_the_function_of_the_selection() -> None:
    sch = schedule(MATMUL)
    menu = menu_view(sch.state, sch.head.id, sch.get_loop("i"))
    labels = {view.step: view.label for view in menu.suggestions}
    assert labels["specialize"].startswith("symbol=")
    assert not any("function=" in label for label in labels.values())


def test_keys_are_unique_and_the_same_for_the_same_selection() -> None:
    sch = schedule(MATMUL)
    first, second = (
        [s.key for s in menu_view(sch.state, sch.head.id, sch.get_loop("i")).suggestions]
        for _ in range(2)
    )
    assert first == second
    assert len(set(first)) == len(first)


def test_every_suggestion_is_restored_from_its_data() -> None:
    sch = schedule(MATMUL)
    state = sch.state
    for selection in (sch.get_loop("i"), sch.get_block("C"), sch.get_buffer("A")):
        for suggestion in menu_view(state, sch.head.id, selection).suggestions:
            step = to_step(suggestion.data, state)
            assert to_data(step, selection.function, state) == suggestion.data
            checked = checked_view(suggestion.data, state)
            assert [p.message for p in checked.problems] == [p.message for p in suggestion.problems]


def test_names_in_forms_are_parts_of_the_function_of_the_kind_that_a_parameter_accepts() -> None:
    """The block and the buffer of the product have the same name."""
    sch = schedule(MATMUL)
    function = sch.get_loop("i").function
    data = StepData("cache_write", function, {}, {"block": "C", "buffer": "C"})
    step = to_step(data, sch.state)
    assert [type(h).__name__ for h in step.handles()] == ["BlockRef", "BufferRef"]
    loops = StepData("reorder", function, {}, {"loops": "(j, i)"})
    assert to_step(loops, sch.state).title() == "reorder(loops=(j, i))"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (StepData("no_step", "matmul", {}, {}), "no step 'no_step'"),
        (StepData("get_block", "matmul", {}, {}), "does not change the program"),
        (StepData("split", "matmul", {}, {"x": "1"}), "split has no parameter 'x'"),
        (StepData("split", "matmul", {}, {}), "loop: a value is required"),
        (StepData("split", "matmul", {}, {"loop": " "}), "loop: a value is required"),
        (StepData("parallel", "matmul", {}, {"loop": "k" * 501}), "the value has 501 characters"),
        (StepData("parallel", "matmul", {}, {"loop": "(i"}), "is not a valid value"),
        (StepData("parallel", "matmul", {}, {"loop": "nowhere"}), "nowhere"),
        (StepData("parallel", "nowhere", {}, {"loop": "7"}), "invalid value 7"),
    ],
)
def test_invalid_data_is_a_problem_of_the_step(data: StepData, message: str) -> None:
    (problem,) = checked_view(data, schedule(MATMUL).state).problems
    assert message in problem.message


def test_a_part_that_does_not_exist_any_more_is_named() -> None:
    sch = schedule(MATMUL)
    loop = to_view(sch.state, sch.get_loop("i"))
    data = StepData("parallel", loop.function, {"loop": [loop]}, {})
    assert isinstance(to_step(data, sch.state), Primitive)
    sch.fuse((sch.get_loop("i"), sch.get_loop("j")))
    with pytest.raises(FormError, match="loop: loop 'i' does not exist any more"):
        to_step(data, sch.state)


def test_the_catalog_lists_every_step_that_changes_programs() -> None:
    listed = {info.step: info for info in catalog()}
    assert set(listed) == {cls.verb() for cls in (*primitives(), *composites())}
    for info in listed.values():
        assert info.summary
        assert all(field.value or field.required for field in info.fields)
    annotate = {field.name: field for field in listed["annotate"].fields}
    assert annotate["target"].kinds == ["loop", "block"]
    assert listed["lower_graph"].composite
