"""Distinct elements and slices, and indices up to a number, equal PyTorch."""

from __future__ import annotations

from typing import Any

import torch

from tests.ir.importers.exported import same_as_pytorch

KEPT: dict[str, Any] = {"return_inverse": True, "return_counts": True}


def test_runs_of_equal_elements_and_slices() -> None:
    def function(x: Any) -> list[Any]:
        return [
            *torch.unique_consecutive(x, **KEPT),
            *torch.unique_consecutive(x, dim=0, **KEPT),
            *torch.unique_consecutive(x, dim=1, **KEPT),
        ]

    x = torch.tensor([[1, 1, 2], [1, 1, 2], [2, 2, 2], [1, 1, 2]])
    same_as_pytorch(
        function, x, dynamic=[{0: torch.export.Dim("n")}], others=[(x[:1],), (x[2:],)]
    )  # fmt: skip


def test_distinct_slices_in_ascending_order() -> None:
    def function(x: Any) -> list[Any]:
        return [*torch.unique(x, dim=0, **KEPT), *torch.unique(x, dim=1, **KEPT)]

    x = torch.tensor([[1, 2, 2], [1, 1, 1], [1, 2, 2], [0, 5, 5], [1, 1, 1]])
    same_as_pytorch(function, x)
    same_as_pytorch(lambda y: [*torch.unique(y, dim=1, **KEPT)], x.reshape(5, 1, 3).float())


def test_indices_up_to_a_number() -> None:
    def function(x: Any) -> list[Any]:
        return [
            torch.nonzero_static(x, size=3),
            torch.nonzero_static(x, size=9, fill_value=-7),
            torch.nonzero_static(x[0], size=0),
        ]

    x = torch.tensor([[1, 0, 2], [0, 0, 3], [4, 5, 0]])
    same_as_pytorch(function, x, dynamic=[{0: torch.export.Dim("n")}], others=[(x[:2],)])
