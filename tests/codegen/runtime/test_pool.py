"""The thread pool: short loops, failures, nested loops, forks, and process exit."""

from __future__ import annotations

import contextlib
import ctypes
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tilewright.codegen.rtlib import layout
from tilewright.codegen.runtime.pool import ThreadPool, process_pool
from tilewright.codegen.runtime.table import RuntimeTable

from tests.codegen.runtime.regions import Region, Tally, bodies
from tests.cpu_time import timed
from tests.waiting import pause, wait_until

ROOT = Path(__file__).parents[3]


def region(body: str, threads: int, stop: int = 0, parallel: str = "pool") -> Region:
    table = RuntimeTable(threads=threads, parallel=parallel)  # type: ignore[arg-type]
    return Region(table, bodies().address(f"tw_{body}"), stop)


def pool() -> ThreadPool:
    found = process_pool()
    assert found is not None
    return found


def threads_alive() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def test_thousands_of_short_loops_of_any_size() -> None:
    """Every iteration runs once, and no worker index is used by two threads at once."""
    rng = random.Random(7)
    regions = {threads: region("tally", threads) for threads in (2, 3, 4, 7)}
    tally, expected = Tally(400), [0] * 400
    for _ in range(4000):
        stop = rng.choice((1, 2, 3, 5, 8, 17, 64, 400))
        assert regions[rng.choice((2, 3, 4, 7))].run(tally, stop) == 0
        for k in range(stop):
            expected[k] += k + 1
    assert list(tally.counts) == expected


def test_loops_after_pauses_wake_sleeping_workers() -> None:
    """Between loops, workers sleep, are about to sleep, or spin."""
    rng, run, tally = random.Random(3), region("tally", 4), Tally(64, spin=20)
    for k in range(300):
        pause(rng.choice((0, 0, 1e-4, 2e-4, 2e-3)))
        assert run.run(tally, 64) == 0
        assert tally.rounds(64) == {k + 1}


def test_workers_run_a_part_of_the_loop() -> None:
    """The body waits until another thread runs a chunk as well."""
    run = region("together", 2)
    words = (ctypes.c_int64 * 8)()
    assert run.run(ctypes.addressof(words), 2) == 0
    assert words[0] == 2
    assert sorted(words[2:4]) == [1, 1]


@timed
def test_an_idle_pool_sleeps_and_uses_no_cpu_time() -> None:
    assert region("tally", 3).run(Tally(8, spin=100), 8) == 0
    wait_until(lambda: pool().sleeping == pool().workers >= 2)
    before = time.process_time()
    pause(0.2)
    assert time.process_time() - before < 0.05


@pytest.mark.parametrize("threads", [2, 3, 5])
def test_the_first_error_code_is_returned_and_ends_the_loop(threads: int) -> None:
    run = region("tally", threads)
    for fail_at in (0, 1, 500, 999):
        tally = Tally(1000, fail_at=fail_at, spin=2)
        assert run.run(tally, 1000) == 42
        assert tally.rounds(1000) <= {0, 1}
        assert run.run(Tally(1000), 1000) == 0


def test_a_failure_skips_the_remaining_chunks() -> None:
    """Without workers, the caller runs all eight chunks and fails in the first one."""
    own = ThreadPool(ctypes.CDLL(None))
    ctypes.c_int64.from_address(own.address + layout.POOL_MOST).value = 0
    run, tally = own_provider(own, 2), Tally(800, fail_at=3)
    assert run(own.address, bodies().address("tw_tally"), 800, tally.address) == 42
    assert tally.end == 100
    assert own.workers == 0


def test_many_callers_share_the_workers() -> None:
    """One caller has the workers, and the others run serially; all iterations of all run."""
    run = region("tally", 3)

    def work(seed: int) -> bool:
        rng, tally = random.Random(seed), Tally(100, spin=1)
        expected = [0] * 100
        for _ in range(400):
            stop = rng.randrange(1, 101)
            if run.run(tally, stop):
                return False
            for k in range(stop):
                expected[k] += k + 1
        return list(tally.counts) == expected

    before = pool().workers
    with ThreadPoolExecutor(8) as callers:
        assert all(callers.map(work, range(8)))
    assert pool().workers <= max(before, 2)


def test_a_nested_loop_is_serial() -> None:
    run = region("nested", 3)
    inner = [Tally(50) for _ in range(6)]
    environments = (ctypes.c_int64 * (8 * 6))()
    for k, tally in enumerate(inner):
        environments[8 * k : 8 * k + 8] = list(tally.words)
    words = (ctypes.c_int64 * 8)()
    words[4], words[5] = ctypes.addressof(environments), run.record
    words[6] = bodies().address("tw_tally")
    for count in range(1, 30):
        assert run.run(ctypes.addressof(words), 6) == 0
        assert all(t.rounds(50) == {count} for t in inner)


def test_the_pool_works_without_workers_that_cannot_be_started() -> None:
    """``pthread_create`` of the pool returns EAGAIN from the second thread on."""
    own = ThreadPool(ctypes.CDLL(None))
    create = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4)
    real = ctypes.CDLL(None).pthread_create
    started: list[int] = []

    def create_once(handle: int, attributes: int, start: int, argument: int) -> int:
        if started:
            return 11
        started.append(1)
        return int(real(*map(ctypes.c_void_p, (handle, attributes, start, argument))))

    native = create(create_once)
    slot = ctypes.c_int64.from_address(own.address + layout.POOL_CREATE)
    slot.value = ctypes.cast(native, ctypes.c_void_p).value or 0
    run, tally = own_provider(own, 6), Tally(100)
    for count in range(1, 50):
        assert run(own.address, bodies().address("tw_tally"), 100, tally.address) == 0
        assert tally.rounds(100) == {count}
    assert own.workers == 1
    own.close()


def own_provider(own: ThreadPool, threads: int):
    """Return the provider whose context is the pool itself, as in exported models."""
    from tilewright.codegen.build.rtlib_object import rtlib_address
    from tilewright.codegen.rtlib.pool import pool_parallel

    ctypes.c_int64.from_address(own.address + layout.POOL_LIMIT).value = threads
    kind = ctypes.CFUNCTYPE(
        ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p
    )
    return kind(rtlib_address(pool_parallel))


def test_a_closed_pool_has_no_threads_and_runs_serially() -> None:
    for _ in range(40):
        own = ThreadPool(ctypes.CDLL(None))
        before = threads_alive()
        run, tally = own_provider(own, 4), Tally(64)
        assert run(own.address, bodies().address("tw_tally"), 64, tally.address) == 0
        assert own.workers == 3
        own.close()
        own.close()
        wait_until(lambda before=before: threads_alive() == before)
        assert run(own.address, bodies().address("tw_tally"), 64, tally.address) == 0
        assert tally.rounds(64) == {2}


def test_closing_while_a_loop_runs() -> None:
    for _ in range(20):
        own = ThreadPool(ctypes.CDLL(None))
        run, tally = own_provider(own, 3), Tally(300, spin=30)
        code: list[int] = []
        caller = threading.Thread(
            target=lambda run=run, own=own, tally=tally, code=code: code.append(
                run(own.address, bodies().address("tw_tally"), 300, tally.address)
            )
        )
        caller.start()
        own.close()
        caller.join()
        assert code == [0]
        assert tally.rounds(300) == {1}


def test_closing_waits_for_a_loop_that_starts_workers() -> None:
    own, process, creating = ThreadPool(ctypes.CDLL(None)), ctypes.CDLL(None), threading.Event()
    run, tally = own_provider(own, 4), Tally(300)
    words = (ctypes.c_void_p,) * 4

    @ctypes.CFUNCTYPE(ctypes.c_int, *words)
    def create(*arguments: int | None) -> int:
        creating.set()
        wait_until(lambda: own.closed)
        return process.pthread_create(*map(ctypes.c_void_p, arguments))

    address = ctypes.cast(create, ctypes.c_void_p).value
    ctypes.c_int64.from_address(own.address + layout.POOL_CREATE).value = address
    body = bodies().address("tw_tally")
    caller = threading.Thread(target=lambda: run(own.address, body, 300, tally.address))
    caller.start()
    assert creating.wait(10)
    own.close()
    workers = own.workers
    caller.join()
    assert own.workers == workers == 3
    assert tally.rounds(300) == {1}


def test_signals_are_handled_by_the_main_program() -> None:
    """Workers block all signals except those of faults."""
    assert region("tally", 3).run(Tally(8), 8) == 0
    worker = wait_until(_mask_of_workers)  # the C library blocks all signals in a new thread
    assert worker >> (signal.SIGINT - 1) & 1
    assert worker >> (signal.SIGTERM - 1) & 1


def _mask_of_workers() -> int:
    """Return the largest set of blocked signals of a native thread; 0 if it contains faults."""
    python = {t.native_id for t in threading.enumerate()}
    blocked: list[int] = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the thread has exited
            lines = (task / "status").read_text().splitlines()
            words = dict(line.split(":", 1) for line in lines)
            if int(task.name) not in python:
                blocked.append(int(words["SigBlk"], 16))
    largest = max(blocked)
    return 0 if largest >> (signal.SIGSEGV - 1) & 1 else largest


def python(script: str, *, expected: int = 0) -> str:
    """Run a program with ``run``, a parallel loop over ``tally``, and its check ``right``."""
    setup = """
        import ctypes, os, signal, sys, threading, time
        from tests.codegen.runtime.regions import Region, Tally, bodies
        from tilewright.codegen.runtime.pool import process_pool
        from tilewright.codegen.runtime.table import RuntimeTable
        from tests.waiting import pause, wait_until_busy

        signal.alarm(40)
        run = Region(RuntimeTable(threads=3), bodies().address("tw_tally"), 64)
        tally = Tally(64, spin=5)

        def right(times=1):
            mine = Tally(64, spin=5)
            return all(run.run(mine) == 0 for _ in range(times)) and (
                mine.rounds(64) == {times})
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(setup) + textwrap.dedent(script)],
        cwd=ROOT, timeout=60, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr[-2000:]) == (expected, "")
    return done.stdout


def test_children_forked_while_others_run_loops() -> None:
    """Forks happen during loops and wake-ups of other threads; no child process hangs."""
    out = python("""
        stop = threading.Event()
        failed = []

        def work():
            while not stop.is_set():
                if not right():
                    failed.append(1)

        threads = [threading.Thread(target=work) for _ in range(2)]
        for t in threads: t.start()
        for k in range(30):
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                good = right(5) and process_pool().workers == 2
                os._exit(0 if good else 1)
            _, status = os.waitpid(child, 0)
            assert os.waitstatus_to_exitcode(status) == 0, status
        stop.set()
        for t in threads: t.join()
        assert not failed and right(20)
        print("ok")
    """)
    assert out == "ok\n"


def test_a_forked_child_exits_normally() -> None:
    """A child process stops its own workers at exit, and those of its parent continue."""
    out = python("""
        assert right(3)
        child = os.fork()
        if child == 0:
            assert right(3)
            sys.exit(7)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 7
        assert right(3)
        print("ok")
    """)
    assert out == "ok\n"


def test_the_process_exits_while_workers_sleep_or_spin() -> None:
    for seconds in ("0", "0.01"):
        assert python(f"assert right(50); pause({seconds}); print('ok')") == "ok\n"


def test_the_process_exits_while_a_daemon_thread_runs_loops() -> None:
    out = python("""
        runs = threading.Event()
        def work():
            while True:
                right()
                runs.set()
        threading.Thread(target=work, daemon=True).start()
        assert runs.wait(20)
        print("ok", flush=True)
    """)
    assert out == "ok\n"


def test_the_process_exits_while_a_daemon_thread_runs_an_endless_kernel() -> None:
    started = time.monotonic()
    out = python("""
        words = (ctypes.c_int64 * 8)()
        endless = Region(RuntimeTable(threads=3), bodies().address("tw_endless"), 64)
        threading.Thread(
            target=endless.run, args=(ctypes.addressof(words),), daemon=True).start()
        wait_until_busy(lambda: [os.getpid()], 0.05)
        print("ok", flush=True)
    """)
    assert out == "ok\n"
    assert time.monotonic() - started < 30


def test_loops_at_exit_run_serially() -> None:
    """Exit handlers registered before the pool run after the pool is closed."""
    script = textwrap.dedent("""
        import atexit
        from tests.codegen.runtime.regions import Region, Tally, bodies
        state = {}
        def at_exit():
            tally = Tally(64)
            print(state["run"].run(tally), tally.rounds(64), state["pool"].closed)
        atexit.register(at_exit)
        from tilewright.codegen.runtime.pool import process_pool
        from tilewright.codegen.runtime.table import RuntimeTable
        state["run"] = Region(RuntimeTable(threads=3), bodies().address("tw_tally"), 64)
        state["pool"] = process_pool()
        assert state["run"].run(Tally(64)) == 0
    """)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        cwd=ROOT, timeout=60, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("0 {1} True\n", "")
