"""Kernels of the default rules against NumPy, PyTorch, ONNX Runtime, and the roofline.

Run as ``python -m tests.benchmarks.kernels [--only FAMILY] [--path avx2|avx512] [--threads N]
[--json FILE]``. Families are ``matmul``, ``convolution``, ``memory`` and ``attention``. Results are
checked against double precision within derived bounds. A row reached or missed its goal if the
95 % interval of the ratio to the best peer, or of the fraction of the roofline, is above or below
it; undecided rows are repeated twice and then listed as such. With ``--path avx2`` NumPy and
PyTorch are capped at the same instructions; ONNX Runtime cannot be, so it is listed and not
required on machines with more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

from ..harness import arguments, limit_threads, table, write_json
from . import attention, convolution, matmul, memory
from .case import Case
from .rows import Limits, Row, geometric_mean, measured

Figures: TypeAlias = dict[str, object]

FAMILIES: dict[str, Callable[[int], Iterator[Case]]] = {
    "matmul": matmul.cases,
    "convolution": convolution.cases,
    "memory": memory.cases,
    "attention": attention.cases,
}

MEANS = {"convolution": 1.1}
"""The goals of the geometric mean of the ratios of a family."""


def limits(threads: int) -> Limits:
    """Return the peak rates of this machine: the highest ones that were measured."""
    from tilewright.codegen.measure.peaks import machine_peaks
    from tilewright.target.target import Target

    peaks = machine_peaks(Target("cpu"), threads, again=True)
    return Limits(peaks.gflops, tuple((x.capacity, x.gbytes) for x in peaks.levels))


def required() -> tuple[str, ...]:
    """Return the peers that use the same instructions."""
    from tilewright.target.host import host_cap

    info = Path("/proc/cpuinfo")
    capped = host_cap() == "avx2" and info.exists() and "avx512f" in info.read_text()
    return ("numpy", "torch") if capped else ("numpy", "torch", "onnxruntime")


def family(name: str, threads: int, roof: Limits) -> Figures:
    """Measure the cases of a family, print their table, and return their figures."""
    peers, rows = required(), list[Row]()
    for case in FAMILIES[name](threads):
        rows.append(measured(case, roof, peers))
        print(_text(rows[-1]), flush=True)
    shown = [
        [
            r.case.name, f"{r.seconds['ours'] * 1e6:.1f}", f"{r.seconds[r.best] * 1e6:.1f}", r.best,
            f"{r.middle:.2f}", f"{r.ratio[0]:.2f}-{r.ratio[1]:.2f}", f"{r.roof:.0%}", r.outcome,
        ]
        for r in rows
    ]  # fmt: skip
    header = ("case", "tilewright", "best", "peer", "ratio", "interval", "of roof", "goal")
    table(f"{name} (us)", header, shown)
    mean = geometric_mean([r.middle for r in rows])
    goal = f", goal {MEANS[name]:.2f}" if name in MEANS else ""
    print(f"  geometric mean of the ratios {mean:.2f}{goal}")
    counts = {v: sum(r.outcome == v for r in rows) for v in ("reached", "missed", "undecided")}
    print("  " + ", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    figures: Figures = {
        r.case.name: {
            "seconds": dict(r.seconds), "best": r.best, "ratio": r.middle,
            "interval": list(r.ratio), "of_roof": r.roof, "outcome": r.outcome,
        }
        for r in rows
    }  # fmt: skip
    return {"rows": figures, "geometric_mean": mean, **counts}


def _text(row: Row) -> str:
    return f"  {row.case.name}: {row.middle:.2f} of {row.best}, {row.roof:.0%} of the roof"


def main() -> None:
    """Measure the chosen families."""
    options = arguments(__doc__ or "")
    limit_threads(options.threads)
    import torch

    torch.set_num_threads(options.threads)
    figures: Figures = {"threads": options.threads}
    with torch.inference_mode():
        roof = limits(options.threads)
        print(f"peak {roof.gflops:.0f} GFLOP/s, bytes/ns by level: {roof.levels}")
        for name in FAMILIES:
            if options.only in name:
                figures[name] = family(name, options.threads, roof)
    write_json(options.json, figures)


if __name__ == "__main__":
    main()
