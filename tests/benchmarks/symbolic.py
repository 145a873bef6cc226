"""Time to build and to prove symbolic indices.

Run as ``python -m tests.benchmarks.symbolic [--json FILE]``. Building is timed from cold tables on
1,000 different index expressions, as splits, fusions, and reshapes of loops create them.
"""

from __future__ import annotations

import argparse
import gc
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter_ns
from typing import TypedDict

from tilewright.ir.symbolic import (
    Bool,
    Expr,
    Facts,
    ceildiv,
    clear_caches,
    eq,
    minimum,
    prove,
    var,
)

from tests.benchmarks.harness import write_json

Index = Callable[[], Expr]
COUNT = 1000


class Result(TypedDict):
    """Times in microseconds."""

    count: int
    median: float
    p99: float
    worst: float


def split(k: int) -> Index:
    """Return an index of a column loop split by a constant: its row or column in the address."""
    factor, rows = 2 + k % 61, var("r", lower=0)
    i0, i1 = var("i0", lower=0), var("i1", lower=0, upper=factor - 1)
    if k % 2:
        return lambda: (rows * (factor * 8) + i0 * factor + i1) // factor
    return lambda: (rows * (factor * 8) + i0 * factor + i1) % factor + (k + 1) * i0


def fuse(k: int) -> Index:
    """Return an index that splits a fused loop into symbolic dimensions and fuses it again."""
    f, n, m = var("f", lower=0), var(f"n{k}", lower=1), var("m", lower=1)
    return lambda: (f // (n * m) * n + f // m % n) * m + f % m


def reshape(k: int) -> Index:
    """Return ``(b, s, h) -> (b * s, heads, h // heads)`` and back, with constant inner sizes."""
    heads, size = 2 + k % 15, 8 * (1 + k % 7)
    b, s, extent = var("b", lower=0), var("s", lower=0), var(f"s{k}", lower=1)
    h = var("h", lower=0, upper=heads * size - 1)

    def build() -> Expr:
        flat = (b * extent + s) * (heads * size) + h
        token, inside = flat // (heads * size), flat % (heads * size)
        return token * (heads * size) + inside // size * size + inside % size

    return build


def indices() -> Iterator[Index]:
    """Yield the 1,000 expressions with their symbols; terms are not built yet."""
    makers = (split, fuse, reshape)
    for k in range(COUNT):
        yield makers[k % 3](k)


def measure_building(clock: Callable[[], int] = perf_counter_ns) -> Result:
    """Time each expression once, with cold tables."""
    pending = list(indices())
    reshape(COUNT + 1)()  # warms up the code
    clear_caches()
    times: list[float] = []
    kept: list[Expr] = []
    gc.collect()
    gc.freeze()  # objects of other modules are not collected meanwhile
    for build in pending:
        start = clock()
        kept.append(build())
        times.append((clock() - start) / 1000)
    gc.unfreeze()
    return summary(times)


def measure_again() -> Result:
    """Time the same construction with warm tables."""
    build = reshape(3)
    kept = build()
    times: list[float] = []
    for _ in range(COUNT):
        start = perf_counter_ns()
        build()
        times.append((perf_counter_ns() - start) / 1000)
    del kept
    return summary(times)


def goals() -> list[tuple[Bool, Facts]]:
    """Return claims of schedules over fresh symbols, so that no proof is cached."""
    n, m, i, j, f = (var(name) for name in "nmijf")
    positive = Facts().with_range(n, 1).with_range(m, 1)
    loops = positive.with_loop(i, n).with_loop(j, m)
    aligned = loops.assume(eq(n % 4, 0))
    flat = positive.with_loop(f, n * m)
    return [
        (ceildiv(n, 8) * 8 >= n, positive),
        (i * m + j < n * m, loops),
        (eq((i * m + j) // m, i), loops),
        (i // 4 < n // 4, aligned),
        (i // 4 < n // 4, loops),
        (f // m < n, flat),
        (f // m < n - 1, flat),
        (minimum(n, 64) <= n, positive),
        (i // 4 + j // 4 < ceildiv(n + m, 4), loops),
    ]


def measure_proving(clock: Callable[[], int] = perf_counter_ns) -> Result:
    """Time each claim once on fresh symbols."""
    times: list[float] = []
    for _ in range(20):
        for claim, facts in goals():
            start = clock()
            prove(claim, facts)
            times.append((clock() - start) / 1000)
    return summary(times)


def summary(times: list[float]) -> Result:
    """Return the count, the median, the 99th percentile, and the maximum."""
    return {
        "count": len(times),
        "median": round(statistics.median(times), 2),
        "p99": round(statistics.quantiles(times, n=100)[98], 2),
        "worst": round(max(times), 2),
    }


def main() -> None:
    """Print the table, and write it as JSON on request."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = {
        "build cold": measure_building(),
        "build again": measure_again(),
        "prove": measure_proving(),
    }
    print(f"{'µs':12} {'count':>6} {'median':>9} {'p99':>9} {'worst':>9}")
    for name, r in results.items():
        print(f"{name:12} {r['count']:6} {r['median']:9} {r['p99']:9} {r['worst']:9}")
    write_json(options.json, {"unit": "µs", **results})


if __name__ == "__main__":
    main()
