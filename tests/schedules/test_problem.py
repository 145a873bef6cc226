"""The texts of problems: requirement, counter-example, excerpt of the program, and fixes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tilewright.schedules import (
    FunctionRef,
    LoopRef,
    Problem,
    StepError,
    TraceMismatchError,
    from_python,
)
from tilewright.schedules.gallery import ATTEMPTS
from tilewright.schedules.primitives.loops.split import Split
from tilewright.schedules.problem import Problems
from tilewright.schedules.requirement import CommonRequirement

from tests.schedules.helpers import CHAIN, MATMUL, SAME, schedule
from tests.static_html import check_static

if TYPE_CHECKING:
    from collections.abc import Callable

    from tilewright.schedules import Schedule

GRAPH = """
@graph_func
def main(x: Tensor[(4, 8), f32]):
    y = relu(x)
    z = exp(y)
    return z
"""

TWICE = """
@prim_func
def twice(x: Buffer[(8, 4), i32], y: Out[(8, 4), i32], z: Out[(4,), i32]):
    for i in range(8):
        for j in range(4):
            with block("first"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, vj]
    for k in range(4):
        with block("second"):
            vk = spatial(k)
            z[vk] = x[0, vk]
"""


def stale(sch: Schedule) -> object:
    i = sch.get_loop("i")
    sch.split(i, factors=(None, 8))
    return sch.parallel(i)


def other_extent(sch: Schedule) -> object:
    sch.bind("i", "threadIdx.x")
    return sch.bind("k", "threadIdx.x")


CASES = {
    "split": (MATMUL, lambda sch: sch.split("i", factors=(3, 4))),
    "parallel": (MATMUL, lambda sch: sch.parallel("k")),
    "vectorize": (MATMUL, lambda sch: sch.vectorize("i")),
    "same_element": (SAME, lambda sch: sch.parallel("j")),
    "reorder": (TWICE, lambda sch: sch.reorder(("i", "k"))),
    "cache_read": (MATMUL, lambda sch: sch.cache_read("mm", "C")),
    "compute_at": (CHAIN, lambda sch: sch.compute_at("first", "k")),
    "inline": (CHAIN, lambda sch: sch.compute_inline("third")),
    "stale": (MATMUL, stale),
    "missing": (MATMUL, lambda sch: sch.parallel(LoopRef("matmul", 10**6, "q"))),
    "bind": (TWICE, other_extent),
    "graph": (GRAPH, lambda sch: sch.plan_memory("main")),
    "level": (GRAPH, lambda sch: sch.collapse_dims("main")),
}


def failure(name: str) -> StepError:
    """Return the error of a case."""
    program, attempt = CASES[name]
    with pytest.raises(StepError) as caught:
        attempt(schedule(program))
    return caught.value


@pytest.mark.parametrize("name", CASES)
def test_text(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"problem/{name}.txt", str(failure(name)))


def test_equal_excerpts_are_printed_once(golden: Callable[[str, str], None]) -> None:
    attempt = next(a for a in ATTEMPTS if a.title == "Operands that are not in fragments")
    sch = attempt.prepared()
    with pytest.raises(StepError) as caught:
        sch.apply(attempt.step(sch))
    error = caught.value
    assert len(error.problems) > 1
    assert len(set(error.excerpts())) == len(error.excerpts())
    golden("problem/several.txt", str(error))


def test_html(golden: Callable[[str, str], None]) -> None:
    golden("problem/split.html", failure("split")._repr_html_())


def test_json() -> None:
    data = failure("split").to_json()
    (problem,) = data["details"]["problems"]
    assert problem["requirement"] == "covers_extent"
    assert problem["requires"] == Split.Requires.COVERS_EXTENT.text
    (excerpt,) = problem["excerpts"]
    assert data["excerpts"] == [excerpt]
    assert excerpt["function"] == "matmul"
    line, column, end = excerpt["marks"][0]
    text = dict(excerpt["lines"])[line]
    assert text[column - 1 : end - 1] == "i"


def test_names_cannot_inject_html_or_control_characters() -> None:
    hostile = "<script>alert('x')</script>\x1b[31m"
    fix = Split(LoopRef("f", 1, hostile), (None, 8))
    values = {hostile: 3}
    problem = Problem(CommonRequirement.TARGETS_EXIST, hostile, (), {}, values, (fix,))
    text = check_static(StepError(hostile, (problem,))._repr_html_())
    assert text.count("<script>alert('x')</script>\\x1b[31m") == 4


def test_problems_of_a_legal_step() -> None:
    sch = schedule(MATMUL)
    found = sch.check(Split(sch.get_loop("i"), (None, 8)))
    assert found == ()
    assert str(found) == found.to_html() == "no problems"


def test_checked_problems_show_the_program() -> None:
    sch = schedule(MATMUL)
    found = sch.check(Split(sch.get_loop("i"), (3, 4)))
    assert "for i in range(M):" in str(found)
    assert "<mark" in found._repr_html_()


def test_excerpts_are_made_only_for_display(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    monkeypatch.setattr(
        "tilewright.schedules.problem.excerpts_of", lambda *where: made.append(where) or ()
    )
    sch = schedule(MATMUL)
    sch.check(Split(sch.get_loop("i"), (3, 4)))
    with pytest.raises(StepError) as caught:
        sch.split("i", factors=(3, 4))
    assert made == []
    assert "requires:" in str(caught.value)
    assert len(made) == 1


def test_problems_without_a_program_have_no_excerpts() -> None:
    problem = Problem(CommonRequirement.TARGETS_EXIST, "no function 'f'", (FunctionRef("f"),))
    assert Problems((problem,)).excerpts() == ((),)
    assert str(StepError("legalize(function=f)", (problem,))) == (
        "legalize(function=f) does not apply:\n"
        "- no function 'f'\n"
        "  requires: the target of each handle exists [targets_exist]"
    )


def test_the_error_of_a_replay_shows_the_program() -> None:
    sch = schedule(MATMUL)
    text = 'k = sch.get_loop(name="k")\nsch.parallel(loop=k)'
    outcome = sch.replay(from_python(text))
    with pytest.raises(TraceMismatchError) as caught:
        outcome.completed()
    assert caught.value.excerpts() == failure("parallel").excerpts()
    assert "for k in range(16):" in str(caught.value)
