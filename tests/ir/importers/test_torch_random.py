"""Random numbers of PyTorch programs: reproducible, with the stated distributions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from tests.ir.importers.exported import compiled

if TYPE_CHECKING:
    from collections.abc import Callable

N, M = 70, 500

# Draws with the shape of x, and their mean, deviation, least, and greatest value.
DRAWS: dict[str, tuple[Callable[[Any], Any], tuple[float, float, float, float]]] = {
    "rand": (lambda x: torch.rand(x.shape), (0.5, math.sqrt(1 / 12), 0, 1)),
    "rand_like": (torch.rand_like, (0.5, math.sqrt(1 / 12), 0, 1)),
    "randn": (lambda x: torch.randn(x.shape), (0, 1, -9, 9)),
    "randint": (lambda x: torch.randint(-2, 3, x.shape).float(), (0, math.sqrt(2), -2, 2)),
    "bernoulli": (lambda x: torch.bernoulli(x * 0 + 0.25), (0.25, math.sqrt(3) / 4, 0, 1)),
    "uniform": (lambda x: x.clone().uniform_(-1, 3), (1, 4 / math.sqrt(12), -1, 3)),
    "normal": (lambda x: x.clone().normal_(2, 0.5), (2, 0.5, -3, 7)),
    "exponential": (lambda x: x.clone().exponential_(2), (0.5, 0.5, 0, math.inf)),
    "geometric": (lambda x: x.clone().geometric_(0.5), (2, math.sqrt(2), 1, math.inf)),
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_have_their_distribution(name: str) -> None:
    function, (mean, deviation, least, greatest) = DRAWS[name]
    run = compiled(lambda x: [function(x), function(x)])
    x = np.ones((N, M), np.float32)
    first, second = (np.asarray(y) for y in run(x))
    assert first.shape == (N, M)
    assert first.dtype == np.float32
    assert (first >= least).all()
    assert (first <= greatest).all()
    near = 5 * deviation / math.sqrt(N * M)
    assert abs(first.mean() - mean) < near
    assert abs(first.std() - deviation) < 3 * near
    assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 5 / math.sqrt(N * M)
    again = [np.asarray(y) for y in run(x)]
    np.testing.assert_array_equal(again, [first, second])


def test_drawn_positions_have_their_weights() -> None:
    weights = torch.tensor([1.0, 2.0, 0.0, 4.0])

    def function(x: Any) -> list[Any]:
        rows = weights.expand(x.shape[0], 4)
        return [torch.multinomial(rows, 200, replacement=True), torch.multinomial(rows, 2)]

    with_return, without = (np.asarray(y) for y in compiled(function)(np.ones((N, 5), np.float32)))
    assert (with_return.shape, without.shape) == ((N, 200), (N, 2))
    share = np.bincount(with_return.ravel(), minlength=4) / with_return.size
    np.testing.assert_allclose(share, weights.numpy() / 7, atol=5 * 0.5 / math.sqrt(N * 200))
    assert (np.sort(without, axis=1)[:, 0] < np.sort(without, axis=1)[:, 1]).all()
    assert not (without == 2).any()
    first = np.bincount(without[:, 0], minlength=4) / N
    np.testing.assert_allclose(first, weights.numpy() / 7, atol=5 * 0.5 / math.sqrt(N))


def test_drawn_slopes_are_in_their_range() -> None:
    def function(x: Any) -> list[Any]:
        y = 1 - x.cumsum(1) % 2 * 2  # -1, 1, -1, 1, -1
        return [torch.nn.functional.rrelu(y, 0.25, 0.5, training=k) / y for k in (True, False)]

    drawn, mean = (np.asarray(y) for y in compiled(function)(np.ones((N, 5), np.float32)))
    assert (drawn[:, 1::2] == 1).all()
    assert ((drawn[:, ::2] >= 0.25) & (drawn[:, ::2] <= 0.5)).all()
    assert drawn[:, ::2].std() > 0.05
    np.testing.assert_allclose(mean[:, ::2], 0.375, rtol=1e-6)
