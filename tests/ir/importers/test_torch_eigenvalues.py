"""Eigenvalues and eigenvectors of any square matrices, compared by properties of any order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tilewright as tw
from tilewright.ir.interpreter import run_graph

SIZES = {0: torch.export.Dim("b"), 1: torch.export.Dim("n"), 2: torch.export.Dim("n")}


class Eigen(torch.nn.Module):
    """The eigenvalues, the eigenvectors, and the eigenvalues alone."""

    def forward(self, x: Any) -> list[Any]:
        return [*torch.linalg.eig(x), torch.linalg.eigvals(x)]


def ordered(values: Any) -> Any:
    """Return the sorted real and imaginary parts."""
    return np.stack([np.sort(values.real, axis=-1), np.sort(values.imag, axis=-1)])


def check(x: Any, found: Any, tolerance: float) -> None:
    """Require eigenvalues of PyTorch, and vectors of length 1 with a small residual."""
    values, vectors, alone = map(np.asarray, found)
    kind = np.complex128 if x.dtype == torch.float64 else np.complex64
    assert [a.dtype for a in (values, vectors, alone)] == [kind] * 3
    assert (values.shape, vectors.shape) == (x.shape[:-1], x.shape)
    expected = ordered(torch.linalg.eigvals(x).numpy())
    scale = 1 + np.abs(expected).max(initial=0)
    for have in (values, alone):
        np.testing.assert_allclose(ordered(have) / scale, expected / scale, atol=tolerance)
    rest = x.numpy() @ vectors - vectors * values[..., None, :]
    np.testing.assert_allclose(rest / scale, 0, atol=tolerance)
    if not x.numel():
        return
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=-2), 1, rtol=1e-5)
    largest = np.take_along_axis(vectors, np.abs(vectors).argmax(-2)[..., None, :], -2)
    np.testing.assert_allclose(largest.imag, 0, atol=1e-6)


def matrices(batch: int, size: int) -> Any:
    generator = torch.Generator().manual_seed(batch + 10 * size)
    return torch.randn(batch, size, size, generator=generator, dtype=torch.float64)


def module_of(x: Any, dynamic: Any = None) -> Any:
    axes = None if dynamic is None else (dynamic,)
    return tw.from_exported_program(torch.export.export(Eigen(), (x,), dynamic_shapes=axes))


def test_one_program_for_all_sizes() -> None:
    module = module_of(matrices(3, 5), SIZES)
    for batch, size in ((3, 5), (2, 2), (4, 1), (1, 9), (0, 3)):
        x = matrices(batch, size)
        check(x, run_graph(module, [x.numpy()]), 1e-9)


KNOWN: dict[str, Any] = {
    "rotation": [[0, -1, 0], [1, 0, 0], [0, 0, 2]],
    "cycle": [[0, 0, 1], [1, 0, 0], [0, 1, 0]],
    "zero": [[0, 0], [0, 0]],
    "identity": [[1, 0], [0, 1]],
    "triangular": [[1, 5, 6], [0, 2, 7], [0, 0, 3]],
    "large and small": [[1e30, 2e30], [3e30, -1e30]],
    "equal pairs": [[0, -1, 0, 0], [1, 0, 0, 0], [0, 0, 0, -1], [0, 0, 1, 0]],
}


@pytest.mark.parametrize("name", KNOWN)
def test_matrices_with_known_eigenvalues(name: str) -> None:
    x = torch.tensor(KNOWN[name], dtype=torch.float64)
    check(x, run_graph(module_of(x), [x.numpy()]), 1e-12)


def test_a_matrix_with_too_few_eigenvectors() -> None:
    """The vectors of a Jordan block are equal up to rounding errors."""
    x = torch.eye(4, dtype=torch.float64) * 2 + torch.diag(torch.ones(3, dtype=torch.float64), 1)
    check(x, run_graph(module_of(x), [x.numpy()]), 1e-9)


def test_real_eigenvalues_have_no_imaginary_part() -> None:
    x = matrices(1, 6)[0]
    x = x @ torch.diag(torch.arange(1.0, 7).double()) @ torch.linalg.inv(x)
    values, _, _ = run_graph(module_of(x), [x.numpy()])
    assert not values.imag.any()


def test_elements_that_are_not_numbers_end_the_loop() -> None:
    x = matrices(1, 4)
    x[0, 1, 2] = float("nan")
    values, _, _ = run_graph(module_of(x), [x.numpy()])
    assert np.isnan(values).any()


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0)])
def test_empty_matrices(shape: tuple[int, ...]) -> None:
    x = torch.zeros(shape)
    check(x, run_graph(module_of(x), [x.numpy()]), 1e-9)


def test_a_compiled_program_of_float32() -> None:
    x = matrices(3, 6).float()
    run: Any = tw.compile(module_of(x), target="cpu")
    check(x, run(x.numpy()), 1e-5)
