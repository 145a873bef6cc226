"""Compile workers: crashes, time limits and cancellation do not affect other jobs."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tilewright.codegen.build.protocol import PipeClosedError
from tilewright.codegen.build.worker_pool import (
    CancelToken,
    CompileJob,
    UnoptimizedCodeWarning,
    WorkerPool,
)
from tilewright.codegen.errors import (
    CompileCanceledError,
    CompileError,
    CompileTimeoutError,
    WorkerDiedError,
    WorkerStartError,
)
from tilewright.target.target import Target

from tests.waiting import (
    cpu_seconds,
    is_running,
    pid_reported_by_child,
    wait_until,
    wait_until_busy,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GOOD = "define i32 @f() {\n  ret i32 7\n}\n"
ABORTING = """
declare <vscale x 2 x i64> @llvm.aarch64.sve.index.nxv2i64(i64, i64)
define <vscale x 2 x i64> @f() {
  %r = call <vscale x 2 x i64> @llvm.aarch64.sve.index.nxv2i64(i64 0, i64 1)
  ret <vscale x 2 x i64> %r
}
"""


def slow(size: int = 6000) -> str:
    """Return LLVM text that compiles slowly: a long chain of branches on one value."""
    lines = ["define i64 @f(i64 %x) {", "b0:", "  br label %b1"]
    for k in range(1, size):
        before = k - 1
        incoming = (
            f"[ %q{before}, %b{before} ], [ %r{before}, %t{before} ]" if before else "[ %x, %b0 ]"
        )
        lines += [
            f"b{k}:",
            f"  %p{k} = phi i64 {incoming}",
            f"  %q{k} = mul i64 %p{k}, %x",
            f"  %c{k} = icmp slt i64 %q{k}, {k}",
            f"  br i1 %c{k}, label %t{k}, label %b{k + 1}",
            f"t{k}:",
            f"  %r{k} = sdiv i64 %q{k}, %p{k}",
            f"  br label %b{k + 1}",
        ]  # fmt: skip
    k = size
    lines += [
        f"b{k}:",
        f"  %z = phi i64 [ %q{k - 1}, %b{k - 1} ], [ %r{k - 1}, %t{k - 1} ]",
        "  ret i64 %z",
        "}",
    ]
    return "\n".join(lines)


def job(text: str = GOOD, name: str = "kernel 'f'") -> CompileJob:
    return CompileJob(name, text, Target("cpu"))


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    workers = WorkerPool(2)
    yield workers
    workers.close()


def test_a_job_has_the_same_result_each_time(pool: WorkerPool) -> None:
    first, second = pool.run(job()), pool.run(job())
    assert first == second
    assert first[:4] == b"\x7fELF"


def test_text_that_llvm_rejects_is_an_error_with_the_name(pool: WorkerPool) -> None:
    with pytest.raises(CompileError, match="kernel 'f'"):
        pool.run(job("define i32 @f() { ret i64 7 }"))
    assert pool.run(job())


def test_text_that_makes_llvm_abort_does_not_affect_other_jobs(pool: WorkerPool) -> None:
    with pytest.raises(WorkerDiedError, match="crashed while compiling kernel 'f'") as caught:
        pool.run(job(ABORTING))
    assert "Cannot select" in caught.value.hint or "LLVM ERROR" in caught.value.hint
    assert pool.run(job())


def test_a_killed_worker_is_restarted(pool: WorkerPool) -> None:
    pool.warm()
    for worker in pool.workers:
        pid = worker.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
    assert pool.run(job())
    assert pool.run_all([job()] * 4) == [pool.run(job())] * 4


def test_a_worker_killed_in_the_middle_of_a_job(pool: WorkerPool) -> None:
    pids = {w.pid for w in pool.workers}
    answers: list[bytes] = []
    thread = threading.Thread(target=lambda: answers.append(pool.run(job(slow(1500)))))
    before = cpu_seconds(pids)
    thread.start()
    wait_until(lambda: answers or cpu_seconds(pids) - before >= 0.05)
    for worker in pool.workers:
        if worker.pid is not None:
            os.kill(worker.pid, signal.SIGKILL)
    thread.join()
    assert answers[0][:4] == b"\x7fELF"
    assert {w.pid for w in pool.workers} != pids


def test_a_job_that_takes_too_long(pool: WorkerPool) -> None:
    started = time.monotonic()
    with pytest.raises(CompileTimeoutError, match=r"exceeded the time limit of 0\.2 s"):
        pool.run(job(slow(40000)), timeout=0.2)
    assert time.monotonic() - started < 5
    assert pool.run(job())


def test_a_canceled_job(pool: WorkerPool) -> None:
    cancel = CancelToken()
    threading.Timer(0.2, cancel.cancel).start()
    started = time.monotonic()
    with pytest.raises(CompileCanceledError):
        pool.run_all([job(slow(40000)), job(), job(slow(40000))], cancel=cancel)
    assert time.monotonic() - started < 5
    assert pool.run(job())


def test_more_jobs_than_workers_are_all_reported(pool: WorkerPool) -> None:
    reported: dict[int, float] = {}
    outputs = pool.run_all([job()] * 9, done=reported.__setitem__)
    assert len(outputs) == 9
    assert sorted(reported) == list(range(9))
    assert min(reported.values()) > 0


def test_jobs_run_while_others_are_added(pool: WorkerPool) -> None:
    with pool.batch() as batch:
        batch.add(job())
        wait_until(lambda: batch._outputs)
        batch.add(job())
        assert batch.finish() == [pool.run(job())] * 2


def test_adding_a_job_raises_the_error_of_an_earlier_one(pool: WorkerPool) -> None:
    with pool.batch() as batch:
        batch.add(job("define i32 @f() { ret i64 7 }"))
        with pytest.raises(CompileError, match="kernel 'f'"):
            wait_until(lambda: batch.add(job()))
    assert pool.idle == len(pool.workers)


def test_leaving_a_batch_stops_its_jobs(pool: WorkerPool) -> None:
    started = time.monotonic()
    with pool.batch() as batch:
        for _ in range(4):
            batch.add(job(slow(40000)))
    assert time.monotonic() - started < 5
    assert pool.idle == len(pool.workers)


def test_closing_stops_the_processes() -> None:
    pool = WorkerPool(1)
    pool.run(job())
    pid = pool.workers[0].pid
    assert pid is not None
    pool.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_an_aborting_llvm_is_reported(pool: WorkerPool) -> None:
    text = (
        "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
        "define i32 @f() {\n  %a = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n  ret i32 %a\n}\n"
    )
    with pytest.raises(WorkerDiedError, match=r"(?s)f \(signal SIGABRT\).*Cannot select"):
        pool.run(CompileJob("f", text, Target("cpu")))
    good = "define i32 @f() {\n  ret i32 3\n}\n"
    assert pool.run(CompileJob("g", good, Target("cpu")))[:4] == b"\x7fELF"


class AbortingWorker:
    """A worker whose process exits while it optimizes."""

    stderr_tail = "LLVM ERROR: Cannot emit physreg copy instruction"
    exit_code = -signal.SIGABRT

    def __init__(self, most: int = 0) -> None:
        self.most = most
        self.levels: list[int] = []

    def run(self, job: CompileJob, timeout: float, poll: Callable[[], None]) -> bytes:
        del timeout, poll
        self.levels.append(job.opt)
        if job.opt > self.most:
            raise PipeClosedError("closed")
        return b"object"


def test_a_kernel_that_llvm_cannot_optimize_is_compiled_without_optimization() -> None:
    pool, worker = WorkerPool(0), AbortingWorker()
    pool._idle.put(worker)  # type: ignore[arg-type]
    with pytest.warns(UnoptimizedCodeWarning, match="'f' was compiled without .* physreg copy"):
        assert pool.run_here(job(), 10.0, ()) == b"object"
    assert worker.levels == [2, 2, 1, 0]


def test_a_kernel_that_llvm_cannot_optimize_much_is_compiled_at_level_1() -> None:
    pool, worker = WorkerPool(0), AbortingWorker(most=1)
    pool._idle.put(worker)  # type: ignore[arg-type]
    message = "'f' was compiled at optimization level 1 instead of 2, because .* physreg copy"
    with pytest.warns(UnoptimizedCodeWarning, match=message):
        assert pool.run_here(job(), 10.0, ()) == b"object"
    assert worker.levels == [2, 2, 1]


@pytest.mark.parametrize(("opt", "levels"), [(0, [0, 0]), (1, [1, 1, 0]), (3, [3, 3, 1, 0])])
def test_the_levels_of_the_attempts_decrease(opt: int, levels: list[int]) -> None:
    pool, worker = WorkerPool(0), AbortingWorker(most=-1)
    pool._idle.put(worker)  # type: ignore[arg-type]
    with pytest.raises(WorkerDiedError):
        pool.run_here(replace(job(), opt=opt), 10.0, ())
    assert worker.levels == levels


def test_a_worker_exits_with_its_owner() -> None:
    """A worker exits even while LLVM is running and it does not read its pipe."""

    def own(report: Callable[[int], None]) -> None:
        pool = WorkerPool(1)
        body = "\n".join(f"  %a{k} = mul i64 %a{k - 1}, {2 * k + 3}" for k in range(1, 200_000))
        text = f"define i64 @f(i64 %a0) {{\n{body}\n  ret i64 %a199999\n}}\n"
        threading.Thread(
            target=lambda: pool.run(CompileJob("f", text, Target("cpu"))), daemon=True
        ).start()
        wait_until(lambda: pool.workers[0].pid)
        wait_until_busy(lambda: [pool.workers[0].pid], 1.0)
        report(pool.workers[0].pid)
        os.kill(os.getpid(), signal.SIGKILL)

    pid = pid_reported_by_child(own)
    wait_until(lambda: not is_running(pid))


def test_an_interrupted_start_loses_no_worker(
    pool: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = subprocess.Popen

    def interrupted(*arguments: object, **options: object) -> subprocess.Popen:
        signal.raise_signal(signal.SIGINT)
        return start(*arguments, **options)

    pool.close()
    monkeypatch.setattr(subprocess, "Popen", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pool.warm()
    monkeypatch.undo()
    assert pool.idle == len(pool.workers)
    assert pool.run(job())


def test_an_interrupted_job_returns_its_worker(pool: WorkerPool) -> None:
    main = threading.main_thread().ident
    timer = threading.Timer(0.3, lambda: signal.pthread_kill(main, signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        pool.run(job(slow(40000)))
    wait_until(lambda: pool.idle == len(pool.workers))
    assert pool.run(job())


def test_a_worker_that_does_not_start_is_reported(
    pool: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise OSError(24, "Too many open files")

    pool.close()
    monkeypatch.setattr(subprocess, "Popen", failing)
    pool.warm()
    with pytest.raises(WorkerStartError, match=r"did not start: .* Too many open files"):
        pool.run(job())
    monkeypatch.undo()
    assert pool.run(job())


def test_without_a_file_for_their_output_workers_work(
    pool: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing() -> None:
        raise FileNotFoundError("No usable temporary directory found")

    pool.close()
    monkeypatch.setattr(tempfile, "TemporaryFile", failing)
    assert pool.run(job())
    with pytest.raises(CompileError, match="the compile worker crashed"):
        pool.run(job(ABORTING))
