"""Forks while other threads compile.

``python -m tests.attacks.forks COUNT`` forks COUNT times. Each child calls an executable of the
parent, then compiles and calls a new program. It fails if a child hangs, crashes, or computes a
wrong result.
"""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
import threading
import warnings

import numpy as np

import tilewright as tw

from tests.waiting import wait_until

PATIENCE = 60.0
"""The time in seconds after which a child counts as hanging."""

PROGRAM = """
n = symbols("n", lower=0)

@prim_func
def scaled(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in parallel(n):
        y[i] = x[i] * {factor}.0
"""
NUMBERS = itertools.count(1)
X = np.arange(100_000, dtype=np.float32)


def check(factor: int) -> None:
    """Compile and call a program."""
    exe = tw.compile(tw.parse(PROGRAM.format(factor=factor)))
    np.testing.assert_array_equal(exe(X), X * np.float32(factor))


def fork(exe: tw.codegen.Executable, factor: int) -> int:
    """Fork a child that calls and compiles; return its process id."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        np.testing.assert_array_equal(exe(X), X * 2)
        check(factor)
        code = 0
    finally:
        os._exit(code)


def exit_code(pid: int) -> int:
    """Wait for a child and return its exit code; 124 if it hangs, after killing it."""

    def ended() -> tuple[int, int] | None:
        found = os.waitpid(pid, os.WNOHANG)
        return found if found[0] else None

    try:
        _, status = wait_until(ended, PATIENCE)
    except AssertionError:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        return 124
    return os.waitstatus_to_exitcode(status)


def main(count: int) -> None:
    """Fork while two threads compile."""
    exe = tw.compile(tw.parse(PROGRAM.format(factor=2)))
    exe(X)
    stop = threading.Event()

    def compile_until_stopped() -> None:
        while not stop.is_set():
            check(next(NUMBERS) + 3)

    threads = [threading.Thread(target=compile_until_stopped) for _ in range(2)]
    for thread in threads:
        thread.start()
    codes: list[int] = []
    for k in range(0, count, 4):
        pids = [fork(exe, 100_000 + k + j) for j in range(min(4, count - k))]
        codes += map(exit_code, pids)
    stop.set()
    for thread in threads:
        thread.join()
    failed = [code for code in codes if code]
    sys.stdout.write(f"{len(codes)} children, {len(failed)} failed {failed}\n")
    sys.exit(bool(failed))


if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns about such forks
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TILEWRIGHT_CACHE"] = f"{folder}/cache"
        main(int(sys.argv[1]))
