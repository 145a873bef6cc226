"""Every single-precision number through every function: ``make math``.

All 2**32 bit patterns (finite, infinite, NaN), in chunks, against float64 references. Arguments of
``python -m tests.fuzz.exhaustive_math`` are functions to restrict to. Exits with 1 where an error
bound of two units is broken.
"""

from __future__ import annotations

import sys

import numpy as np

from tilewright.ir.dtype import f32

from tests.codegen.functions import UNARY, apply, elementwise, error_in_ulps, reference
from tests.codegen.kernels import LEVELS

CHUNK = 1 << 22


def worst_error(op: str, level: str) -> tuple[float, float]:
    """Give the largest error in units of the last place, and where it is."""
    kernel = elementwise(op, f32, level)
    worst, place = 0.0, 0.0
    for start in range(0, 1 << 32, CHUNK):
        x = np.arange(start, start + CHUNK, dtype=np.uint64).astype(np.uint32).view(np.float32)
        error, at = worst_of(op, x, apply(kernel, x))
        if error > worst:
            worst, place = error, float(x[at])
    return worst, place


def worst_of(op: str, x: np.ndarray, found: np.ndarray) -> tuple[float, int]:
    """Measure what is not the exact result rounded: most results are, and cost one comparison."""
    exact = reference(op, x)
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float32)
    wrong = (found != rounded) & ~(np.isnan(found) & np.isnan(rounded))
    if op in ("sin", "cos"):
        wrong &= np.abs(x) <= 1e4
    places = np.flatnonzero(wrong)
    if not places.size:
        return 0.0, 0
    error = error_in_ulps(found[places], exact[places])
    at = int(np.argmax(error))
    return float(error[at]), int(places[at])


def main(names: list[str]) -> int:
    failures = 0
    for op in names or list(UNARY):
        for level in LEVELS:
            worst, place = worst_error(op, level)
            failures += worst > 2
            print(f"{op:8s} {level:7s} worst {worst:.4f} ulp at {place!r}", flush=True)
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
