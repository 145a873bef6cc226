"""Shared parts of the benchmarks: interleaved timing, limits, machine facts, tables."""

from __future__ import annotations

import argparse
import cProfile
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

PEER_FEATURES = {
    "avx2": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
    },
    "avx512": {
        "ATEN_CPU_CAPABILITY": "avx512",
        "MKL_ENABLE_INSTRUCTIONS": "AVX512",
        "ONEDNN_MAX_CPU_ISA": "AVX512_CORE",
        "OPENBLAS_CORETYPE": "SkylakeX",
    },
}
"""Variables that cap PyTorch and NumPy at a feature set; ONNX Runtime does not have one."""

NOT_HERE = "not_on_this_machine"
"""The key of the names of instructions, tools, and rows that a machine cannot measure."""


def limit_threads(count: int) -> None:
    """Limit the threads of every library; call it before NumPy or PyTorch is imported.

    Peers are capped at the same feature set as Tilewright is by ``TILEWRIGHT_HOST_FEATURES``.
    """
    from tilewright.target.host import host_cap

    for name in THREAD_VARIABLES:
        os.environ[name] = str(count)
    os.environ.update(PEER_FEATURES.get(host_cap() or "", {}))


def count_calls(run: Callable[[], object]) -> int:
    """Return the number of function calls, which does not depend on the speed of the machine."""
    profile = cProfile.Profile()
    profile.enable()
    try:
        run()
    finally:
        profile.disable()
    return sum(entry.callcount for entry in profile.getstats())


def sampled(
    runs: Mapping[str, Callable[[], object]], *, seconds: float = 1.5, least: int = 7
) -> dict[str, list[float]]:
    """Return the times of interleaved calls of each function in seconds.

    Interleaving exposes all functions to the same changes of the machine's speed.
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
    return times


def interleaved(
    runs: Mapping[str, Callable[[], object]], *, seconds: float = 1.5, least: int = 7
) -> dict[str, float]:
    """Return the median time of each function in seconds, from interleaved calls."""
    times = sampled(runs, seconds=seconds, least=least)
    return {name: statistics.median(found) for name, found in times.items()}


def per_call(run: Callable[[], object], count: int = 2000, rounds: int = 15) -> float:
    """Return the median over rounds of the mean time of a short call, in seconds."""
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
    """Return the processor, its features, its cores, and the versions of Python and the system."""
    from tilewright.target.host import host_cap, with_level
    from tilewright.target.target import Target

    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [x for x in info.read_text().splitlines() if x.startswith("model name")]
        families = [x for x in info.read_text().splitlines() if x.startswith("cpu family")]
        model = f"{names[0].split(':')[1].strip()}, {families[0].replace(chr(9), '')}"
    return {
        "processor": model,
        "features": ", ".join(with_level(Target("cpu")).features),
        "features capped at": host_cap() or "",
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
    """Parse the options that all benchmarks accept."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--threads", type=int, default=1, help="threads of every library")
    parser.add_argument("--only", default="", help="run the parts whose names contain this")
    parser.add_argument(
        "--path", default="", choices=["", *PEER_FEATURES], help="cap all libraries at instructions"
    )
    options = parser.parse_args()
    if options.path:
        os.environ["TILEWRIGHT_HOST_FEATURES"] = options.path
    return options


def write_json(path: Path | None, figures: Mapping[str, object]) -> None:
    """Write the figures and the facts of the machine, and print the names of missing rows."""
    names = [name for part in figures.values() for name in _missing(part)]
    if names:
        print("\nnot on this machine:")
        for name in names:
            print(f"  {name}")
    if path is not None:
        facts = {"machine": machine(), NOT_HERE: names}
        shown = {name: _present(part) for name, part in figures.items()}
        text = json.dumps({**facts, **shown}, indent=2, sort_keys=True)
        path.write_text(text + "\n", encoding="utf-8")
        print(f"\nwritten to {path}")


def _missing(part: object) -> list[str]:
    names = part.get(NOT_HERE) if isinstance(part, Mapping) else None
    return names if isinstance(names, list) else []


def _present(part: object) -> object:
    if isinstance(part, Mapping):
        return {name: value for name, value in part.items() if name != NOT_HERE}
    return part
