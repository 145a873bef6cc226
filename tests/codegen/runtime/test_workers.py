"""Compile workers: whatever happens to one, the owner gets an answer and loses nothing."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import TYPE_CHECKING

import pytest

from tilewright.codegen.runtime.errors import (
    CompileCancelledError,
    CompileError,
    CompileTimeoutError,
    WorkerDiedError,
)
from tilewright.codegen.runtime.workers import Cancellation, Job, Pool
from tilewright.ir.target import Target

if TYPE_CHECKING:
    from collections.abc import Iterator

GOOD = "define i32 @f() {\n  ret i32 7\n}\n"
ABORTING = """
declare <vscale x 2 x i64> @llvm.aarch64.sve.index.nxv2i64(i64, i64)
define <vscale x 2 x i64> @f() {
  %r = call <vscale x 2 x i64> @llvm.aarch64.sve.index.nxv2i64(i64 0, i64 1)
  ret <vscale x 2 x i64> %r
}
"""


def slow(size: int = 6000) -> str:
    """A function that LLVM takes its time for: a long chain of branches on one value."""
    lines = ["define i64 @f(i64 %x) {", "b0:", "  br label %b1"]
    for k in range(1, size):
        before = k - 1
        came = (
            f"[ %q{before}, %b{before} ], [ %r{before}, %t{before} ]" if before else "[ %x, %b0 ]"
        )
        lines += [
            f"b{k}:",
            f"  %p{k} = phi i64 {came}",
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


def job(text: str = GOOD, name: str = "kernel 'f'") -> Job:
    return Job(name, text, Target("cpu"))


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    made = Pool(2)
    yield made
    made.close()


def test_a_job_is_done_and_the_same_each_time(pool: Pool) -> None:
    first, second = pool.run(job()), pool.run(job())
    assert first == second
    assert first[:4] == b"\x7fELF"


def test_what_llvm_refuses_is_an_error_with_the_name(pool: Pool) -> None:
    with pytest.raises(CompileError, match="kernel 'f'"):
        pool.run(job("define i32 @f() { ret i64 7 }"))
    assert pool.run(job())


def test_what_makes_llvm_abort_kills_no_one_else(pool: Pool) -> None:
    with pytest.raises(WorkerDiedError, match="died while compiling kernel 'f'") as caught:
        pool.run(job(ABORTING))
    assert "Cannot select" in caught.value.hint or "LLVM ERROR" in caught.value.hint
    assert pool.run(job())


def test_a_killed_worker_is_replaced_and_its_job_done(pool: Pool) -> None:
    pool.warm()
    for worker in pool.workers:
        pid = worker.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
    assert pool.run(job())
    assert pool.run_all([job()] * 4) == [pool.run(job())] * 4


def test_a_worker_killed_in_the_middle_of_a_job(pool: Pool) -> None:
    pids = {w.pid for w in pool.workers}
    answers: list[bytes] = []
    thread = threading.Thread(target=lambda: answers.append(pool.run(job(slow(1500)))))
    thread.start()
    time.sleep(0.1)
    for worker in pool.workers:
        if worker.pid is not None:
            os.kill(worker.pid, signal.SIGKILL)
    thread.join()
    assert answers[0][:4] == b"\x7fELF"
    assert {w.pid for w in pool.workers} != pids


def test_a_job_that_takes_too_long(pool: Pool) -> None:
    started = time.monotonic()
    with pytest.raises(CompileTimeoutError, match=r"longer than 0\.2 s"):
        pool.run(job(slow(40000)), timeout=0.2)
    assert time.monotonic() - started < 5
    assert pool.run(job())


def test_a_cancelled_job(pool: Pool) -> None:
    cancel = Cancellation()
    threading.Timer(0.2, cancel.cancel).start()
    started = time.monotonic()
    with pytest.raises(CompileCancelledError):
        pool.run_all([job(slow(40000)), job(), job(slow(40000))], cancel=cancel)
    assert time.monotonic() - started < 5
    assert pool.run(job())


def test_more_jobs_than_workers_and_all_are_told_of(pool: Pool) -> None:
    told: list[int] = []
    made = pool.run_all([job()] * 9, done=told.append)
    assert len(made) == 9
    assert sorted(told) == list(range(9))


def test_closing_ends_the_processes() -> None:
    pool = Pool(1)
    pool.run(job())
    pid = pool.workers[0].pid
    assert pid is not None
    pool.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
