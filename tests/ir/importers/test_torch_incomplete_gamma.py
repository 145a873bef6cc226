"""Incomplete gamma functions equal SciPy in double precision, and PyTorch at their limits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from scipy import special

from tests.ir.importers.exported import same_as_pytorch

ORDERS = [1e-3, 0.5, 1, 2, 3, 20, 100, 1000]
NUMBERS = [1e-6, 0.3, 1, 2, 4, 25, 90, 1010]
LIMITS = [(0, 1), (2, 0), (0, 0), (math.inf, 1), (2, math.inf), (math.inf, math.inf), (-1, 1),
          (1, -1), (math.nan, 1), (3, math.nan)]  # fmt: skip


def both(a: Any, x: Any) -> list[Any]:
    return [torch.igamma(a, x), torch.igammac(a, x)]


def exact(a: Any, x: Any) -> list[Any]:
    functions = (special.gammainc, special.gammaincc)
    return [torch.from_numpy(f(a.numpy(), x.numpy())) for f in functions]


def test_all_orders_and_numbers_equal_scipy() -> None:
    a, x = (torch.tensor(v, dtype=torch.float64) for v in np.meshgrid(ORDERS, NUMBERS))
    same_as_pytorch(both, a, x, tolerance=1e-12, reference=exact)


def test_limits_equal_pytorch() -> None:
    a, x = (torch.tensor(v, dtype=torch.float32) for v in zip(*LIMITS, strict=True))
    same_as_pytorch(both, a, x)
