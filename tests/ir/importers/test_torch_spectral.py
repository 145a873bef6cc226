"""Eigenvalues, singular values, and products of their vectors equal PyTorch for all sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

import tilewright as tw

from tests.ir.importers.exported import same_as_pytorch

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = {0: torch.export.Dim("b"), 1: torch.export.Dim("n", min=3), 2: torch.export.Dim("m")}


def matrices(*shape: int) -> Any:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def factors(x: Any, *, full: bool) -> list[Any]:
    """Return the values, and products that the signs of singular vectors do not change."""
    u, s, v = torch.linalg.svd(x, full_matrices=full)
    count = s.shape[-1]
    again = (u[..., :count] * s[..., None, :]) @ v[..., :count, :]
    return [again, s, u.mT @ u, v @ v.mT]


def roots(x: Any, triangle: str = "L") -> list[Any]:
    """Return the values, and products that the signs of eigenvectors do not change."""
    values, vectors = torch.linalg.eigh(x, UPLO=triangle)
    return [(vectors * values[..., None, :]) @ vectors.mT, values, vectors.mT @ vectors]


# Functions of a batch x (b, n, m) of matrices.
FUNCTIONS: dict[str, Callable[[Any], list[Any]]] = {
    "singular": lambda x: factors(x, full=False),
    "complete": lambda x: factors(x, full=True),
    "values": lambda x: [torch.linalg.svdvals(x), torch.linalg.matrix_norm(x, "nuc")],
    "eigen": lambda x: [*roots(x @ x.mT), torch.linalg.eigvalsh(x @ x.mT)],
    "pseudoinverse": lambda x: [
        torch.linalg.pinv(x),
        torch.linalg.pinv(x, atol=1.0),
        torch.linalg.pinv(x, rtol=0.3),
    ],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_program_for_all_sizes_equals_pytorch(name: str) -> None:
    given = [(matrices(*s),) for s in ((3, 6, 5), (2, 7, 4), (1, 6, 3))]
    same_as_pytorch(FUNCTIONS[name], *given[0], dynamic=[SIZES], others=given[1:], tolerance=1e-12)


def test_matrices_of_lower_rank_with_equal_and_large_values() -> None:
    x = torch.zeros(4, 5, 4, dtype=torch.float64)
    x[1] = torch.eye(5, 4)
    x[2] = torch.outer(torch.arange(5.0), torch.ones(4)) * 1e30
    x[3, :4] = torch.diag(torch.tensor([3.0, 0.0, -3.0, 1e-5]))
    for k in range(4):
        same_as_pytorch(lambda y: factors(y, full=True), x[k], tolerance=1e-12)
        same_as_pytorch(lambda y: factors(y.mT, full=True), x[k], tolerance=1e-12)


def test_ranks_and_conditions_of_matrices() -> None:
    def function(y: Any) -> list[Any]:
        return [
            torch.linalg.matrix_rank(y @ y.mT),
            torch.linalg.matrix_rank(y @ y.mT, hermitian=True),
            torch.linalg.cond(y),
        ]

    same_as_pytorch(function, matrices(2, 5, 3))


def test_one_triangle_determines_a_symmetric_matrix() -> None:
    x = torch.stack([matrices(4, 4), torch.ones(4, 4), torch.eye(4)]).double()
    same_as_pytorch(
        lambda y: [*roots(y, "L"), *roots(y, "U"), torch.linalg.pinv(y[:1], hermitian=True)],
        x, tolerance=1e-12,
    )  # fmt: skip


def test_compiled_singular_values_equal_pytorch() -> None:
    class Values(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.linalg.svdvals(x)

    x = matrices(3, 4, 6).float()
    exe: Any = tw.compile(tw.from_torch(Values(), (x,)))
    np.testing.assert_allclose(exe(x).numpy(), torch.linalg.svdvals(x).numpy(), rtol=1e-5)


def test_products_with_the_orthogonal_factor_of_a_householder_form() -> None:
    def function(x: Any) -> list[Any]:
        return [
            *torch.geqrf(x),
            torch.ormqr(*torch.geqrf(x), x),
            torch.ormqr(*torch.geqrf(x), x, transpose=True),
            torch.ormqr(*torch.geqrf(x), x.mT, left=False),
        ]

    for shape in ((3, 6, 4), (4, 5)):
        same_as_pytorch(function, matrices(*shape), tolerance=1e-12)
