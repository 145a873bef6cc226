"""Programs that crash, hang, eat memory or are killed: the process here goes on, and knows why."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.runtime.errors import (
    RunCancelledError,
    RunCrashedError,
    RunFailedError,
    RunMemoryError,
    RunTimeoutError,
    WorkerDiedError,
)
from tilewright.codegen.runtime.isolated import Plan, Runner
from tilewright.codegen.runtime.workers import Cancellation, Job, Pool
from tilewright.ir.dtype import f32
from tilewright.ir.module import Constant
from tilewright.ir.script import parse

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

X = np.array([2, 4, 6], np.float32)


@pytest.fixture(scope="module")
def executable():
    return tw.compile(parse(GOOD))


@pytest.fixture
def runner(executable):
    runner = Runner(executable)
    yield runner
    runner.close()


def works(runner: Runner) -> None:
    """The next run is as if nothing had been."""
    assert runner.run("halve", [X]).results[0].tolist() == [1, 2, 3]


def children() -> set[int]:
    """Processes of ours, those that ended and were not waited for included."""
    threads = Path("/proc/self/task").iterdir()
    return {int(p) for t in threads for p in (t / "children").read_text().split()}


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_results_and_samples(runner):
    heard: list[int] = []

    def on_sample(samples):
        heard.extend(samples)
        return True

    outcome = runner.run("halve", [X], Plan(most=500, seconds=5), on_sample=on_sample)
    assert outcome.results[0].tolist() == [1, 2, 3]
    assert len(outcome.samples) == 500 == len(heard)
    assert min(outcome.samples) > 0
    assert [len(repeat) for repeat in outcome.kernels] == [1] * 5


def test_enough_is_enough(runner):
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


def test_weights_go_over_as_shared_memory():
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


def test_an_endless_kernel(runner):
    works(runner)
    start = time.monotonic()
    with pytest.raises(RunTimeoutError, match=r"(?s)longer than 0.5 s.*kernel 'endless'"):
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


def test_killed_between_runs(runner):
    works(runner)
    os.kill(runner.pid, signal.SIGKILL)
    time.sleep(0.1)
    works(runner)


def test_memory_under_a_limit(executable):
    runner = Runner(executable, memory=4 << 30)
    with pytest.raises(RunMemoryError, match="no memory"):
        runner.run("greedy", [X])
    works(runner)
    runner.close()


def test_llvm_aborts():
    pool = Pool(1)
    text = (
        "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
        "define i32 @f() {\n  %a = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n  ret i32 %a\n}\n"
    )
    with pytest.raises(WorkerDiedError, match=r"(?s)f \(signal SIGABRT\).*Cannot select"):
        pool.run(Job("f", text, tw.Target("cpu")))
    good = "define i32 @f() {\n  ret i32 3\n}\n"
    assert pool.run(Job("g", good, tw.Target("cpu")))[:4] == b"\x7fELF"
    pool.close()


def test_cancel(runner):
    works(runner)
    pid, cancel = runner.pid, Cancellation()
    asked: list[float] = []

    def press() -> None:
        asked.append(time.monotonic())
        cancel.cancel()

    threading.Timer(0.3, press).start()
    with pytest.raises(RunCancelledError):
        runner.run("endless", [X], cancel=cancel, timeout=30)
    assert time.monotonic() - asked[0] < 2
    assert not Path(f"/proc/{pid}").exists()
    works(runner)


def test_a_refused_call_is_told_and_the_process_stays(runner):
    works(runner)
    pid = runner.pid
    with pytest.raises(RunFailedError, match="expected f32, got float64"):
        runner.run("halve", [X.astype(np.float64)])
    works(runner)
    assert runner.pid == pid


def test_the_step_that_made_the_kernel_is_named(executable):
    runner = Runner(executable, steps={"wild": "sch.vectorize(i)"})
    with pytest.raises(RunCrashedError, match=r"after sch\.vectorize\(i\)"):
        runner.run("wild", [X])
    runner.close()


def test_nothing_is_left(executable):
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


def test_the_process_ends_with_its_owner(executable):
    """A child that is forked off, starts a runner and dies leaves none behind."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        runner = Runner(executable)
        works(runner)
        threading.Thread(target=lambda: runner.run("endless", [X], timeout=60), daemon=True).start()
        time.sleep(0.3)
        os.write(writer, str(runner.pid).encode())
        os._exit(0)
    os.waitpid(child, 0)
    pid = int(os.read(reader, 20))
    end = time.monotonic() + 3
    while _runs(pid) and time.monotonic() < end:
        time.sleep(0.02)
    assert not _runs(pid)


def test_a_compile_worker_ends_with_its_owner():
    """Also where LLVM is in the middle of something: it does not look at its pipe then."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        pool = Pool(1)
        body = "\n".join(f"  %a{k} = mul i64 %a{k - 1}, {2 * k + 3}" for k in range(1, 60_000))
        slow = f"define i64 @f(i64 %a0) {{\n{body}\n  ret i64 %a59999\n}}\n"
        threading.Thread(
            target=lambda: pool.run(Job("f", slow, tw.Target("cpu"))), daemon=True
        ).start()
        while pool.workers[0].pid is None:
            time.sleep(0.01)
        time.sleep(1.0)
        os.write(writer, str(pool.workers[0].pid).encode())
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    pid = int(os.read(reader, 20))
    end = time.monotonic() + 5
    while _runs(pid) and time.monotonic() < end:
        time.sleep(0.05)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
