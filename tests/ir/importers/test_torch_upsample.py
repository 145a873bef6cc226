"""Resized images of PyTorch, with sizes that are constant, symbolic, or products of symbols."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional

import tilewright as tw
from tilewright.errors import UnsupportedOperatorsError

from tests.ir.importers.exported import same_as_pytorch

IMAGES = {1: (2, 3, 7), 2: (2, 3, 8, 5), 3: (2, 2, 8, 4, 5)}


class Resize(torch.nn.Module):
    """A resize by a factor or to a multiple of the size."""

    def __init__(self, *, multiple: int = 0, **values: Any) -> None:
        super().__init__()
        self.multiple, self.values = multiple, values

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        size = [n * self.multiple for n in x.shape[2:]] if self.multiple else None
        return functional.interpolate(x, size, **self.values)


def same(found: torch.Tensor, expected: torch.Tensor) -> None:
    assert found.shape == expected.shape
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


FORMS: list[dict[str, Any]] = [
    {"mode": "nearest", "scale_factor": 2.0},
    {"mode": "nearest", "scale_factor": 0.5},
    {"mode": "nearest", "scale_factor": 2.75},
    {"mode": "nearest", "multiple": 3},
    {"mode": "nearest-exact", "scale_factor": 1.5},
    {"mode": "linear", "scale_factor": 2.0},
    {"mode": "linear", "multiple": 3},
    {"mode": "linear", "multiple": 2, "align_corners": True},
    {"mode": "linear", "scale_factor": 0.5},
    {"mode": "linear", "scale_factor": 2, "recompute_scale_factor": True},
]


@pytest.mark.parametrize("rank", IMAGES)
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_results_are_those_of_pytorch_for_each_size(rank: int, form: dict[str, Any]) -> None:
    linear = {1: "linear", 2: "bilinear", 3: "trilinear"}[rank]
    values: dict[str, Any] = {**form, "mode": linear if form["mode"] == "linear" else form["mode"]}
    module = Resize(**values)
    example = torch.randn(IMAGES[rank])
    sizes = {"x": {0: "batch", 2: torch.export.Dim("width", min=4)}}
    mod = tw.from_torch(module, (example,), dynamic=sizes)
    exe: Any = tw.compile(mod)
    for batch, width in ((2, IMAGES[rank][2]), (1, 4), (3, 11)):
        x = torch.randn(batch, *IMAGES[rank][1:2], width, *IMAGES[rank][3:])
        same(exe(x), module(x))


@pytest.mark.parametrize("form", [
    {"scale_factor": 2.0}, {"multiple": 3}, {"multiple": 2, "align_corners": True},
    {"scale_factor": 0.5}, {"scale_factor": 1.25},
], ids=str)  # fmt: skip
def test_cubic_results_are_those_of_pytorch(form: dict[str, Any]) -> None:
    module = Resize(mode="bicubic", **form)
    sizes = {"x": {2: torch.export.Dim("height", min=4)}}
    mod = tw.from_torch(module, (torch.randn(2, 3, 8, 5),), dynamic=sizes)
    exe: Any = tw.compile(mod)
    for height in (8, 4, 13):
        x = torch.randn(2, 3, height, 5)
        same(exe(x), module(x))


@pytest.mark.parametrize(("size", "out"), [(7, 5), (5, 7), (10, 3), (3, 100), (4, 4), (1, 3)])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear"])
def test_constant_sizes_select_the_same_elements(mode: str, size: int, out: int) -> None:
    module = Resize(mode=mode)
    module.forward = lambda x: functional.interpolate(x, out, mode=mode)
    x = torch.randn(2, 3, size)
    exe: Any = tw.compile(tw.from_torch(module, (x,)))
    same(exe(x), module(x))


def test_images_of_other_dtypes_are_rounded_once() -> None:
    for dtype in (torch.float64, torch.float16, torch.bfloat16):
        for mode in ("bilinear", "bicubic", "nearest"):
            module = Resize(mode=mode, scale_factor=2)
            x = torch.randn(1, 2, 4, 5).to(dtype)
            exe: Any = tw.compile(tw.from_torch(module, (x,)))
            error = (exe(x).double() - module(x).double()).abs().max()
            assert error <= torch.finfo(dtype).eps * 4


def test_a_factor_of_a_symbolic_size_that_is_not_exact_is_reported() -> None:
    sizes = {"x": {2: "height"}}
    with pytest.raises(UnsupportedOperatorsError) as caught:
        tw.from_torch(
            Resize(mode="nearest", scale_factor=1.1), (torch.randn(1, 2, 10, 4),), dynamic=sizes
        )
    uses: Any = caught.value.details["operators"]
    assert "the scale factor 1.1 of the symbolic size" in uses[0]["reason"]


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_weighted_means_of_all_neighbors_equal_pytorch(mode: str) -> None:
    def function(x: Any) -> list[Any]:
        form: dict[str, Any] = {"mode": mode, "antialias": True}
        return [
            functional.interpolate(x, size=(5, 9), **form),
            functional.interpolate(x, size=(5, 9), align_corners=True, **form),
        ]

    x = torch.randn(2, 3, 11, 6, generator=torch.Generator().manual_seed(0))
    height = torch.export.Dim("height", min=4)
    same_as_pytorch(function, x, dynamic=[{2: height}], others=[(x[:, :, :4],)])
    factors: dict[str, Any] = {"scale_factor": (0.25, 1.5), "mode": mode, "antialias": True}
    same_as_pytorch(lambda y: [functional.interpolate(y, **factors)], x)
