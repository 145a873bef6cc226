"""Compilation, verification, measurement and lower texts."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tilewright.codegen.measure import confidence
from tilewright.codegen.sandbox.memory_limit import default_memory
from tilewright.codegen.sandbox.sent_inputs import SHARE
from tilewright.workbench.recent_users import LIMIT

from tests.waiting import processes, wait_until_busy

if TYPE_CHECKING:
    from tests.workbench.conftest import Client

pytestmark = pytest.mark.slow


def test_compile_checks_against_the_interpreter(matmul: Client) -> None:
    matmul.select_loop("j")
    matmul.apply("split", "(None, 8)")
    matmul.apply("vectorize")
    matmul.send("run", action="compile", function="")
    matmul.session.jobs.wait()
    verdict = matmul.session.document.verdict
    assert verdict is not None
    assert verdict.agrees
    assert 0 < verdict.error < verdict.bound
    assert verdict.state == matmul.session.schedule.head.id
    last = [u.history for u, _ in matmul.received if u.history is not None][-1]
    assert last.nodes[-1].verified is True


def test_function_created_by_a_step_is_verified(matmul: Client) -> None:
    matmul.select_loop("i")
    matmul.apply("specialize")
    created = next(f for f in matmul.session.state.module.functions if f != "matmul")
    matmul.send("open", function=created)
    matmul.send("run", action="compile", function="")
    matmul.session.jobs.wait()
    assert matmul.session.document.problems == ()
    verdict = matmul.session.document.verdict
    assert verdict is not None
    assert verdict.agrees


def test_measurement_lists_the_kernels(network: Client) -> None:
    network.send("run", action="measure", function="")
    network.session.jobs.wait()
    measurement = network.session.document.measurement
    assert measurement is not None
    assert measurement.function == "main"
    assert [(k.function, k.calls) for k in measurement.kernels] == [("twice", 2)]
    assert measurement.low <= measurement.median <= measurement.high
    assert measurement.shapes == "n = 6"
    states = [job.state for u, _ in network.received for job in u.jobs or ()]
    assert states[0] == "running"
    assert states[-1] == "done"


def test_single_kernel_is_measured_at_the_sizes_of_its_caller(network: Client) -> None:
    network.send("open", function="twice")
    network.send("run", action="measure", function="twice")
    network.session.jobs.wait()
    measurement = network.session.document.measurement
    assert measurement is not None
    assert (measurement.function, measurement.shapes) == ("twice", "n = 6")
    assert [k.function for k in measurement.kernels] == ["twice"]


def test_outcome_of_a_job_is_announced(matmul: Client) -> None:
    """Screen readers read the announcement from a live region."""
    for action, message in (
        ("compile", "Compiled: matches the interpreter"),
        ("measure", "Measured: matmul"),
    ):
        matmul.send("run", action=action, function="")
        matmul.session.jobs.wait()
        applied = [u.applied for u, _ in matmul.received if u.applied is not None]
        assert message in applied[-1].message


def test_confidence_interval_covers_the_median() -> None:
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


@pytest.mark.parametrize("action", ["compile", "measure"])
def test_cancellation_is_acknowledged_and_completed_in_time(connect, action: str) -> None:
    """Compile also verifies, so it cancels the interpreter of a program that does not terminate."""
    client = connect(ENDLESS)
    client.send("run", action=action, function="")
    # No progress report shows that the program has entered its loop; its process computes.
    wait_until_busy(lambda: processes("codegen.sandbox"), 1.0)
    started = time.monotonic()
    update = client.send("cancel", job=client.session.jobs.view()[-1].key)
    acknowledged = time.monotonic() - started
    assert [job.state for job in update.jobs or ()] == ["canceling"]
    client.session.jobs.wait(5)
    assert time.monotonic() - started < 2
    assert acknowledged < 0.1
    assert [job.state for job in client.session.jobs.view()] == ["canceled"]
    assert client.session.document.problems == ()


def test_measure_options_are_set_checked_and_reported(matmul: Client) -> None:
    update = matmul.send("set_measure_options", caches="cold", threads=1, pin=True, budget=1)
    assert update.measure_options is not None
    assert (update.measure_options.caches, update.measure_options.pin) == ("cold", True)
    rejected = matmul.send("set_measure_options", caches="hot", threads=7, pin=False, budget=1.5)
    assert rejected.problems is not None
    assert "7 threads" in rejected.problems[0].message
    matmul.send("run", action="measure", function="")
    matmul.session.jobs.wait()
    measurement = matmul.session.document.measurement
    assert measurement is not None
    assert measurement.conditions.startswith("cold caches, 1 thread, pinned to separate cores")


SCALED = """
n = symbols("n", lower=0)

@graph_func
def main(x: Tensor[(n, 16), f32]):
    y: Tensor[(n, 16), f32] = add(x, x)
    return y
"""


def run(client: Client, action: str, n: int) -> None:
    client.send("sample", function="main", symbol="n", value=n)
    client.send("run", action=action, function="")
    client.session.jobs.wait()


@pytest.mark.parametrize("n", [0, 1])
def test_the_smallest_sizes_are_compared_and_measured(connect, n: int) -> None:
    client = connect(SCALED)
    run(client, "compile", n)
    assert client.session.document.problems == ()
    assert client.session.document.verdict.agrees
    run(client, "measure", n)
    assert client.session.document.measurement.shapes == f"n = {n}"


@pytest.mark.parametrize("action", ["compile", "measure"])
@pytest.mark.parametrize("n", [10**9, 10**15])
def test_huge_sizes_are_a_problem_with_bytes_and_limit(connect, action: str, n: int) -> None:
    client = connect(SCALED)
    run(client, action, 4)
    peak_memory()
    before = peak_memory()
    run(client, action, n)
    (problem,) = client.session.document.problems
    assert problem.title == "Out of memory"
    assert f"cannot allocate the {n * 64:,} bytes of shape ({n}, 16)" in problem.message
    assert f"at most {int(default_memory() * SHARE):,} bytes" in problem.message
    assert peak_memory() - before < GROWTH
    run(client, action, 5)
    assert client.session.document.problems == (problem,)
    assert "Compiled" in outcome(client) or "Measured" in outcome(client)


def outcome(client: Client) -> str:
    """Return the last announcement."""
    return [u.applied.message for u, _ in client.received if u.applied is not None][-1]


GROWTH = 24 << 20
"""The bytes by which messages and threads may grow the process; arrays of the tests use more."""


def peak_memory() -> int:
    """Return the largest resident memory of this process in bytes since it was last reset."""
    status = Path("/proc/self/status").read_text()
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    Path("/proc/self/clear_refs").write_text("5")
    return int(peak.split()[1]) << 10


def test_arrays_are_never_in_the_process_of_the_notebook(connect) -> None:
    """Inputs, exact results, and results of 32 to 128 MiB each exist in other processes only."""
    client = connect(SCALED)
    for action in ("compile", "measure"):
        run(client, action, 4)
    peak_memory()
    before = peak_memory()
    for action in ("compile", "measure"):
        run(client, action, 1 << 19)
        assert client.session.document.problems == ()
    assert client.session.document.verdict.agrees
    assert peak_memory() - before < GROWTH


def test_only_the_last_workbenches_keep_processes(connect) -> None:
    """Each execution of a cell creates a workbench, which exists until the Jupyter kernel ends."""
    clients = [connect(SCALED) for _ in range(LIMIT + 2)]
    for client in clients:
        run(client, "measure", 4)
    kept = [client.session._bench._last is not None for client in clients]
    assert kept == [False, False, *[True] * LIMIT]
    run(clients[0], "measure", 4)  # its process starts again
    assert clients[0].session.document.problems == ()
    assert clients[2].session._bench._last is None


def test_other_inputs_of_the_user_are_interpreted_again(connect) -> None:
    """Exact results are cached by the elements of given inputs, not only by their sizes."""
    client = connect(SCALED)
    x = np.ones((4, 16), np.float32)
    client.session.set_inputs([x])
    for value in (1, 2):
        x[...] = value  # the same array with other elements
        client.send("run", action="compile", function="")
        client.session.jobs.wait()
        assert client.session.document.verdict.agrees, client.session.document.verdict.message
