"""Parallel loops: Tilewright's thread pool against OpenMP and one thread, idle and under load.

Run as ``python -m tests.benchmarks.parallel [--json FILE] [--only PART] [--threads 2]``. Parts:

- ``empty``: an empty parallel loop, called again at once, after 50 µs, and after 5 ms (when
  every worker sleeps).
- ``minilm``: the sentence-embedding model; every provider runs the same code, and their results are
  compared bit for bit.

Each part is measured on the machine as it is, and again beside ``LOAD`` busy processes of the same
priority. Providers are measured one after the other within a round, so that the workers of one do
not spin while another is measured. The tables show medians and 90th percentiles.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter, sleep

import numpy as np

from .harness import arguments, table, write_json

LOAD = 4
SHAPES = ((1, 32), (8, 128))
PAUSES = {"at once": 0.0, "after 50 us": 50e-6, "after 5 ms": 5e-3}
ROUNDS = 4
SETTLE = 0.05
"""Seconds until the workers of the previous provider sleep."""


@contextmanager
def loaded(processes: int) -> Generator[None]:
    """Run a number of busy processes during the context."""
    command = [sys.executable, "-c", "while True: pass"]
    started = [subprocess.Popen(command) for _ in range(processes)]
    try:
        sleep(0.3 if processes else 0)
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def measure(
    runs: Mapping[str, Callable[[], object]], seconds: float, pause: float = 0.0
) -> dict[str, dict[str, float]]:
    """Return the median, the 90th percentile, and the number of calls of each function."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            sleep(SETTLE)
            for _ in range(3):
                run()
            end = perf_counter() + seconds / ROUNDS
            while perf_counter() < end:
                wait(pause)
                start = perf_counter()
                run()
                times[name].append(perf_counter() - start)
    return {
        name: {"median": float(np.median(t)), "p90": float(np.quantile(t, 0.9)), "count": len(t)}
        for name, t in times.items()
    }


def wait(seconds: float) -> None:
    """Wait: asleep from 1 ms on, else spinning, so that the core is not yielded."""
    if seconds >= 1e-3:
        sleep(seconds)
        return
    end = perf_counter() + seconds
    while perf_counter() < end:
        pass


def empty_loops(threads: int) -> dict[str, Callable[[], object]]:
    """Return an empty parallel loop of twice as many iterations as threads, per provider."""
    from tilewright.codegen.runtime.table import RuntimeTable

    from tests.codegen.runtime.regions import Region, bodies

    body = bodies().address("tw_nothing")
    return {
        name: Region(RuntimeTable(threads=threads, parallel=name), body, 2 * threads).run
        for name in ("serial", "openmp", "pool")
    }


def part_empty(threads: int) -> dict[str, object]:
    """Measure the overhead of a parallel loop."""
    runs = empty_loops(threads)
    figures: dict[str, object] = {}
    rows: list[list[str]] = []
    for processes in (0, LOAD):
        with loaded(processes):
            for name, pause in PAUSES.items():
                found = measure(runs, 0.6 if pause < 1e-3 else 2.0, pause)
                figures[f"{name}, {processes} busy processes"] = found
                rows.append([name, str(processes), *cells(found, 1e6)])
    table(
        f"Empty parallel loop, {threads} threads, microseconds: median / 90th percentile",
        ("called", "busy", *runs),
        rows,
    )
    return figures


def cells(found: Mapping[str, Mapping[str, float]], scale: float) -> list[str]:
    """Format medians and 90th percentiles."""
    return [f"{t['median'] * scale:.1f} / {t['p90'] * scale:.1f}" for t in found.values()]


def executables(threads: Sequence[int]):
    """Compile the model per number of threads and provider; OpenMP is that of PyTorch."""
    import tilewright as tw
    from tilewright.codegen.runtime.table import RuntimeTable
    from tilewright.workbench.demo import export_minilm, load_minilm

    module = tw.from_exported_program(export_minilm(load_minilm()))
    made = {}
    for count in threads:
        names = ("serial",) if count == 1 else ("openmp", "pool")
        for name in names:
            own = RuntimeTable(threads=count, parallel=name)
            target = tw.Target("cpu", threads=count)
            made[f"{name} {count}"] = tw.compile(module, target=target, table=own)
    return made


def part_minilm(threads: int) -> dict[str, object]:
    """Measure the model with one thread, and with several threads of every provider."""
    compiled = executables((1, threads))
    figures: dict[str, object] = {}
    rows: list[list[str]] = []
    for processes in (0, LOAD):
        with loaded(processes):
            for batch, length in SHAPES:
                ids = np.random.default_rng(0).integers(1000, 30000, (batch, length))
                mask = np.ones_like(ids)
                runs = {
                    name: lambda exe=exe, ids=ids, mask=mask: exe(ids, mask)[0]
                    for name, exe in compiled.items()
                }
                results = [np.asarray(run()).tobytes() for run in runs.values()]
                if len(set(results)) > 1:
                    message = f"results at {batch}x{length} depend on the provider"
                    raise ArithmeticError(message)
                found = measure(runs, 6.0)
                figures[f"{batch}x{length}, {processes} busy processes"] = found
                rows.append([f"{batch}x{length}", str(processes), *cells(found, 1e3)])
    table(
        "MiniLM, milliseconds: median / 90th percentile; bit-identical results",
        ("shape", "busy", *compiled),
        rows,
    )
    return figures


PARTS = {"empty": part_empty, "minilm": part_minilm}


def main() -> None:
    """Run the chosen parts and print their tables."""
    options = arguments(__doc__ or "")
    threads = max(options.threads, 2)
    figures: dict[str, object] = {"threads": threads, "load": os.getloadavg()[0]}
    for name, part in PARTS.items():
        if options.only in name:
            figures[name] = part(threads)
    write_json(options.json, figures)


if __name__ == "__main__":
    main()
