"""Hashes of tensors equal PyTorch."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tilewright as tw
from tilewright.errors import UnsupportedOperatorsError

from tests.ir.importers.exported import same_as_pytorch


def hashes(x: Any) -> list[Any]:
    return [
        torch.hash_tensor(x),
        torch.hash_tensor(x, dim=1),
        torch.hash_tensor(x, dim=(0, -1), keepdim=True),
    ]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32, torch.uint8])
def test_hashes(dtype: Any) -> None:
    """PyTorch exports hashes of fixed sizes only."""
    x = (torch.arange(-20.0, 22.0).reshape(6, 7) * 1.3).to(dtype)
    for part in (x, x[:3, 1:6], x[1:3, :1]):
        same_as_pytorch(hashes, part.contiguous())


def test_hashes_of_numbers_conditions_and_no_elements() -> None:
    def function(x: Any) -> list[Any]:
        return [torch.hash_tensor(x), torch.hash_tensor(x, dim=0), torch.hash_tensor(x > 0)]

    for value in (-0.0, float("inf"), -3.25):
        same_as_pytorch(function, torch.tensor(value))
    same_as_pytorch(lambda x: [torch.hash_tensor(x, dim=0)], torch.zeros(2, 0))


def test_other_modes_are_rejected() -> None:
    class Other(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.hash_tensor(x + 1j)

    program = torch.export.export(Other(), (torch.ones(3),))
    with pytest.raises(UnsupportedOperatorsError, match="hashes of mode 0 of c64"):
        tw.from_exported_program(program)
