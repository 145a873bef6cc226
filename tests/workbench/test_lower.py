"""The texts below the loop level of a GPU that is not there; what is said when a job is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tilewright as tw

from tests.workbench.scenarios import RACE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.workbench.conftest import Client


@pytest.mark.parametrize("kind", ["simt", "cuda"])
def test_a_kernel_for_a_gpu_shows_what_a_gpu_would_run(
    connect: Callable[..., Client], kind: str
) -> None:
    """The emulator has neither LLVM nor assembly text; both tabs said *Compiling* for ever."""
    target = tw.Target(kind, arch="sm_90a")
    program = RACE.replace("@prim_func", f'@prim_func(target=Target("{kind}", arch="sm_90a"))')
    page = connect(tw.Schedule(tw.parse(program), target), target)
    page.send("lower", kind="llvm")
    page.session.jobs.wait()
    assert page.session.shown.reports == ()
    assert page.session.shown.lowered is not None
    assert "define ptx_kernel void @lost" in page.session.shown.lowered.text
    page.send("lower", kind="assembly")
    page.session.jobs.wait()
    assert ".target sm_90a" in page.session.shown.lowered.text


def test_the_result_of_a_job_is_said(matmul: Client) -> None:
    """A live region reads it to those who do not see the badge."""
    for what, said in (("compile", "compiled: matches the interpreter"), ("time", "timed: matmul")):
        matmul.send("run", what=what, function="")
        matmul.session.jobs.wait()
        told = [u.applied for u, _ in matmul.heard if u.applied is not None]
        assert said in told[-1].message
