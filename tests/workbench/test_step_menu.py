"""The menu of steps for a selection, and its forms."""

from __future__ import annotations

from tilewright.workbench.step_menu import StepMenu

from tests.schedules.helpers import MATMUL, schedule


def test_a_parameter_with_fixed_values_offers_them():
    sch = schedule(MATMUL)
    state = sch.state
    menu = StepMenu.of(state, sch.get_loop("i"))
    key = next(k for k, s in menu.suggestions.items() if s.step.verb() == "split")
    (view,) = [item for item in menu.to_view(state) if item.key == key]
    fields = {field.name: field for field in view.fields}
    assert fields["tail"].choices == ["'predicate'", "'epilogue'", "'perfect'"]
    assert fields["tail"].value == "'predicate'"
    assert not fields["tail"].required
    step = menu.step(key, {"tail": "'epilogue'"}, state)
    assert step.title() == "split(loop=i, factors=(None, 8), tail='epilogue')"


def test_a_suggestion_does_not_repeat_the_function_of_the_selection():
    sch = schedule(MATMUL)
    menu = StepMenu.of(sch.state, sch.get_loop("i"))
    labels = {view.step: view.label for view in menu.to_view(sch.state)}
    assert labels["specialize"].startswith("symbol=")
    assert not any("function=" in label for label in labels.values())
