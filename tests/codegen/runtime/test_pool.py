"""The pool of workers: what thousands of short loops, failures, forks and ends do to it."""

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
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tilewright.codegen.runtime.pool import Pool, process_pool
from tilewright.codegen.runtime.table import RuntimeTable
from tilewright.ir.host import layout

from tests.codegen.runtime.regions import Region, Tally, bodies

ROOT = Path(__file__).parents[3]


def region(body: str, threads: int, stop: int = 0, parallel: str = "pool") -> Region:
    table = RuntimeTable(threads=threads, parallel=parallel)  # type: ignore[arg-type]
    return Region(table, bodies().address(f"tw_{body}"), stop)


def pool() -> Pool:
    found = process_pool()
    assert found is not None
    return found


def threads_alive() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def eventually(holds: Callable[[], bool]) -> bool:
    """Whether something becomes true: the system lists a thread a moment after its end."""
    deadline = time.monotonic() + 5
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.001)
    return holds()


def test_thousands_of_short_loops_of_any_size() -> None:
    """Every iteration runs once, no number is given to two threads, whatever sizes follow."""
    rng = random.Random(7)
    regions = {threads: region("tally", threads) for threads in (2, 3, 4, 7)}
    tally, wanted = Tally(400), [0] * 400
    for _ in range(4000):
        stop = rng.choice((1, 2, 3, 5, 8, 17, 64, 400))
        assert regions[rng.choice((2, 3, 4, 7))].run(tally, stop) == 0
        for k in range(stop):
            wanted[k] += k + 1
    assert list(tally.counts) == wanted


def test_loops_after_pauses_wake_who_sleeps() -> None:
    """Between loops workers sleep, are about to, or wait awake."""
    rng, run, tally = random.Random(3), region("tally", 4), Tally(64, spin=20)
    for k in range(300):
        time.sleep(rng.choice((0, 0, 1e-4, 2e-4, 2e-3)))
        assert run.run(tally, 64) == 0
        assert tally.rounds(64) == {k + 1}


def test_workers_do_a_share() -> None:
    """The body waits until the other thread has a chunk as well."""
    run = region("together", 2)
    words = (ctypes.c_int64 * 8)()
    assert run.run(ctypes.addressof(words), 2) == 0
    assert words[0] == 2
    assert sorted(words[2:4]) == [1, 1]


def test_an_idle_pool_sleeps_and_burns_nothing() -> None:
    assert region("tally", 3).run(Tally(8, spin=100), 8) == 0
    assert eventually(lambda: pool().sleeping == pool().workers >= 2)
    before = time.process_time()
    time.sleep(0.2)
    assert time.process_time() - before < 0.05


@pytest.mark.parametrize("threads", [2, 3, 5])
def test_the_first_code_is_given_and_ends_the_loop(threads: int) -> None:
    run = region("tally", threads)
    for fail_at in (0, 1, 500, 999):
        tally = Tally(1000, fail_at=fail_at, spin=2)
        assert run.run(tally, 1000) == 42
        assert tally.rounds(1000) <= {0, 1}
        assert run.run(Tally(1000), 1000) == 0


def test_a_failure_leaves_the_rest_undone() -> None:
    """The caller alone, for want of workers: it fails in the first of its eight chunks."""
    own = Pool(ctypes.CDLL(None))
    ctypes.c_int64.from_address(own.address + layout.POOL_MOST).value = 0
    run, tally = own_provider(own, 2), Tally(800, fail_at=3)
    assert run(own.address, bodies().address("tw_tally"), 800, tally.address) == 42
    assert tally.untouched_after == 100
    assert own.workers == 0


def test_many_callers_share_one_team() -> None:
    """One has the workers, the others do their work alone; nobody's iterations are lost."""
    run = region("tally", 3)

    def work(seed: int) -> bool:
        rng, tally = random.Random(seed), Tally(100, spin=1)
        wanted = [0] * 100
        for _ in range(400):
            stop = rng.randrange(1, 101)
            if run.run(tally, stop):
                return False
            for k in range(stop):
                wanted[k] += k + 1
        return list(tally.counts) == wanted

    before = pool().workers
    with ThreadPoolExecutor(8) as callers:
        assert all(callers.map(work, range(8)))
    assert pool().workers <= max(before, 2)


def test_a_loop_inside_of_a_loop_is_serial() -> None:
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


def test_workers_that_cannot_be_started_are_done_without() -> None:
    """A pool of its own, whose ``pthread_create`` answers EAGAIN from the second thread on."""
    own = Pool(ctypes.CDLL(None))
    create = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4)
    real = ctypes.CDLL(None).pthread_create
    made: list[int] = []

    def scarce(handle: int, attributes: int, start: int, argument: int) -> int:
        if made:
            return 11
        made.append(1)
        return int(real(*map(ctypes.c_void_p, (handle, attributes, start, argument))))

    native = create(scarce)
    where = ctypes.c_int64.from_address(own.address + layout.POOL_CREATE)
    where.value = ctypes.cast(native, ctypes.c_void_p).value or 0
    run, tally = own_provider(own, 6), Tally(100)
    for count in range(1, 50):
        assert run(own.address, bodies().address("tw_tally"), 100, tally.address) == 0
        assert tally.rounds(100) == {count}
    assert own.workers == 1
    own.close()


def own_provider(own: Pool, threads: int):
    """Give the provider whose context is the pool, as a runtime of an exported model has it."""
    from tilewright.codegen.runtime.support import support_address
    from tilewright.ir.host.support.pool import pool_parallel

    ctypes.c_int64.from_address(own.address + layout.POOL_LIMIT).value = threads
    kind = ctypes.CFUNCTYPE(
        ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p
    )
    return kind(support_address(pool_parallel))


def test_a_closed_pool_has_no_threads_and_runs_serially() -> None:
    for _ in range(40):
        own = Pool(ctypes.CDLL(None))
        before = threads_alive()
        run, tally = own_provider(own, 4), Tally(64)
        assert run(own.address, bodies().address("tw_tally"), 64, tally.address) == 0
        assert own.workers == 3
        own.close()
        own.close()
        assert eventually(lambda before=before: threads_alive() == before)
        assert run(own.address, bodies().address("tw_tally"), 64, tally.address) == 0
        assert tally.rounds(64) == {2}


def test_closing_while_a_loop_runs() -> None:
    for _ in range(20):
        own = Pool(ctypes.CDLL(None))
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


def test_signals_are_left_to_the_program() -> None:
    """Workers block them, but those that tell of a fault of their own."""
    assert region("tally", 3).run(Tally(8), 8) == 0
    python = {t.native_id for t in threading.enumerate()}
    blocked: list[int] = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # one that has just ended
            lines = (task / "status").read_text().splitlines()
            words = dict(line.split(":", 1) for line in lines)
            if int(task.name) not in python:
                blocked.append(int(words["SigBlk"], 16))
    worker = max(blocked)
    assert worker >> (signal.SIGINT - 1) & 1
    assert worker >> (signal.SIGTERM - 1) & 1
    assert not worker >> (signal.SIGSEGV - 1) & 1


# ---------------------------------------------------------------- processes


def python(script: str, *, expected: int = 0) -> str:
    """Run a program that has ``run``, a loop of two threads over ``tally``."""
    given = """
        import ctypes, os, signal, sys, threading, time
        from tests.codegen.runtime.regions import Region, Tally, bodies
        from tilewright.codegen.runtime.pool import process_pool
        from tilewright.codegen.runtime.table import RuntimeTable

        signal.alarm(40)
        run = Region(RuntimeTable(threads=3), bodies().address("tw_tally"), 64)
        tally = Tally(64, spin=5)

        def right(times=1):
            mine = Tally(64, spin=5)
            return all(run.run(mine) == 0 for _ in range(times)) and (
                mine.rounds(64) == {times})
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(given) + textwrap.dedent(script)],
        cwd=ROOT, timeout=60, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr[-2000:]) == (expected, "")
    return done.stdout


def test_children_forked_while_others_run_loops() -> None:
    """Of many forks some fall into a loop of another thread, or into a wake-up; no child hangs."""
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
        print("well")
    """)
    assert out == "well\n"


def test_a_forked_child_may_end_as_any_process() -> None:
    """It ends its own workers at its exit, and its parent's go on."""
    out = python("""
        assert right(3)
        child = os.fork()
        if child == 0:
            assert right(3)
            sys.exit(7)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 7
        assert right(3)
        print("well")
    """)
    assert out == "well\n"


def test_the_process_ends_while_workers_sleep_or_look_out() -> None:
    for pause in ("0", "0.01"):
        assert python(f"assert right(50); time.sleep({pause}); print('well')") == "well\n"


def test_the_process_ends_while_a_daemon_thread_runs_loops() -> None:
    out = python("""
        def work():
            while True:
                right()
        threading.Thread(target=work, daemon=True).start()
        time.sleep(0.05)
        print("well", flush=True)
    """)
    assert out == "well\n"


def test_the_process_ends_though_a_daemon_thread_is_in_an_endless_kernel() -> None:
    started = time.monotonic()
    out = python("""
        words = (ctypes.c_int64 * 8)()
        endless = Region(RuntimeTable(threads=3), bodies().address("tw_stubborn"), 64)
        threading.Thread(
            target=endless.run, args=(ctypes.addressof(words),), daemon=True).start()
        time.sleep(0.05)
        print("well", flush=True)
    """)
    assert out == "well\n"
    assert time.monotonic() - started < 30


def test_loops_at_exit_run_serially() -> None:
    """What is registered before the pool runs after its end."""
    script = textwrap.dedent("""
        import atexit
        from tests.codegen.runtime.regions import Region, Tally, bodies
        kept = {}
        def last():
            mine = Tally(64)
            print(kept["run"].run(mine), mine.rounds(64), kept["pool"].closed)
        atexit.register(last)
        from tilewright.codegen.runtime.pool import process_pool
        from tilewright.codegen.runtime.table import RuntimeTable
        kept["run"] = Region(RuntimeTable(threads=3), bodies().address("tw_tally"), 64)
        kept["pool"] = process_pool()
        assert kept["run"].run(Tally(64)) == 0
    """)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        cwd=ROOT, timeout=60, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("0 {1} True\n", "")
