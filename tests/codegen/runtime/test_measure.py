"""Measuring from a script: conditions, intervals, rivals, verdicts; cancelling, measured."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.runtime.errors import RunCancelledError, RunCrashedError, RunMemoryError
from tilewright.codegen.runtime.isolated import (
    Conditions,
    ConditionsError,
    Plan,
    Runner,
    alone,
    exact_results,
)
from tilewright.codegen.runtime.isolated.measure import MeasureError
from tilewright.codegen.runtime.workers import Cancellation

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

X = np.linspace(0.5, 1.5, 512, dtype=np.float32)


def program(times: int) -> tw.ir.module.Module:
    return tw.parse(PROGRAM.format(times=times))


def test_a_slower_rival_is_told_apart_and_the_same_one_is_not_by_much() -> None:
    fast = program(2)
    taken = tw.measure(
        fast, X, budget=0.4, against={"slow": program(64), "same": fast}, target="cpu"
    )
    slow, same = taken.compare
    assert taken.low <= taken.median <= taken.high
    assert slow.low <= slow.ratio <= slow.high
    assert slow.low > 1
    assert 0.5 < same.ratio < 2
    assert taken.verdict is not None
    assert taken.verdict.agrees
    assert slow.verdict is not None
    assert not slow.verdict.agrees  # it computes something else, and that is said
    assert "WRONG" in str(taken)
    told = taken.to_json()
    assert told["machine"]["processor"]
    assert told["conditions"]["caches"] == "hot"


def test_what_nobody_could_check_is_told() -> None:
    module = tw.parse(PROGRAM.format(times=8))
    unchecked = tw.measure(tw.compile(module), X, budget=0.1)
    assert unchecked.verdict is None
    assert "; not checked" in str(unchecked)
    beside = tw.measure(tw.compile(module), X, budget=0.1, against=[module])
    assert beside.verdict is not None
    assert "; right" in str(beside)
    assert "not checked" not in str(beside)


def test_conditions_are_kept_to_and_told() -> None:
    module = program(8)
    cold = tw.measure(module, X, caches="cold", threads=1, pin=True, budget=0.2, check=False)
    hot = tw.measure(module, X, threads=1, budget=0.2, check=False)
    assert cold.median > hot.median
    assert cold.verdict is None
    assert "cold caches, 1 thread, each on a core of its own" in str(cold)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"caches": "warm"}, "hot or cold, not 'warm'"),
        ({"threads": -1}, "-1 threads"),
        ({"budget": 0.0}, "a budget of 0 s"),
        ({"budget": float("nan")}, "a budget of nan s"),
        ({"budget": 1e9}, "up to 120 s"),
    ],
)
def test_conditions_that_make_no_sense(given, message) -> None:
    with pytest.raises(ConditionsError, match=message):
        Conditions(**given)


def test_more_threads_than_compiled_for_or_than_cores() -> None:
    target = tw.Target("cpu")
    with pytest.raises(ConditionsError, match=r"5000 threads asked for, .* compiled for 2"):
        Conditions(threads=5000).plan(2, target)
    with pytest.raises(ConditionsError, match="cannot have a core each"):
        Conditions(pin=True).plan(5000, target)
    with pytest.raises(ConditionsError, match="are the processor's"):
        Conditions(caches="cold").plan(1, tw.Target("simt"))


def test_what_cannot_be_measured() -> None:
    with pytest.raises(MeasureError, match="not int"):
        tw.measure(3, X)  # pyright: ignore[reportArgumentType]
    with pytest.raises(MeasureError, match="not str"):
        tw.measure(program(2), "x")
    with pytest.raises(MeasureError, match="compiled for its target already"):
        tw.measure(tw.compile(program(2)), X, target="cpu")


def test_two_measurements_wait_for_each_other() -> None:
    order: list[str] = []
    with alone() as first:
        thread = threading.Thread(target=lambda: _second(order))
        thread.start()
        time.sleep(0.2)
        order.append("first")
    thread.join()
    assert first
    assert order == ["first", "second True"]


def _second(order: list[str]) -> None:
    with alone() as undisturbed:
        order.append(f"second {undisturbed}")


def test_waiting_is_cancelled() -> None:
    cancel = Cancellation()
    cancel.cancel()
    with alone(), pytest.raises(RunCancelledError), alone(cancel):
        pass


def gone(pid: int, within: float) -> bool:
    end = time.monotonic() + within
    while Path(f"/proc/{pid}").exists():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


@pytest.mark.parametrize("twice", [False, True])
def test_a_cancelled_measurement_is_gone_in_time(twice: bool) -> None:
    runner, cancel, ended = Runner(tw.compile(tw.parse(ENDLESS))), Cancellation(), list[float]()

    def work() -> None:
        with pytest.raises(RunCancelledError):
            runner.run("main", [X], Plan(), cancel=cancel, timeout=60)
        ended.append(time.monotonic())

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(1.5)
    pid = runner.pid
    assert pid is not None
    asked = time.monotonic()
    cancel.cancel()
    if twice:
        cancel.cancel()
    thread.join(5)
    assert ended
    assert ended[0] - asked < 2
    assert gone(pid, 2 - (ended[0] - asked))
    cancel.cancel()  # after the end it does nothing


def test_the_interpreter_of_an_endless_program_is_cancelled() -> None:
    cancel = Cancellation()
    asked: list[float] = []

    def press() -> None:
        asked.append(time.monotonic())
        cancel.cancel()

    threading.Timer(1.0, press).start()
    with pytest.raises(RunCancelledError):
        exact_results(tw.parse(ENDLESS), "main", [X], cancel=cancel)
    assert time.monotonic() - asked[0] < 2


def test_memory_is_counted_from_where_the_program_begins() -> None:
    """The limit is on what the run allocates: libraries of hundreds of MiB are none of it."""
    runner = Runner(tw.compile(program(2)), memory=32 << 20)
    assert runner.run("main", [X]).results[0][0] == np.float32(0.5)
    runner.close()
    greedy = Runner(tw.compile(tw.parse(GREEDY)), memory=256 << 20)
    with pytest.raises(RunMemoryError, match=r"may take 256\.0 MiB beside the .* it began with"):
        greedy.run("main", [X[:1]])
    greedy.close()


def test_a_forked_child_leaves_the_runner_alone() -> None:
    runner = Runner(tw.compile(program(2)))
    first = runner.run("main", [X]).results[0]
    pid = runner.pid
    child = os.fork()
    if child == 0:
        code = 1
        try:
            own = runner.run("main", [X]).results[0]
            code = 0 if np.array_equal(own, first) and runner.pid != pid else 2
        finally:
            runner.close()
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert runner.pid == pid
    assert np.array_equal(runner.run("main", [X]).results[0], first)
    assert runner.pid == pid
    runner.close()


def test_killed_at_odd_moments_and_no_shared_memory_is_left() -> None:
    before = set(Path("/dev/shm").iterdir())
    runner = Runner(tw.compile(program(64)))
    runner.run("main", [X])
    for delay in (0.0, 0.02, 0.1, 0.25):
        if runner.pid is None or not Path(f"/proc/{runner.pid}").exists():
            runner.run("main", [X])
        pid = runner.pid
        assert pid is not None
        timer = threading.Timer(delay, lambda pid=pid: os.kill(pid, 9))
        timer.start()
        with pytest.raises(RunCrashedError, match="SIGKILL"):
            while True:
                runner.run("main", [X], Plan(least=50, most=10**6, seconds=5))
                if runner.pid != pid:
                    raise RunCrashedError("SIGKILL between two runs: the next began afresh")
        timer.join()
    runner.run("main", [X])
    runner.close()
    assert set(Path("/dev/shm").iterdir()) == before
