"""Images of three dimensions that are read at the positions of a grid equal PyTorch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional

from tests.ir.importers.exported import same_as_pytorch

F: Any = functional


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_positions_inside_and_outside_of_an_image(padding: str) -> None:
    def function(x: Any, grid: Any) -> list[Any]:
        return [
            F.grid_sample(x, grid, mode=mode, padding_mode=padding, align_corners=corners)
            for mode in ("bilinear", "nearest")
            for corners in (False, True)
        ]

    generator = torch.Generator().manual_seed(0)
    x, grid = (torch.randn(*s, generator=generator) for s in ((2, 3, 4, 5, 3), (2, 2, 3, 4, 3)))
    sizes = [{0: torch.export.Dim("batch"), 3: torch.export.Dim("height")}]
    same_as_pytorch(
        function, x, grid, dynamic=[sizes[0], {0: sizes[0][0]}],
        others=[(x[:1, :, :, :3], grid[:1])],
    )  # fmt: skip
