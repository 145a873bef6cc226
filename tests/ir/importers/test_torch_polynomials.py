"""Orthogonal polynomials of PyTorch, of one degree and of a tensor of degrees."""

from __future__ import annotations

import pytest
import torch

from tests.ir.importers.exported import equals_pytorch

NAMES = (
    *(f"chebyshev_polynomial_{k}" for k in "tuvw"),
    *(f"shifted_chebyshev_polynomial_{k}" for k in "tuvw"),
    "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l",
    "legendre_polynomial_p",
)  # fmt: skip


@pytest.mark.parametrize("first", range(0, len(NAMES), 4))
def test_one_program_for_all_sizes_equals_pytorch(first: int) -> None:
    functions = [getattr(torch.special, name) for name in NAMES[first : first + 4]]

    def function(x):
        degrees = torch.arange(x.shape[1]) - 1
        inside = x / 9
        return [y for f in functions for y in (f(inside, degrees), f(inside, 3), f(inside, 0))]

    equals_pytorch(function, dtype=torch.float64, tolerance=1e-9)
