"""Maxima of windows at random positions equal PyTorch for the same draws."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional

from tests.ir.importers.exported import same_as_pytorch

F: Any = functional
DIM = torch.export.Dim.DYNAMIC


def planes(x: Any, draws: Any) -> list[Any]:
    return [*F.fractional_max_pool2d(
        x, (2, 3), output_size=(3, 4), _random_samples=draws, return_indices=True
    )]  # fmt: skip


def volumes(x: Any, draws: Any) -> list[Any]:
    return [*F.fractional_max_pool3d(
        x, (2, 1, 3), output_size=(3, 2, 1), _random_samples=draws, return_indices=True
    )]  # fmt: skip


def inputs(batch: int, *sizes: int) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(sum(sizes))
    x = torch.randn(batch, 2, *sizes, generator=generator)
    return x, torch.rand(batch, 2, len(sizes), generator=generator)


def test_planes_of_any_size_and_batch() -> None:
    given = [inputs(3, 7, 9), inputs(1, 5, 6), inputs(0, 6, 8), inputs(2, 12, 30)]
    axes = ({0: DIM, 2: DIM, 3: DIM}, {0: DIM})
    same_as_pytorch(planes, *given[0], dynamic=axes, others=given[1:])


@pytest.mark.parametrize("shape", [(2, 5, 4, 6), (1, 8, 9, 7), (0, 5, 4, 6)])
def test_volumes(shape: tuple[int, ...]) -> None:
    """PyTorch exports volumes of fixed sizes only."""
    same_as_pytorch(volumes, *inputs(*shape))


@pytest.mark.parametrize("function", [planes, volumes])
def test_one_image_without_a_batch(function: Any) -> None:
    x, draws = inputs(1, *((7, 8) if function is planes else (5, 6, 7)))
    same_as_pytorch(lambda image, drawn: function(image, drawn), x[0], draws)


def test_one_window_is_at_the_end() -> None:
    x = torch.arange(20.0).reshape(1, 1, 4, 5)
    same_as_pytorch(
        lambda image, drawn: [
            F.fractional_max_pool2d(image, 2, output_size=1, _random_samples=drawn)
        ],
        -x, torch.full((1, 1, 2), 0.3),
    )  # fmt: skip


def test_the_last_element_that_is_not_a_number_is_the_maximum() -> None:
    x, draws = inputs(2, 7, 9)
    x[:, :, 2:4, 3:6] = float("nan")
    same_as_pytorch(planes, x, draws)
