"""Texts of the open function after each stage of lowering."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

import tilewright as tw
from tilewright.codegen.errors import KernelError
from tilewright.codegen.stage_results import StageResults

from tests.codegen.tensorized import FMA_AVX512
from tests.workbench.scenarios import RACE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tilewright.workbench.protocol import Lowered

    from tests.workbench.conftest import Client


def lowered(client: Client, stage: str) -> Lowered:
    client.send("lower", stage=stage)
    client.session.jobs.wait(60)
    found = client.session.view.lowered
    assert found is not None
    assert (found.function, found.stage) == (client.session.view.open, stage)
    return found


def stages(client: Client) -> list[str]:
    updates = [u.stages for u, _ in client.received if u.stages is not None]
    return [stage.name for stage in updates[-1]]


def test_stages_depend_on_the_level_of_the_open_function(network: Client) -> None:
    assert stages(network) == ["host", "llvm", "llvm_optimized", "assembly"]
    network.send("open", function="twice")
    names = stages(network)
    assert names[0] == "scheduled"
    assert "to_thread" in names
    assert "host" not in names


def test_every_stage_has_a_text(matmul: Client) -> None:
    texts = {stage: lowered(matmul, stage) for stage in stages(matmul)}
    assert {found.problem for found in texts.values()} == {None}
    assert "@matmul" in texts["llvm"].text
    assert "ret" in texts["assembly"].text
    assert texts["llvm_optimized"].previous == texts["llvm"].text


def test_previous_text_is_that_of_the_stage_before(matmul: Client) -> None:
    names = stages(matmul)
    at = names.index("realize_blocks")
    before, after = lowered(matmul, names[at - 1]), lowered(matmul, names[at])
    assert after.previous == before.text
    assert after.text != after.previous
    assert lowered(matmul, "to_thread").previous == "", "a translation has no common lines"


def test_graph_function_has_host_code(network: Client) -> None:
    assert "launch" in lowered(network, "host").text


def test_text_of_a_state_is_cached(matmul: Client) -> None:
    first = lowered(matmul, "scheduled")
    jobs = len(matmul.session.jobs.view())
    assert lowered(matmul, "scheduled") == first
    assert len(matmul.session.jobs.view()) == jobs
    assert matmul.received[-1][0].lowered == first, "a page that lost the text receives it again"


def test_text_follows_the_head(matmul: Client) -> None:
    first = lowered(matmul, "realize_blocks")
    matmul.select_loop("j")
    matmul.apply("split", "(None, 8)")
    second = lowered(matmul, "realize_blocks")
    assert second.state == matmul.session.schedule.head.id != first.state
    assert second.text != first.text


def test_unknown_stage_is_an_error_with_the_list(matmul: Client) -> None:
    update = matmul.send("lower", stage="realize_block")
    assert update.problems is not None
    assert update.problems[0].title == "Unknown pass"
    assert "realize_blocks" in update.problems[0].message + update.problems[0].hint


def test_failed_stage_has_the_error_and_no_entry_in_problems(
    connect: Callable[..., Client],
) -> None:
    target = tw.Target("cpu", arch="x86_64", features=("avx2",))
    kernel = FMA_AVX512.scheduled().module
    page = connect(tw.Schedule(kernel, target), target)
    failed = lowered(page, "llvm")
    assert failed.problem is not None
    assert "avx512" in failed.problem.message
    assert failed.problem.traceback
    assert page.session.document.problems == ()
    assert [job.state for job in page.session.jobs.view()] == ["done"]


def test_last_text_stays_if_lowering_fails(matmul: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    good = lowered(matmul, "to_thread")
    matmul.select_loop("j")
    matmul.apply("split", "(None, 8)")

    def failing(*_: object) -> str:
        raise KernelError("no registers are left")

    monkeypatch.setattr(StageResults, "text", failing)
    failed = lowered(matmul, "to_thread")
    assert failed.problem is not None
    assert failed.problem.message == "no registers are left"
    assert (failed.state, failed.text) == (good.state, good.text)
    monkeypatch.undo()
    assert lowered(matmul, "to_thread").problem is None


def test_lowering_does_not_block_measuring(matmul: Client) -> None:
    release = threading.Event()
    matmul.session.jobs.start("Lower", lambda _progress: release.wait(5) or None, "lower")
    update = matmul.send("run", action="measure", function="")
    release.set()
    matmul.session.jobs.wait(60)
    assert update.problems is None
    assert matmul.session.document.measurement is not None


@pytest.mark.parametrize("kind", ["simt", "cuda"])
def test_gpu_kernels_have_nvptx_and_ptx_texts(connect: Callable[..., Client], kind: str) -> None:
    """The emulator itself produces neither LLVM nor assembly text."""
    target = tw.Target(kind, arch="sm_90a")
    program = RACE.replace("@prim_func", f'@prim_func(target=Target("{kind}", arch="sm_90a"))')
    page = connect(tw.Schedule(tw.parse(program), target), target)
    assert "define ptx_kernel void @lost" in lowered(page, "llvm").text
    assert page.session.document.problems == ()
    assert ".target sm_90a" in lowered(page, "assembly").text
