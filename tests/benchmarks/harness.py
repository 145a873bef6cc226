"""What the benchmarks share: interleaved timing, thread limits, the machine's facts, tables."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import perf_counter

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


def limit_threads(count: int) -> None:
    """Hold every library to a number of threads; call it before NumPy or torch is imported."""
    for name in THREAD_VARIABLES:
        os.environ[name] = str(count)


def interleaved(
    runs: Mapping[str, Callable[[], object]], *, seconds: float = 1.5, least: int = 7
) -> dict[str, float]:
    """Time functions in turn, and give each one's median in seconds.

    Taking turns lets a change of the machine's speed reach all of them alike.
    """
    for run in runs.values():
        run()
        run()
    times: dict[str, list[float]] = {name: [] for name in runs}
    end = perf_counter() + seconds
    while perf_counter() < end or min(map(len, times.values())) < least:
        for name, run in runs.items():
            start = perf_counter()
            run()
            times[name].append(perf_counter() - start)
    return {name: statistics.median(found) for name, found in times.items()}


def per_call(run: Callable[[], object], count: int = 2000, rounds: int = 15) -> float:
    """Give the median over rounds of the mean time of a short call, in seconds."""
    for _ in range(count):
        run()
    means: list[float] = []
    for _ in range(rounds):
        start = perf_counter()
        for _ in range(count):
            run()
        means.append((perf_counter() - start) / count)
    return statistics.median(means)


def machine() -> dict[str, str]:
    """Name the processor, cores and the versions that matter."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [x for x in info.read_text().splitlines() if x.startswith("model name")]
        families = [x for x in info.read_text().splitlines() if x.startswith("cpu family")]
        model = f"{names[0].split(':')[1].strip()}, {families[0].replace(chr(9), '')}"
    return {
        "processor": model,
        "cores": str(os.cpu_count()),
        "python": platform.python_version(),
        "system": platform.system(),
    }


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table with right-aligned columns."""
    widths = [max(len(r[k]) for r in (header, *rows)) for k in range(len(header))]
    print(f"\n{title}")
    for row in (header, *rows):
        print("  " + "  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)))


def arguments(description: str) -> argparse.Namespace:
    """Read the command line that all benchmarks share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--threads", type=int, default=1, help="threads for everybody")
    parser.add_argument("--only", default="", help="run the parts whose names contain this")
    return parser.parse_args()


def write_json(path: Path | None, figures: Mapping[str, object]) -> None:
    """Write figures together with the machine's facts."""
    if path is not None:
        text = json.dumps({"machine": machine(), **figures}, indent=2, sort_keys=True)
        path.write_text(text + "\n", encoding="utf-8")
        print(f"\nwritten to {path}")
