"""Runs in a sandbox that crash, hang, exhaust memory or are killed do not affect this process."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen import program_checks
from tilewright.codegen.build.worker_pool import CancelToken
from tilewright.codegen.errors import (
    OutOfMemoryError,
    RunCanceledError,
    RunCrashedError,
    RunFailedError,
    RunMemoryError,
    RunTimeoutError,
)
from tilewright.codegen.sandbox.interpreter_process import shared_results
from tilewright.codegen.sandbox.parent import Runner
from tilewright.codegen.sandbox.process import PreparedProcess
from tilewright.codegen.sandbox.random_inputs import ArrayRecipe, RandomInputs
from tilewright.codegen.sandbox.sampling_plan import Plan
from tilewright.ir import verify
from tilewright.ir.dtype import f32
from tilewright.ir.interpreter.oracle import compare
from tilewright.ir.module import Constant
from tilewright.ir.script import parse

from tests.ir.script.texts import unverified
from tests.waiting import is_running, pid_reported_by_child, wait_until, wait_until_busy

GOOD = """
n = symbols("n", lower=0)

@prim_func
def halve(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        y[i] = x[i] * 0.5

@prim_func
def wild(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        y[i + 99999999999] = x[i]

@prim_func
def endless(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        y[i] = x[i]
    for i1 in range(n):
        for k in range(4611686018427387904):
            y[i1] = y[i1] * 0.5 + 1.0

@prim_func
def greedy(x: Buffer[(n,), f32], y: Out[(n * 3000000000,), f32]):
    for i in range(n):
        y[i] = x[i]
"""

WEIGHTED = """
n = symbols("n", lower=1)
constant("w", (8, 5), f32)

@graph_func
def main(x: Tensor[(n, 8), f32]):
    y = matmul(x, const("w"))
    return y
"""

PROGRAM = """
n = symbols("n", lower=1)

@prim_func
def main(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        for k in range({times}):
            with block("y"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = 0.0
                y[vi] += x[vi] * x[vi]
"""

ENDLESS = """
n = symbols("n", lower=1)

@prim_func
def main(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        y[i] = x[i]
    for i1 in range(n):
        for k in range(4611686018427387904):
            y[i1] = y[i1] * 0.5 + 1.0
"""

GREEDY = """
n = symbols("n", lower=1)

@prim_func
def main(x: Buffer[(n,), f32], y: Out[(n * 300000000,), f32]):
    for i in range(n):
        y[i] = x[i]
"""

X = np.array([2, 4, 6], np.float32)

SAMPLES = np.linspace(0.5, 1.5, 512, dtype=np.float32)


@pytest.fixture(scope="module")
def executable():
    """Compile the functions without checks, because no checked program crashes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verify, "check_program", lambda *_, **__: None)
        patch.setattr(program_checks, "check_proved", lambda _: None)
        return tw.compile(unverified(GOOD))


@pytest.fixture
def runner(executable):
    runner = Runner(executable)
    yield runner
    runner.close()


def works(runner: Runner) -> None:
    """Check that the next run succeeds."""
    assert runner.run("halve", [X]).results[0].tolist() == [1, 2, 3]


def children() -> set[int]:
    """Return the child processes of this process, including zombies."""
    threads = Path("/proc/self/task").iterdir()
    return {int(p) for t in threads for p in (t / "children").read_text().split()}


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_results_and_samples(runner):
    received: list[int] = []

    def on_sample(samples):
        received.extend(samples)
        return True

    outcome = runner.run("halve", [X], Plan(most=500, seconds=5), on_sample=on_sample)
    assert outcome.results[0].tolist() == [1, 2, 3]
    assert len(outcome.samples) == 500 == len(received)
    assert min(outcome.samples) > 0
    assert [len(repeat) for repeat in outcome.kernels] == [1] * 5


def test_sampling_ends_when_the_callback_returns_false(runner):
    outcome = runner.run(
        "halve",
        [np.ones(1 << 20, np.float32)],
        Plan(most=10**6, seconds=60),
        on_sample=lambda _: False,
    )
    assert 1 <= len(outcome.samples) < 10**6


def test_cold_caches_and_a_core(runner):
    plan = Plan(most=5, flush=1 << 25, cores=(min(os.sched_getaffinity(0)),))
    cold = runner.run("halve", [np.ones(1000, np.float32)], plan)
    hot = runner.run("halve", [np.ones(1000, np.float32)], Plan(most=50))
    assert sorted(cold.samples)[2] > sorted(hot.samples)[25]


def test_weights_are_passed_in_shared_memory():
    weight = np.arange(40, dtype=np.float32).reshape(8, 5)
    module = parse(WEIGHTED, constants={"w": Constant((8, 5), f32, lambda: weight)})
    runner = Runner(tw.compile(module))
    x = np.ones((3, 8), np.float32)
    assert np.array_equal(runner.run("main", [x]).results[0], x @ weight)
    runner.close()


def test_a_crash(runner):
    with pytest.raises(RunCrashedError, match=r"(?s)signal SIGSEGV.*kernel 'wild'"):
        runner.run("wild", [X])
    works(runner)


def test_a_kernel_that_exceeds_the_time_limit(runner):
    works(runner)
    start = time.monotonic()
    with pytest.raises(RunTimeoutError, match=r"(?s)time limit of 0\.5 s.*kernel 'endless'"):
        runner.run("endless", [X], timeout=0.5)
    assert time.monotonic() - start < 2.5
    works(runner)


def test_killed_from_outside(runner):
    works(runner)
    pid = runner.pid
    threading.Timer(0.3, lambda: os.kill(pid, signal.SIGKILL)).start()
    with pytest.raises(RunCrashedError, match=r"(?s)signal SIGKILL.*kernel 'endless'"):
        runner.run("endless", [X], timeout=30)
    works(runner)


def test_killed_betweenis_running(runner):
    works(runner)
    pid = runner.pid
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not is_running(pid))
    works(runner)


def test_memory_under_a_limit(executable):
    runner = Runner(executable, memory=4 << 30)
    with pytest.raises(RunMemoryError, match="cannot allocate"):
        runner.run("greedy", [X])
    works(runner)
    runner.close()


def test_cancel(runner):
    works(runner)
    pid, cancel = runner.pid, CancelToken()
    requested: list[float] = []

    def request() -> None:
        requested.append(time.monotonic())
        cancel.cancel()

    threading.Timer(0.3, request).start()
    with pytest.raises(RunCanceledError):
        runner.run("endless", [X], cancel=cancel, timeout=30)
    assert time.monotonic() - requested[0] < 2
    assert not Path(f"/proc/{pid}").exists()
    works(runner)


def test_an_invalid_call_is_reported_and_the_process_continues(runner):
    works(runner)
    pid = runner.pid
    with pytest.raises(RunFailedError, match="expected dtype f32, got f64"):
        runner.run("halve", [X.astype(np.float64)])
    works(runner)
    assert runner.pid == pid


def test_errors_name_the_last_step_of_the_kernel(executable):
    runner = Runner(executable, steps={"wild": "sch.vectorize(i)"})
    with pytest.raises(RunCrashedError, match=r"after sch\.vectorize\(i\)"):
        runner.run("wild", [X])
    runner.close()


def test_no_processes_or_files_leak(executable):
    before, files = children(), open_files()
    for _ in range(3):
        runner = Runner(executable)
        works(runner)
        with pytest.raises(RunCrashedError):
            runner.run("wild", [X])
        works(runner)
        runner.close()
    assert children() == before
    assert open_files() <= files + 1


def test_the_process_exits_with_its_owner(executable):
    """A forked child that starts a runner and exits leaves no process behind."""

    def own(report: Callable[[int], None]) -> None:
        runner = Runner(executable)
        works(runner)
        threading.Thread(target=lambda: runner.run("endless", [X], timeout=60), daemon=True).start()
        wait_until_busy(lambda: [runner.pid])
        report(runner.pid)
        os._exit(0)

    pid = pid_reported_by_child(own)
    wait_until(lambda: not is_running(pid), timeout=3)


def program(times: int) -> tw.ir.module.Module:
    return tw.parse(PROGRAM.format(times=times))


@pytest.mark.parametrize("twice", [False, True])
def test_a_canceled_run_stops_within_two_seconds(twice: bool) -> None:
    runner, cancel, ended = Runner(tw.compile(tw.parse(ENDLESS))), CancelToken(), list[float]()

    def work() -> None:
        with pytest.raises(RunCanceledError):
            runner.run("main", [SAMPLES], Plan(), cancel=cancel, timeout=60)
        ended.append(time.monotonic())

    thread = threading.Thread(target=work)
    thread.start()
    pid = wait_until(lambda: runner.pid)
    assert pid is not None
    wait_until_busy(lambda: [pid], 1.5)
    requested = time.monotonic()
    cancel.cancel()
    if twice:
        cancel.cancel()
    thread.join(5)
    assert ended
    assert ended[0] - requested < 2
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), timeout=2 - (ended[0] - requested))
    cancel.cancel()  # has no effect after the end


def test_the_memory_limit_applies_to_allocations_of_the_run() -> None:
    """Libraries of hundreds of MiB are not counted."""
    runner = Runner(tw.compile(program(2)), memory=32 << 20)
    assert runner.run("main", [SAMPLES]).results[0][0] == np.float32(0.5)
    runner.close()
    greedy = Runner(tw.compile(tw.parse(GREEDY)), memory=256 << 20)
    with pytest.raises(RunMemoryError, match=r"the limit is 256\.0 MiB in addition to the initial"):
        greedy.run("main", [SAMPLES[:1]])
    greedy.close()


def test_a_forked_child_does_not_affect_the_runner() -> None:
    runner = Runner(tw.compile(program(2)))
    first = runner.run("main", [SAMPLES]).results[0]
    pid = runner.pid
    child = os.fork()
    if child == 0:
        code = 1
        try:
            own = runner.run("main", [SAMPLES]).results[0]
            code = 0 if np.array_equal(own, first) and runner.pid != pid else 2
        finally:
            runner.close()
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert runner.pid == pid
    assert np.array_equal(runner.run("main", [SAMPLES]).results[0], first)
    assert runner.pid == pid
    runner.close()


def test_kills_at_any_time_leak_no_shared_memory() -> None:
    before = set(Path("/dev/shm").iterdir())
    runner = Runner(tw.compile(program(64)))
    runner.run("main", [SAMPLES])
    for delay in (0.0, 0.02, 0.1, 0.25):
        if runner.pid is None or not Path(f"/proc/{runner.pid}").exists():
            runner.run("main", [SAMPLES])
        pid = runner.pid
        assert pid is not None
        timer = threading.Timer(delay, lambda pid=pid: os.kill(pid, 9))
        timer.start()
        with pytest.raises(RunCrashedError, match="SIGKILL"):
            while True:
                runner.run("main", [SAMPLES], Plan(least=50, most=10**6, seconds=5))
                if runner.pid != pid:
                    raise RunCrashedError("SIGKILL between two runs: a new process started")
        timer.join()
    runner.run("main", [SAMPLES])
    runner.close()
    assert set(Path("/dev/shm").iterdir()) == before


HALVE = """
n = symbols("n", lower=0)

@prim_func
def main(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        y[i] = x[i] * 0.5
"""


@pytest.fixture(scope="module")
def halve():
    runner = Runner(tw.compile(tw.parse(HALVE)), memory=64 << 20)
    yield runner
    runner.close()


def random(count: int) -> RandomInputs:
    return RandomInputs((ArrayRecipe("x", (count,), f32),))


@pytest.mark.parametrize("count", [0, 1, 100_000])
def test_random_inputs_are_drawn_by_the_process(halve: Runner, count: int) -> None:
    outcome = halve.run("main", random(count), Plan(most=5))
    (x,) = random(count).drawn(1 << 20)
    assert np.array_equal(outcome.results[0], x * np.float32(0.5))
    assert len(outcome.samples) == 5


def test_random_inputs_beyond_the_limit_start_no_process(halve: Runner) -> None:
    halve.close()
    with pytest.raises(OutOfMemoryError, match="at most 33,554,432 bytes"):
        halve.run("main", random(1 << 24))
    assert halve.pid is None


def test_random_inputs_and_results_count_as_memory_of_the_program() -> None:
    """Inputs, a copy, and results of 104 MiB fit into limit and slack, shared results do not."""
    double = HALVE.replace("Out[(n,), f32]", "Out[(n * 2,), f32]")
    runner = Runner(tw.compile(tw.parse(double), tw.Target("cpu", threads=1)), memory=64 << 20)
    assert runner.race(["main"], random(13 << 19), results=False)[0].results == ()
    pid = runner.pid
    with pytest.raises(RunMemoryError, match=r"54,525,952 bytes.*the limit is 64\.0 MiB"):
        runner.run("main", random(13 << 19))
    assert runner.run("main", random(1)).results[0].shape == (2,)
    assert runner.pid == pid
    runner.close()


@pytest.mark.parametrize("count", [0, 1, 1000])
def test_results_are_compared_in_the_process(halve: Runner, count: int) -> None:
    with closing(shared_results(tw.parse(HALVE), "main", random(count))) as exact:
        verdict = halve.verify("main", random(count), exact)
        assert verdict == compare(halve.run("main", random(count)).results, exact.exact())
        assert verdict.agrees
    wrong = HALVE.replace("0.5", "0.25")
    with closing(shared_results(tw.parse(wrong), "main", random(count))) as exact:
        verdict = halve.verify("main", random(count), exact)
        assert verdict == compare(halve.run("main", random(count)).results, exact.exact())
        assert verdict.agrees is (count == 0)


def test_the_system_kills_the_process_before_its_owner(runner):
    works(runner)
    assert Path(f"/proc/{runner.pid}/oom_score_adj").read_text().strip() == "1000"


@pytest.fixture
def prepared():
    with closing(PreparedProcess()) as made:
        yield made


def test_a_process_that_is_started_in_advance_runs_the_program(executable, prepared):
    prepared.start()
    process = prepared.take()
    with closing(Runner(executable, process=process)) as runner:
        for _ in range(2):
            (result,) = runner.run("halve", [X]).results
            np.testing.assert_array_equal(result, X * 0.5)
            assert runner.pid == process.pid
        with pytest.raises(RunCrashedError):
            runner.run("wild", [X])
        runner.run("halve", [X])
        assert runner.pid != process.pid
    assert not process.alive
    assert prepared.take().pid != process.pid


def test_a_process_that_ended_before_the_first_run_is_replaced(executable, prepared):
    prepared.start()
    for process in (first := prepared.take(), second := prepared.take()):
        os.kill(process.pid, signal.SIGKILL)
        wait_until(lambda ended=process: not ended.alive)
    with closing(Runner(executable, process=first)) as runner:
        (result,) = runner.run("halve", [X]).results
    np.testing.assert_array_equal(result, X * 0.5)
    assert not second.alive


def test_a_waiting_process_has_the_current_environment(prepared, monkeypatch, tmp_path):
    prepared.start()
    prepared.start()
    monkeypatch.syspath_prepend(tmp_path)
    old = prepared._process
    process = prepared.take()
    assert process is not old
    assert not old.alive
    process.stop()


def test_a_process_that_is_not_used_is_stopped(executable, prepared):
    prepared.start()
    waiting = prepared._process
    prepared.close()
    assert not waiting.alive
    process = prepared.take()
    Runner(executable, process=process).close()
    assert not process.alive
