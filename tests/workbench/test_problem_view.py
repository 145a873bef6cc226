"""Requirements, excerpts and errors as problems."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tilewright as tw
from tilewright.schedules.primitives.loops.split import Split
from tilewright.workbench.problem_view import error_view

from tests.workbench.conftest import MATMUL

if TYPE_CHECKING:
    from collections.abc import Callable

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
    update = matmul.apply("parallel")
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


def launch_problems(client: Client) -> list[tuple[str, str]]:
    """Return the requirements and fixes of the problems of the open kernel."""
    hello = client.hello()
    return [(p.requirement, p.hint) for p in hello.problems if p.title == "Launch problem"]


def test_problems_of_a_launch_follow_the_steps(connect: Callable[..., Client]) -> None:
    sch = tw.Schedule(tw.parse(MATMUL))
    client = connect(sch, tw.Target("cuda", arch="sm_80"))
    assert launch_problems(client) == []  # without a schedule it gets the default schedule
    (i, j, _) = sch.get_loops("C")
    sch.reorder((j, i))
    (found,) = launch_problems(client)
    assert found[0] == "bound"
    assert found[1].startswith("fix: bind(loop=j, thread='blockIdx.x')")
    sch.bind(j, "blockIdx.x")
    assert launch_problems(client) == []


def test_a_limit_of_the_target_is_a_problem_of_the_kernel(connect: Callable[..., Client]) -> None:
    wide = """
@prim_func(scheduled=True)
def f(x: Buffer[(2048,), f32], y: Out[(2048,), f32]):
    for i in thread(2048, "threadIdx.x"):
        y[i] = x[i]
"""
    client = connect(wide, tw.Target("cuda", arch="sm_80"))
    axis, threads = client.hello().problems
    assert axis.numbers == {"axis": "threadIdx.x", "extent": "2048", "limit": "1024"}
    assert axis.location.startswith("kernel 'f' on target cuda sm_80")
    assert [handle.name for handle in axis.where] == ["i"]
    assert axis.excerpts
    client.send("dismiss", key=axis.key)
    assert [p.key for p in client.hello().problems] == [threads.key]


def test_cpu_kernels_have_no_problems_of_a_launch(matmul: Client) -> None:
    matmul.select_loop("j")
    matmul.apply("split")
    assert launch_problems(matmul) == []
