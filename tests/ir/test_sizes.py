"""Static sizes of tensors."""

from __future__ import annotations

import pytest

from tilewright.ir.dtype import f32
from tilewright.ir.sizes import size_problem
from tilewright.ir.symbolic import as_expr, var


@pytest.mark.parametrize(
    ("shape", "problem"),
    [
        ((2**29, 2**29), "2**60 bytes reaches"),
        ((2**31, 2**31), "2**64 bytes"),
        ((3 * 2**60,), "about 2**64 bytes"),
        ((4, -5), "dimension -5 is negative"),
    ],
)
def test_sizes_that_are_refused(shape: tuple[int, ...], problem: str) -> None:
    assert problem in size_problem(map(as_expr, shape), f32)


@pytest.mark.parametrize("shape", [(), (0, 2**62), (2**57,), (2**62, "n")])
def test_sizes_that_are_legal_or_unknown(shape: tuple[object, ...]) -> None:
    n = var("n", lower=0)
    assert size_problem((n if d == "n" else as_expr(d) for d in shape), f32) == ""
