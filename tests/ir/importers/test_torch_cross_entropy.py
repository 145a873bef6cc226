"""The cross entropy of a linear layer that PyTorch computes in chunks equals PyTorch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.modules.linear_cross_entropy  # registers the operators

from tests.ir.importers.exported import same_as_pytorch

BATCH = {0: torch.export.Dim("n")}


def inputs(batch: int, ignored: int) -> tuple[Any, ...]:
    generator = torch.Generator().manual_seed(batch)
    x = torch.randn(batch, 6, generator=generator)
    y = torch.randint(0, 5, (batch,), generator=generator)
    y[::3] = ignored
    return x, torch.randn(5, 6, generator=generator), y


@pytest.mark.parametrize("ignored", [-100, 1])
@pytest.mark.parametrize("plain", [False, True])
def test_losses_of_rows(ignored: int, *, plain: bool) -> None:
    bias, weight = (None, None) if plain else (torch.arange(5.0), torch.arange(5.0) / 4 + 0.5)
    space: Any = torch.ops.torch_nn
    operator = space._linear_cross_entropy_batch_chunked_no_reduction

    def losses(x: Any, w: Any, y: Any) -> list[Any]:
        return [operator(x, w, y, bias, weight, ignored, 2, "compact", torch.float32)]

    given = [inputs(n, ignored) for n in (5, 2, 9)]
    same_as_pytorch(losses, *given[0], dynamic=(BATCH, None, BATCH), others=given[1:])


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("slopes", [False, True])
def test_losses_and_derivatives(reduction: str, *, slopes: bool) -> None:
    bias, weight = torch.arange(5.0), torch.arange(5.0) / 4 + 0.5
    space: Any = torch.ops.torch_nn
    operator = space._linear_cross_entropy_batch_chunked

    def losses(x: Any, w: Any, y: Any) -> list[Any]:
        form = (-100, 0.0, 2, "compact", torch.float32, False, slopes, slopes, slopes)
        return [*operator(x, w, y, bias, weight, reduction, *form)]

    given = [inputs(n, -100) for n in (5, 2, 9)]
    same_as_pytorch(losses, *given[0], dynamic=(BATCH, None, BATCH), others=given[1:])


def test_the_mean_over_no_row_is_not_a_number() -> None:
    space: Any = torch.ops.torch_nn
    operator = space._linear_cross_entropy_batch_chunked

    def losses(x: Any, w: Any, y: Any) -> list[Any]:
        form = (1, 0.0, 2, "compact", torch.float32, False, False, False, False)
        return [operator(x, w, y, None, None, "mean", *form)[0]]

    x, w, y = inputs(4, 1)
    same_as_pytorch(losses, x, w, torch.ones_like(y))
    same_as_pytorch(losses, x[:0], w, y[:0])
