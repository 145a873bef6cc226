"""Exhaustive test of all f32 values for every elementary function: ``make math``.

All 2**32 bit patterns (finite, infinite, NaN) are compared with float64 references, in chunks. The
arguments of ``python -m tests.fuzz.exhaustive_math`` restrict the functions. The exit status is 1
if an error exceeds 2 ulp.
"""

from __future__ import annotations

import sys

import numpy as np

from tilewright.ir.dtype import f32

from tests.codegen.functions import UNARY, apply, elementwise, error_in_ulps, reference
from tests.codegen.kernels import LEVELS

CHUNK = 1 << 22


def worst_error(op: str, level: str) -> tuple[float, float]:
    """Return the largest error in ulp, and its argument."""
    kernel = elementwise(op, f32, level)
    worst, argument = 0.0, 0.0
    for start in range(0, 1 << 32, CHUNK):
        x = np.arange(start, start + CHUNK, dtype=np.uint64).astype(np.uint32).view(np.float32)
        error, at = worst_of(op, x, apply(kernel, x))
        if error > worst:
            worst, argument = error, float(x[at])
    return worst, argument


def worst_of(op: str, x: np.ndarray, found: np.ndarray) -> tuple[float, int]:
    """Return the largest error of a chunk in ulp, and its index.

    Only results that are not correctly rounded are measured, because most are.
    """
    exact = reference(op, x)
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float32)
    wrong = (found != rounded) & ~(np.isnan(found) & np.isnan(rounded))
    indices = np.flatnonzero(wrong)
    if not indices.size:
        return 0.0, 0
    error = error_in_ulps(found[indices], exact[indices])
    at = int(np.argmax(error))
    return float(error[at]), int(indices[at])


def main(names: list[str]) -> int:
    failures = 0
    for op in names or list(UNARY):
        for level in LEVELS:
            worst, argument = worst_error(op, level)
            failures += worst > 2
            print(f"{op:8s} {level:7s} worst {worst:.4f} ulp at {argument!r}", flush=True)
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
