"""Calls, errors, and compilations in large numbers: memory, descriptors, and threads are bounded.

``python -m tests.attacks.leaks CALLS COMPILES`` prints the growth of each kind of action, and fails
if it is not bounded. 10,000 calls and 200 compilations take about two minutes.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np

import tilewright as tw

GRAPH = """
n = symbols("n", lower=0)

@graph_func
def main(x: Tensor[(n, 64), f32]):
    a = softmax(x, axis=-1)
    b = add(a, x)
    c = softmax(b, axis=-1)
    return c, b
"""
KERNEL = """
n = symbols("n", lower=0)

@prim_func
def gather(x: Buffer[(n,), f32], at: Buffer[(n,), i64], y: Out[(n,), f32]):
    for i in parallel(n):
        with checked(at[i], 0, n) as k:
            y[i] = x[k] * {factor}.0
"""
CALL_BYTES = 4 << 20
"""The growth of memory that any number of calls may have: arenas, plans, and the heap."""

COMPILE_BYTES = 200 << 10
"""The growth of memory that a compilation may have; machine code and caches of terms are kept."""


def resident() -> int:
    """Return the resident memory of this process in bytes, without free pages of the heap."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096


def state() -> tuple[int, int]:
    """Return the numbers of descriptors and of threads of this process."""
    tasks = len(list(Path("/proc/self/task").iterdir()))
    return len(list(Path("/proc/self/fd").iterdir())), tasks


def check(name: str, action: Callable[[int], object], count: int, most: int) -> None:
    """Repeat an action; its growth after a tenth of the repetitions must be at most a number."""
    first = max(count // 10, 2)
    for k in range(first):
        action(k)
    before, memory = state(), resident()
    for k in range(first, count):
        action(k)
    growth, after = resident() - memory, state()
    sys.stdout.write(f"{name}: {count} times, {growth / 1024:+.0f} KiB\n")
    if growth > most or after[0] > before[0] or after[1] > before[1]:
        sys.exit(f"{name}: grew by {growth} bytes; descriptors, threads: {before}, {after}")


def fails(error: type[Exception], call: Callable[[], object]) -> None:
    """Call something that raises an error."""
    try:
        call()
    except error:
        return
    sys.exit(f"no {error.__name__} was raised")


def main(calls: int, compiles: int) -> None:
    """Check all kinds of actions."""
    exe = tw.compile(tw.parse(GRAPH))
    gather = tw.compile(tw.parse(KERNEL.format(factor=1)))
    x = np.ones((32, 64), np.float32)
    values, index = np.ones(5000, np.float32), np.zeros(5000, np.int64)
    outside = np.full(5000, 5000)
    error = tw.TilewrightError

    def compiled(k: int) -> None:
        made = tw.compile(tw.parse(KERNEL.format(factor=k + 2)))
        np.testing.assert_array_equal(made(values, index), values * (k + 2))

    check("calls", lambda _: exe(x), calls, CALL_BYTES)
    check("calls of other shapes", lambda k: exe(x[: k % 32]), calls, CALL_BYTES)
    check("parallel calls", lambda _: gather(values, index), calls, CALL_BYTES)
    check("wrong dtypes", lambda _: fails(error, lambda: exe(1)), calls // 4, CALL_BYTES)
    check("wrong shapes", lambda _: fails(error, lambda: exe(values)), calls // 4, CALL_BYTES)
    failing = lambda _: fails(error, lambda: gather(values, outside))  # noqa: E731
    check("failing kernels", failing, calls // 4, CALL_BYTES)
    threads = lambda _: _in_threads(lambda: exe(x))  # noqa: E731
    check("calls in new threads", threads, calls // 40, CALL_BYTES)
    check("compilations", compiled, compiles, COMPILE_BYTES * compiles)
    cached = lambda k: compiled(k % 5)  # noqa: E731
    check("cached compilations", cached, compiles, COMPILE_BYTES * compiles)


def _in_threads(action: Callable[[], object]) -> None:
    threads = [threading.Thread(target=action) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
