"""Sixteen threads that use the same and other executables at once.

``python -m tests.attacks.threads SECONDS`` fails if a result is wrong, a call raises, or the
process hangs.
"""

from __future__ import annotations

import itertools
import random
import sys
import threading
import time
import traceback
from collections.abc import Callable

import numpy as np

import tilewright as tw

THREADS = 16
GRAPH = """
n = symbols("n", lower=0)

@graph_func
def main(x: Tensor[(n, 32), f32]):
    a = softmax(x, axis=-1)
    b = add(a, x)
    c = softmax(b, axis=-1)
    return c
"""
KERNEL = """
n = symbols("n", lower=0)

@prim_func
def scaled(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in parallel(n):
        y[i] = x[i] * {factor}.0
"""
NUMBERS = itertools.count(2)


def actions(seed: int) -> dict[str, Callable[[], None]]:
    """Return the actions of a thread, by name."""
    chance = random.Random(seed)
    graph = tw.compile(tw.parse(GRAPH))
    rows = np.random.default_rng(0).random((64, 32), np.float32)
    results = {n: graph(rows[:n]) for n in range(64)}
    vector = np.arange(30_000, dtype=np.float32)
    double = tw.compile(tw.parse(KERNEL.format(factor=2)))

    def call() -> None:
        for _ in range(50):
            n = chance.randrange(64)
            np.testing.assert_array_equal(graph(rows[:n]), results[n])

    def parallel() -> None:
        for _ in range(10):
            np.testing.assert_array_equal(double(vector), vector * 2)

    def compile_new() -> None:
        factor = next(NUMBERS) + 1
        made = tw.compile(tw.parse(KERNEL.format(factor=factor)))
        np.testing.assert_array_equal(made(vector), vector * np.float32(factor))

    def compile_old() -> None:
        made = tw.compile(tw.parse(GRAPH))
        np.testing.assert_array_equal(made(rows), graph(rows))

    def profile() -> None:
        graph.profile(rows, repeats=2)

    def fail() -> None:
        try:
            graph(rows[0])
        except tw.TilewrightError:
            return
        raise AssertionError("a wrong shape was accepted")

    return {
        "call": call, "parallel": parallel, "compile": compile_new, "compile again": compile_old,
        "profile": profile, "trim": graph.trim, "fail": fail,
    }  # fmt: skip


def main(seconds: float) -> None:
    """Run random actions on all threads."""
    failures: list[str] = []
    counts = [0] * THREADS
    shared = actions(0)
    end = time.monotonic() + seconds

    def work(k: int) -> None:
        chance = random.Random(k)
        while time.monotonic() < end and not failures:
            name = chance.choice(list(shared))
            try:
                shared[name]()
            except BaseException:  # noqa: BLE001  # reported below
                failures.append(f"{name}: {traceback.format_exc()}")
            counts[k] += 1

    threads = [threading.Thread(target=work, args=(k,)) for k in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        sys.exit(failures[0])
    sys.stdout.write(f"{sum(counts)} actions\n")


if __name__ == "__main__":
    main(float(sys.argv[1]))
