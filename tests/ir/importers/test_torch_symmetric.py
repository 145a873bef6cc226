"""Factors of symmetric matrices with pivots equal those of LAPACK, for all sizes and batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tilewright as tw

from tests.ir.importers.exported import same_as_pytorch

SIZES = {0: torch.export.Dim("b"), 1: torch.export.Dim("n"), 2: torch.export.Dim("n")}


def symmetric(batch: int, size: int) -> Any:
    """Return symmetric matrices, most of which have pivots of one and of two rows."""
    generator = torch.Generator().manual_seed(batch + 10 * size)
    x = torch.randn(batch, size, size, generator=generator, dtype=torch.float64)
    return x + x.mT


def factored(x: Any) -> list[Any]:
    found, pivots, code = torch.linalg.ldl_factor_ex(x)
    right = x[:, :, :1] * 2 + 1
    return [found.tril(), pivots, code, torch.linalg.ldl_solve(found, pivots, right)]


def test_one_program_for_all_sizes_equals_pytorch() -> None:
    given = [(symmetric(*s),) for s in ((4, 5), (6, 8), (1, 2), (3, 1), (2, 17), (0, 4))]
    pivots = torch.linalg.ldl_factor_ex(given[1][0])[1]
    assert (pivots < 0).any()
    assert (pivots > 0).any()
    same_as_pytorch(factored, *given[0], dynamic=[SIZES], others=given[1:], tolerance=1e-9)


def test_pivots_of_chosen_matrices() -> None:
    """Zero diagonals have blocks of two rows; a dominant element is exchanged to the front."""
    zero = torch.tensor([[0.0, 1, 2], [1, 0, 3], [2, 3, 0]], dtype=torch.float64)
    large = torch.tensor([[0.1, 1, 2], [1, 9, 3], [2, 3, 50]], dtype=torch.float64)
    plain = torch.eye(3, dtype=torch.float64) + 0.1
    rank = torch.ones(3, 3, dtype=torch.float64)
    rank[0] = rank[:, 0] = 0

    def parts(x: Any) -> list[Any]:
        found, pivots, code = torch.linalg.ldl_factor_ex(x)
        return [found.tril(), pivots, code]

    same_as_pytorch(parts, torch.stack([zero, large, plain, rank]), tolerance=1e-12)


@pytest.mark.parametrize("shape", [(0, 0), (0, 2, 2), (2, 0, 0)])
def test_empty_matrices(shape: tuple[int, ...]) -> None:
    def function(x: Any) -> list[Any]:
        found, pivots = torch.linalg.ldl_factor(x)
        return [found, pivots, torch.linalg.ldl_solve(found, pivots, x)]

    same_as_pytorch(function, torch.zeros(shape))


def test_a_compiled_solution_with_batches_that_broadcast() -> None:
    class Solve(torch.nn.Module):
        def forward(self, x: Any, right: Any) -> Any:
            return torch.linalg.ldl_solve(*torch.linalg.ldl_factor(x), right)

    x, right = symmetric(3, 6), symmetric(2, 6)[:, None, :, :2].contiguous()
    program = torch.export.export(Solve(), (x, right))
    run: Any = tw.compile(tw.from_exported_program(program), target="cpu")
    expected = torch.linalg.solve(x, right).numpy()
    np.testing.assert_allclose(np.asarray(run(x.numpy(), right.numpy())), expected, rtol=1e-8)
