"""erfc and its relatives in double precision where their formulas change."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from tilewright.ir.dtype import f64
from tilewright.ir.loop.element_functions import FUNCTIONS

from tests.codegen.functions import EXACT, apply, elementwise
from tests.codegen.kernels import LEVELS

SWITCHES = {
    "erf": [0.921875, 2.0, 6.0],
    "erfc": [0.5, 1.0, 2.0, 5.9, 26.0, 26.5, 27.2],
    "erfinv": [0.5, 0.75, *np.sqrt(-np.expm1([-3.125, -6.25, -16.0, -25.0])), 1 - 2.0**-40],
    "lgamma": [0.5, 1.0, 1.5, 2.0, *np.arange(2.5, 10.5, 0.5), 1e5, 1e16, 1e300, 1e-300],
    "digamma": [0.5, 1.0, 1.4616321449683622, *np.arange(2.0, 10.0, 0.5), 1e5, 1e16, 1e-20],
}
"""The numbers beside which the formula of a function changes, its roots, and extreme numbers."""


def beside(numbers: list[float]) -> np.ndarray:
    """Return numbers, their neighbors, and numbers at distances of powers of two."""
    found = []
    for x in numbers:
        spacing = np.spacing(x)
        found += [x + k * spacing for k in range(-12, 13)]
        found += [x * (1 + s * 2.0**-j) for j in range(4, 50, 3) for s in (-1, 1)]
    return np.array(found)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("op", SWITCHES)
def test_double_precision_beside_changes_of_the_formula(op: str, level: str) -> None:
    x = beside(SWITCHES[op])
    x = np.concatenate([x, -x]) if op.startswith("erf") else x[x > 0]
    x = x[np.abs(x) < 1] if op == "erfinv" else x
    bound = FUNCTIONS[op].ulps(f64)
    for a, b in zip(x.tolist(), apply(elementwise(op, f64, level), x).tolist(), strict=True):
        with mpmath.workprec(220):
            exact = EXACT[op](mpmath.mpf(a))
            unit = float(np.spacing(abs(float(exact))))
            assert abs(mpmath.mpf(b) - exact) <= bound * unit, (a, b)
