"""Histograms over one and two coordinates equal PyTorch."""

from __future__ import annotations

from typing import Any

import torch

from tests.ir.importers.exported import same_as_pytorch

GENERATOR = torch.Generator().manual_seed(0)


def test_histograms_of_given_and_computed_edges() -> None:
    def function(x: Any) -> list[Any]:
        edges = torch.tensor([-1.0, 0.0, 0.5, 2.0])
        return [
            *torch.histogram(x, 5),
            *torch.histogram(x, 4, range=(-1.0, 1.0), weight=x.abs(), density=True),
            *torch.histogram(x, edges, density=True),
            *torch.histogram(x * 0 + 3, 3),
        ]

    same_as_pytorch(function, torch.randn(30, generator=GENERATOR))
    same_as_pytorch(function, torch.tensor([[-1.0, 0.0, 0.5], [2.0, 2.1, -1.1]]))


def test_histograms_over_two_coordinates() -> None:
    def function(x: Any) -> list[Any]:
        edges = [torch.tensor([-1.0, 0.0, 1.0]), torch.tensor([-2.0, 0.5, 1.0])]
        counted = torch.histogramdd(x, [3, 4])
        ranges = [-1.0, 1.0, -2.0, 2.0]
        weighted = torch.histogramdd(x, [3, 2], range=ranges, weight=x[:, 0].abs(), density=True)
        return [counted.hist, *counted.bin_edges, weighted.hist, torch.histogramdd(x, edges).hist]

    same_as_pytorch(function, torch.randn(30, 2, generator=GENERATOR))


def test_histograms_of_no_elements() -> None:
    def function(x: Any) -> list[Any]:
        return [*torch.histogram(x, 3), *torch.histogram(x, 2, range=(-1.0, 2.0))]

    same_as_pytorch(function, torch.zeros(0))
    same_as_pytorch(lambda x: [torch.histogramdd(x, [2, 3]).hist], torch.zeros(0, 2))
