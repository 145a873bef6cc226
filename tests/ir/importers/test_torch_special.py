"""Bessel, error, and zeta functions of PyTorch, against SciPy and PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import special

from tilewright.ir.importers import special_coefficients

from tests.fuzz.fit_special import FITS, coefficients
from tests.ir.importers.exported import compiled

EVERYWHERE = np.concatenate([
    np.linspace(-30, 30, 301), np.geomspace(1e-20, 600, 97), -np.geomspace(1e-20, 600, 96),
    [700, -700, np.nan, 0, 8, -8],
]).reshape(20, 25)  # fmt: skip
CHANCES = np.concatenate([
    np.linspace(0, 1, 250), np.geomspace(1e-300, 0.5, 248), [-0.5, 1.5],
]).reshape(20, 25)  # fmt: skip

# Functions of one number: the reference, the operands, the accuracy relative to 1 and the result.
FUNCTIONS: dict[str, tuple[Any, Any, float]] = {
    "i0": (special.i0, EVERYWHERE, 1e-13),
    "i0e": (special.i0e, EVERYWHERE, 1e-14),
    "i1": (special.i1, EVERYWHERE, 1e-13),
    "i1e": (special.i1e, EVERYWHERE, 1e-14),
    "modified_bessel_k0": (special.k0, EVERYWHERE, 1e-13),
    "modified_bessel_k1": (special.k1, EVERYWHERE, 1e-13),
    "scaled_modified_bessel_k0": (special.k0e, EVERYWHERE, 1e-13),
    "scaled_modified_bessel_k1": (special.k1e, EVERYWHERE, 1e-13),
    "bessel_j0": (special.j0, EVERYWHERE, 1e-13),
    "bessel_j1": (special.j1, EVERYWHERE, 1e-13),
    "bessel_y0": (special.y0, EVERYWHERE, 1e-13),
    "bessel_y1": (special.y1, EVERYWHERE, 1e-13),
    "spherical_bessel_j0": (lambda x: special.spherical_jn(0, np.abs(x)), EVERYWHERE, 1e-14),
    "erfcx": (special.erfcx, EVERYWHERE, 1e-12),
    "log_ndtr": (special.log_ndtr, EVERYWHERE, 1e-13),
    "ndtri": (special.ndtri, CHANCES, 1e-12),
}


@pytest.mark.parametrize("first", range(0, len(FUNCTIONS), 5))
def test_functions_equal_scipy_in_double_precision(first: int) -> None:
    for name in [*FUNCTIONS][first : first + 5]:
        reference, x, accuracy = FUNCTIONS[name]
        function = torch.i0 if name == "i0" else getattr(torch.special, name)
        found = np.asarray(compiled(lambda y, f=function: [f(y)], dtype=torch.float64)(x))
        with np.errstate(all="ignore"):
            exact = reference(x)
        np.testing.assert_allclose(found, exact, rtol=accuracy, atol=accuracy, err_msg=name)


def test_zeta_functions_equal_scipy() -> None:
    run = compiled(
        lambda x: [torch.special.zeta(x, 2.5), torch.special.zeta(3.0, x), *(
            torch.polygamma(n, x) for n in range(4)
        )],
        dtype=torch.float64,
    )  # fmt: skip
    x = np.concatenate([np.linspace(0.1, 40, 398), [-2.5, -0.25]]).reshape(20, 20)
    found = [np.asarray(y) for y in run(x)]
    positive = x > 0
    exact = [special.zeta(x, 2.5), special.zeta(3.0, x)]
    np.testing.assert_allclose(found[0][x > 1], exact[0][x > 1], rtol=1e-12)
    np.testing.assert_allclose(found[1][positive], exact[1][positive], rtol=1e-12)
    for n in range(4):
        np.testing.assert_allclose(
            found[2 + n][positive], special.polygamma(n, x)[positive], rtol=1e-11, atol=1e-11
        )


@pytest.mark.parametrize("name", ["J0_NEAR", "K0_FAR", "ERFCX"])
def test_the_table_is_that_of_the_fits(name: str) -> None:
    import mpmath as mp

    low, high, terms = getattr(special_coefficients, name)
    function, *interval = FITS[name]
    assert [low, high] == [float(v) for v in interval]
    with mp.workdps(60):
        assert list(terms) == coefficients(function, *interval)
