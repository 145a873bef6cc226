"""lgamma and digamma beside their roots and poles, and for negative numbers."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from tilewright.ir.dtype import f32, f64
from tilewright.ir.loop.element_functions import FUNCTIONS

from tests.codegen.functions import EXACT, apply, elementwise
from tests.codegen.kernels import LEVELS


def roots(op: str) -> np.ndarray:
    """Return the roots between -12 and 3."""
    found = [1.0, 2.0] if op == "lgamma" else [1.4616321449683622]
    with mpmath.workprec(80):
        for k in range(2 if op == "lgamma" else 0, 12):
            ends = [(-k - 1 + 1e-9, -k - 0.5), (-k - 0.5, -k - 1e-9)]
            for low, high in ends:
                values = [EXACT[op](mpmath.mpf(x)) for x in (low, high)]
                if values[0] * values[1] < 0:
                    found.append(float(mpmath.findroot(EXACT[op], (low, high), "anderson")))
    return np.array(found)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("op", ["lgamma", "digamma"])
def test_single_precision_beside_roots(op: str, level: str) -> None:
    x = roots(op).astype(np.float32)
    near = [x]
    for k in range(30):
        near += [np.nextafter(near[-1 if k < 1 else -2], np.float32(9)),
                 np.nextafter(near[-1], np.float32(-99))]  # fmt: skip
    x = np.unique(np.concatenate(near))
    x = x[(x > 0) | (x != np.floor(x))]
    for a, b in zip(x.tolist(), apply(elementwise(op, f32, level), x).tolist(), strict=True):
        with mpmath.workprec(160):
            exact = EXACT[op](mpmath.mpf(a))
            unit = max(float(np.spacing(np.float32(abs(float(exact))))), 1e-45)
            assert abs(mpmath.mpf(b) - exact) <= FUNCTIONS[op].ulps(f32) * unit, (a, b)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("op", ["lgamma", "digamma"])
def test_negative_doubles_within_the_noted_bound(op: str, level: str) -> None:
    rng = np.random.default_rng(4)
    near = roots(op)
    sizes = [rng.uniform(0, 40, 300), 10.0 ** rng.uniform(-8, 6, 100), -near[near < 0]]
    x = -np.concatenate(sizes)
    for a, b in zip(x.tolist(), apply(elementwise(op, f64, level), x).tolist(), strict=True):
        with mpmath.workprec(200):
            exact, other = EXACT[op](mpmath.mpf(a)), float(EXACT[op](1 - mpmath.mpf(a)))
            size = max(1.0, abs(other), abs(float(exact)))
            assert abs(mpmath.mpf(b) - exact) <= 4 * float(np.spacing(size)), (a, b)
