"""Interrupts at random times during import, compilation, calls, and measurements.

``python -m tests.attacks.interrupts SECONDS SEED`` runs until the time is over, in processes of
about 20 seconds each, and prints the numbers of interrupts. It fails if a process hangs, crashes,
computes a wrong result, raises another error, or loses workers, descriptors, or threads.
"""

from __future__ import annotations

import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tests.attacks.children import PATIENCE, run_child
from tests.waiting import wait_until

ROUND = 20.0
"""The time of one process in seconds."""

LEAST_ROUNDS = 4
"""The rounds that a process completes on a machine of any speed."""

PROGRAM = """
n = symbols("n", lower=0)

@prim_func
def scaled(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        y[i] = x[i] * {factor}.0 + {term}.0
"""


class Interrupts:
    """Runs actions on the main thread and interrupts each after a random time."""

    def __init__(self, seed: int) -> None:
        """Seed the random times."""
        self.random = random.Random(seed)
        self.counts = dict[str, list[int]]()

    def run(self, name: str, action: Callable[[], object], longest: float) -> None:
        """Run an action once, and interrupt it within ``longest`` seconds if it takes so long."""
        count = self.counts.setdefault(name, [0, 0])
        count[0] += 1
        delay, main = self.random.uniform(0, longest), threading.main_thread().ident
        lock = threading.Lock()
        over = threading.Event()

        def interrupt() -> None:
            if not over.wait(delay):
                with lock:
                    if not over.is_set() and main is not None:
                        signal.pthread_kill(main, signal.SIGINT)

        thread = threading.Thread(target=interrupt, daemon=True)
        try:
            thread.start()
            action()
        except KeyboardInterrupt:
            count[1] += 1
        while True:
            try:
                with lock:
                    over.set()
                thread.join()
                signal.pthread_sigmask(signal.SIG_BLOCK, ())  # handles a signal that was sent
            except KeyboardInterrupt:
                continue
            break


def import_package() -> None:
    """Import the package, as a user does."""
    import tilewright  # noqa: F401  # the import is what is interrupted


def main(seconds: float, seed: int) -> None:
    """Interrupt imports, then compilations, calls, and measurements, in this process."""
    # A shell lets its background jobs ignore interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    end = time.monotonic() + seconds
    interrupts = Interrupts(seed)
    for longest in (0.2, 0.5, 1.0):
        interrupts.run("import", import_package, longest)

    import numpy as np  # after the interrupted imports

    import tilewright as tw  # the same

    x, factors = np.arange(1000, dtype=np.float32), iter(range(1, 1_000_000))

    def program() -> tuple[tw.Module, np.ndarray]:
        factor = next(factors)
        text = PROGRAM.format(factor=factor % 1000, term=factor // 1000 + seed % 97)
        return tw.parse(text), x * (factor % 1000) + (factor // 1000 + seed % 97)

    def check() -> tuple[tw.codegen.Executable, np.ndarray]:
        module, expected = program()
        exe = tw.compile(module, timeout=60)
        np.testing.assert_array_equal(exe(x), expected)
        return exe, expected

    exe, expected = check()
    tw.measure(exe, x, budget=0.05)
    before = resources()
    rounds = 0
    while rounds < LEAST_ROUNDS or time.monotonic() < end:
        rounds += 1
        for _ in range(4):
            interrupts.run("compile", lambda: tw.compile(program()[0]), 0.3)
        for _ in range(20):
            interrupts.run("call", lambda: [exe(x) for _ in range(200)], 0.003)
        interrupts.run("assembly", lambda: exe.assembly("scaled"), 0.05)
        interrupts.run("measure", lambda: tw.measure(exe, x, budget=0.1), 1.0)
        interrupts.run("load", lambda: tw.compile(program()[0]).trim(), 0.2)
        np.testing.assert_array_equal(exe(x), expected)
        check()
    tw.measure(exe, x, budget=0.05)
    check_resources(before)
    counts = " ".join(f"{name}:{a}/{b}" for name, (a, b) in interrupts.counts.items())
    sys.stdout.write(f"{counts}\n")


def resources() -> tuple[int, int]:
    """Return the numbers of open descriptors and of threads of this process."""
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()


def check_resources(before: tuple[int, int]) -> None:
    """Check that no worker, descriptor or thread was lost."""
    from tilewright.codegen.build.worker_pool import default_pool  # as above

    pool = default_pool()
    try:
        wait_until(lambda: pool.idle >= len(pool.workers) and resources()[1] <= before[1], 30)
    except AssertionError:
        sys.exit(f"{pool.idle} of {len(pool.workers)} workers are idle; {resources()}")
    # Each process of a worker or a sandbox has a few descriptors, and may be running now.
    if resources()[0] > before[0] + 12:
        sys.exit(f"descriptors: {before[0]} before, {resources()[0]} after the interrupts")


def run_process(seconds: float, seed: int) -> str:
    """Run interrupts in another process and return the numbers of them."""
    return run_child(
        "-m", "tests.attacks.interrupts", "child", str(seconds), str(seed),
        patience=seconds + PATIENCE,
    )  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1] == "child":
        main(float(sys.argv[2]), int(sys.argv[3]))
    else:
        stop, seed = time.monotonic() + float(sys.argv[1]), int(sys.argv[2])
        while time.monotonic() < stop:
            sys.stdout.write(f"{seed} {run_process(ROUND, seed)}\n")
            sys.stdout.flush()
            seed += 1
