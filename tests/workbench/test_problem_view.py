"""Requirements, excerpts and errors as problems."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.schedules.primitives.loops.split import Split
from tilewright.workbench.problem_view import error_view

if TYPE_CHECKING:
    from tests.workbench.conftest import Client


def test_illegal_step_has_its_requirement_excerpt_and_fix(matmul: Client) -> None:
    matmul.select_loop("j")
    update = matmul.apply("split", factors="(2, 3)")
    assert update.problems is not None
    (problem,) = update.problems
    assert (problem.title, problem.tone) == ("Illegal step", "warn")
    assert problem.message.startswith("split(loop=j, factors=(2, 3)) does not apply: the product")
    assert problem.requirement == Split.Requires.COVERS_EXTENT.key
    assert problem.requires == Split.Requires.COVERS_EXTENT.text
    assert problem.hint.startswith("fix: split(loop=j, factors=")
    assert [handle.name for handle in problem.where] == ["j"]
    (excerpt,) = problem.excerpts
    (mark,) = excerpt.marks
    line = next(line.text for line in excerpt.lines if line.number == mark.line)
    assert line[mark.column - 1 : mark.end - 1] == "j"
    assert "Traceback" in problem.traceback


def test_several_problems_of_a_step_are_listed(matmul: Client) -> None:
    matmul.select_loop("k")
    key = matmul.suggestion("parallel").key
    update = matmul.send("apply", key=key, values={}, head=matmul.session.schedule.head.id)
    assert update.problems is not None
    (problem,) = update.problems
    assert "k" in problem.message
    assert problem.excerpts


def test_internal_error_has_a_title_and_a_traceback() -> None:
    view = error_view(ValueError(""), "p1", job="Compile")
    assert (view.title, view.message) == ("Internal error: ValueError", "")
    assert view.location == "Compile"
    assert view.excerpts == []
    assert "ValueError" in view.traceback
