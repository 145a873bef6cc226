"""Compiling, checking and timing run off the caller's thread, tell progress and can be stopped."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tilewright.codegen.runtime.isolated import confidence
from tilewright.workbench.jobs import Jobs

if TYPE_CHECKING:
    from tests.workbench.conftest import Client


def test_compile_checks_against_the_interpreter(matmul: Client) -> None:
    matmul.select_loop("j")
    matmul.apply("split", "(None, 8)")
    matmul.apply("vectorize")
    matmul.send("run", what="compile", function="")
    matmul.session.jobs.wait()
    verdict = matmul.session.shown.verdict
    assert verdict is not None
    assert verdict.agrees
    assert 0 < verdict.error < verdict.bound
    assert verdict.state == matmul.session.schedule.head.id
    last = [u.history for u, _ in matmul.heard if u.history is not None][-1]
    assert last.nodes[-1].verified is True


def test_a_function_that_a_step_made_is_checked_too(matmul: Client) -> None:
    matmul.select_loop("i")
    matmul.apply("specialise")
    made = next(f for f in matmul.session.state.module.functions if f != "matmul")
    matmul.send("open", function=made)
    matmul.send("run", what="compile", function="")
    matmul.session.jobs.wait()
    assert matmul.session.shown.reports == ()
    verdict = matmul.session.shown.verdict
    assert verdict is not None
    assert verdict.agrees


def test_time_lists_the_kernels(network: Client) -> None:
    network.send("run", what="time", function="")
    network.session.jobs.wait()
    timing = network.session.shown.timing
    assert timing is not None
    assert timing.function == "main"
    assert [(k.function, k.calls) for k in timing.kernels] == [("twice", 2)]
    assert timing.low <= timing.median <= timing.high
    assert timing.shapes == "n = 6"
    states = [job.state for u, _ in network.heard for job in u.jobs or ()]
    assert states[0] == "running"
    assert states[-1] == "done"


def test_a_kernel_is_timed_by_itself_at_its_callers_sizes(network: Client) -> None:
    network.send("open", function="twice")
    network.send("run", what="time", function="twice")
    network.session.jobs.wait()
    timing = network.session.shown.timing
    assert timing is not None
    assert (timing.function, timing.shapes) == ("twice", "n = 6")
    assert [k.function for k in timing.kernels] == ["twice"]


def test_lower_texts_are_of_the_open_function(matmul: Client) -> None:
    matmul.send("lower", kind="llvm")
    matmul.session.jobs.wait()
    assert matmul.session.shown.lowered is not None
    assert "@matmul" in matmul.session.shown.lowered.text
    matmul.send("lower", kind="assembly")
    matmul.session.jobs.wait()
    assert matmul.session.shown.lowered.kind == "assembly"
    assert "ret" in matmul.session.shown.lowered.text


def test_a_job_stops_where_it_is_cancelled() -> None:
    started, stopped = threading.Event(), threading.Event()
    jobs = Jobs(lambda: None, lambda _title, _error: None)

    def endless(progress) -> None:
        progress.on_cancel(stopped.set)
        started.set()
        while True:
            progress(-1.0, "still at it")

    key = jobs.start("endless", endless)
    assert started.wait(5)
    assert jobs.busy
    jobs.cancel(key)
    jobs.wait(5)
    assert stopped.is_set()
    assert [job.state for job in jobs.view()] == ["cancelled"]
    assert not jobs.busy


def test_a_failing_job_reports_its_error() -> None:
    seen: list[tuple[str, Exception]] = []
    jobs = Jobs(lambda: None, lambda title, error: seen.append((title, error)))

    def failing(_progress) -> None:
        raise ValueError("no luck")

    jobs.start("try", failing)
    jobs.wait(5)
    assert [(title, str(error)) for title, error in seen] == [("try", "no luck")]
    assert [job.state for job in jobs.view()] == ["failed"]


def test_a_second_job_waits_for_the_first(matmul: Client) -> None:
    release = threading.Event()
    matmul.session.jobs.start("slow", lambda _progress: release.wait(5) or None)
    update = matmul.send("run", what="time", function="")
    release.set()
    matmul.session.jobs.wait()
    assert update.reports is not None
    assert update.reports[0].hint == "wait for it, or cancel it"


def test_the_interval_is_of_order_statistics() -> None:
    draw = np.random.default_rng(1)
    hits = sum(
        low <= 0 <= high
        for low, high in (confidence(list(draw.standard_normal(40))) for _ in range(400))
    )
    assert 370 <= hits <= 400


ENDLESS = """
n = symbols("n", lower=1)

@prim_func
def endless(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        y[i] = x[i]
    for i1 in range(n):
        for k in range(4611686018427387904):
            y[i1] = y[i1] * 0.5 + 1.0
"""


@pytest.mark.parametrize("what", ["compile", "time"])
def test_cancelling_is_acknowledged_at_once_and_over_soon(connect, what: str) -> None:
    """Compile verifies too, so the interpreter is in the middle of a program that never ends."""
    client = connect(ENDLESS)
    client.send("run", what=what, function="")
    time.sleep(2)
    started = time.monotonic()
    update = client.send("cancel", job=client.session.jobs.view()[-1].key)
    acknowledged = time.monotonic() - started
    assert [job.state for job in update.jobs or ()] == ["cancelling"]
    client.session.jobs.wait(5)
    assert time.monotonic() - started < 2
    assert acknowledged < 0.1
    assert [job.state for job in client.session.jobs.view()] == ["cancelled"]
    assert client.session.shown.reports == ()


def test_conditions_are_chosen_checked_and_told(matmul: Client) -> None:
    update = matmul.send("condition", caches="cold", threads=1, pin=True, budget=1)
    assert update.conditions is not None
    assert (update.conditions.caches, update.conditions.pin) == ("cold", True)
    refused = matmul.send("condition", caches="hot", threads=7, pin=False, budget=1.5)
    assert refused.reports is not None
    assert "7 threads" in refused.reports[0].message
    matmul.send("run", what="time", function="")
    matmul.session.jobs.wait()
    timing = matmul.session.shown.timing
    assert timing is not None
    assert timing.conditions.startswith("cold caches, 1 thread, each on a core of its own")
