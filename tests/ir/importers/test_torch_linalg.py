"""Linear algebra of PyTorch: one compiled program for all batches and sizes, in f32 and f64."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

import tilewright as tw

from tests.ir.importers.exported import same_as_pytorch

if TYPE_CHECKING:
    from collections.abc import Callable

TOLERANCE = {torch.float32: 2e-4, torch.float64: 1e-10}


def positive(x: Any) -> Any:
    """Return positive definite matrices."""
    return x @ x.mT + torch.eye(x.shape[-1], dtype=x.dtype)


def by_transpose(x: Any) -> Any:
    """Solve with a transposed triangle; PyTorch warns that the function is deprecated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.triangular_solve(x, positive(x), upper=False, transpose=True)[0]


def eliminated(x: Any) -> list[Any]:
    factors, pivots = torch.linalg.lu_factor(x)
    return [
        *torch.linalg.lu(x),
        factors,
        pivots,
        *torch.lu_unpack(factors, pivots),
        torch.linalg.lu_solve(factors, pivots, x[..., :2]),
        torch.linalg.lu_solve(factors, pivots, x[..., :2], adjoint=True),
    ]


# Functions of a batch x (b, n, n) of matrices.
FUNCTIONS: dict[str, Callable[[Any], list[Any]]] = {
    "cholesky": lambda x: [
        torch.linalg.cholesky(positive(x)),
        torch.linalg.cholesky(positive(x), upper=True),
        *torch.linalg.cholesky_ex(positive(x)),
    ],
    "solutions by cholesky": lambda x: [
        torch.cholesky_solve(x[..., :3], torch.linalg.cholesky(positive(x))),
        torch.cholesky_inverse(torch.linalg.cholesky(positive(x))),
    ],
    "lu": eliminated,
    "solve": lambda x: [
        torch.linalg.solve(x, x[..., :3] * 2),
        torch.linalg.solve(x, x[:, :3] * 2, left=False),
        torch.linalg.solve(x, x[0, 0]),
        torch.linalg.inv(x),
        torch.linalg.tensorinv(x[0], ind=1),
    ],
    "determinants": lambda x: [torch.linalg.det(x), *torch.linalg.slogdet(x)],
    "triangles": lambda x: [
        torch.linalg.solve_triangular(positive(x), x, upper=True),
        torch.linalg.solve_triangular(positive(x), x, upper=False, left=False),
        by_transpose(x),
    ],
    "qr": lambda x: [
        *torch.linalg.qr(x),
        *torch.linalg.qr(x[:, :3], "complete"),
        *torch.linalg.qr(x[..., :3]),
        torch.linalg.householder_product(x / 9, x[:, 0]),
    ],
    "exponential": lambda x: [torch.linalg.matrix_exp(x), torch.linalg.matrix_exp(x / 9)],
}


def compiled(function: Callable[[Any], list[Any]], dtype: Any) -> Any:
    class One(torch.nn.Module):
        def forward(self, x: Any) -> list[Any]:
            return function(x)

    batch, size = torch.export.Dim("b", min=2), torch.export.Dim("n", min=4)
    program = torch.export.export(
        One(),
        (torch.rand(3, 5, 5, dtype=dtype),),
        dynamic_shapes={"x": {0: batch, 1: size, 2: size}},
    )
    return tw.compile(tw.from_exported_program(program), target="cpu")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_program_for_all_sizes_equals_pytorch(name: str, dtype: Any) -> None:
    run = compiled(FUNCTIONS[name], dtype)
    for batch, size in ((3, 5), (2, 4), (4, 9)):
        generator = torch.Generator().manual_seed(size)
        x = torch.randn(batch, size, size, generator=generator, dtype=dtype)
        x = x + size * torch.eye(size, dtype=dtype)[torch.randperm(size, generator=generator)]
        for have, want in zip(run(x.numpy()), FUNCTIONS[name](x), strict=True):
            expected = want.numpy()
            assert (have.shape, have.dtype) == (expected.shape, expected.dtype)
            scale = 1 + np.abs(expected).max(initial=0)
            np.testing.assert_allclose(
                np.asarray(have) / scale, expected / scale, rtol=0, atol=TOLERANCE[dtype]
            )


def test_the_code_of_a_matrix_that_is_not_positive() -> None:
    run = compiled(
        lambda x: [torch.linalg.cholesky_ex(x)[1], torch.linalg.inv_ex(x)[1]], torch.float32
    )
    x = np.stack([np.eye(4, dtype=np.float32)] * 3)
    x[1, 2, 2], x[2, 3, 3] = -1, 0
    codes, singular = (np.asarray(y) for y in run(x))
    assert codes.tolist() == [0, 3, 4]
    assert singular.tolist() == [0, 0, 4]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_inverses_of_tensors(count: int) -> None:
    shape = {1: (12, 3, 4), 2: (3, 4, 2, 6), 3: (2, 1, 6, 12)}[count]
    generator = torch.Generator().manual_seed(count)
    x = torch.randn(shape, generator=generator, dtype=torch.float64)
    same_as_pytorch(lambda y: [torch.linalg.tensorinv(y, ind=count)], x, tolerance=1e-9)


def test_the_inverse_of_an_empty_tensor() -> None:
    same_as_pytorch(lambda y: [torch.linalg.tensorinv(y)], torch.zeros(2, 0, 3, 0))
