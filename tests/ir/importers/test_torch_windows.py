"""PyTorch operators over windows of images, with a dynamic batch and a dynamic last dimension."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from tilewright.ir.importers import from_exported_program
from tilewright.ir.interpreter.graph import run_graph

from tests.ir.importers.exported import same_as_pytorch

F: Any = functional
_GENERATOR = torch.Generator().manual_seed(3)


def weights(*shape: int) -> Any:
    return torch.randn(shape, generator=_GENERATOR) / math.sqrt(math.prod(shape[1:]))


LINE, PLANE = weights(6, 4, 3), weights(6, 4, 3, 2)
GROUPS, SPREAD = weights(4, 2, 3), weights(4, 3, 3)
BIAS = weights(6)
VOLUME, CHANNELS = weights(2, 4, 2, 1, 2), weights(4)

# Functions of an image of 4 channels; the second number is that of the spatial dimensions.
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "convolution of a line": (lambda x: F.conv1d(x, LINE, BIAS, padding=1), 1),
    "strides, dilation": (lambda x: F.conv1d(x, LINE, stride=2, padding=2, dilation=2), 1),
    "groups": (lambda x: F.conv1d(x, GROUPS, groups=2, padding="same"), 1),
    "valid padding": (lambda x: F.conv1d(x, LINE, padding="valid"), 1),
    "same padding of an even kernel": (lambda x: F.conv2d(x, PLANE, padding="same"), 2),
    "convolution of a plane": (lambda x: F.conv2d(x, PLANE, BIAS, (1, 2), (1, 0)), 2),
    "convolution without a batch": (lambda x: F.conv2d(x[0], PLANE, BIAS), 2),
    "convolution of a volume": (lambda x: F.conv3d(x, VOLUME), 3),
    "transposed": (lambda x: F.conv_transpose1d(x, SPREAD, stride=2, output_padding=1), 1),
    "transposed, in groups": (
        lambda x: F.conv_transpose1d(x, GROUPS, padding=1, groups=2, dilation=2), 1,
    ),
    "functional convolution": (
        lambda x: torch.convolution(x, LINE, BIAS, [1], [1], [1], False, [0], 1), 1,
    ),
    "functional transposed convolution": (
        lambda x: torch.convolution(x, SPREAD, None, [2], [0], [1], True, [1], 1), 1,
    ),
    "maxima": (lambda x: F.max_pool2d(x, 3, 2, 1), 2),
    "maxima without a batch": (lambda x: F.max_pool2d(x[0], (2, 1), dilation=2), 2),
    "positions of maxima": (
        lambda x: F.max_pool2d(x, (3, 2), (2, 1), 1, ceil_mode=True, return_indices=True)[1], 2,
    ),
    "positions of maxima of parts": (
        lambda x: F.adaptive_max_pool2d(x[0], (2, 3), return_indices=True)[1], 2,
    ),
    "returned maxima": (
        lambda x: F.max_unpool2d(
            *F.max_pool2d(x[..., :4, :4], 2, 2, return_indices=True), 2
        ), 2,
    ),
    "means": (lambda x: F.avg_pool2d(x, (3, 2), (2, 1), 1, count_include_pad=False), 2),
    "maxima of parts": (lambda x: F.adaptive_max_pool2d(x, (2, 3)), 2),
    "means with a divisor": (lambda x: F.avg_pool2d(x, 2, divisor_override=3), 2),
    "mean of all": (lambda x: F.adaptive_avg_pool2d(x, 1), 2),
    "means of parts": (lambda x: F.adaptive_avg_pool2d(x, (2, 3)), 2),
    "means of parts without a batch": (lambda x: F.adaptive_avg_pool1d(x[0], 3), 1),
    "padding": (lambda x: F.pad(x, (1, 2)) + F.pad(x, (2, 1), value=-1.5), 1),
    "padding that removes": (lambda x: F.pad(x, (-1, 2, 0, -1)), 2),
    "mirrored": (lambda x: F.pad(x, (2, 1), mode="reflect"), 1),
    "repeated": (lambda x: F.pad(x, (2, 1, 0, 3), mode="replicate"), 2),
    "continued": (lambda x: F.pad(x, (2, 3), mode="circular"), 1),
    "group norm": (lambda x: F.group_norm(x, 2, CHANNELS, CHANNELS * 2), 2),
    "batch norm": (lambda x: F.batch_norm(x, torch.ones(4), torch.ones(4) * 2), 2),
    "instance norm": (lambda x: F.instance_norm(x, weight=CHANNELS, bias=CHANNELS * 2), 2),
    "instance norm with statistics": (
        lambda x: F.instance_norm(x, CHANNELS, CHANNELS.abs() + 1, use_input_stats=False), 2,
    ),
    "blocks to space": (lambda x: F.pixel_unshuffle(F.pixel_shuffle(x, 2), 2), 2),
}  # fmt: skip


class One(nn.Module):
    """A module of one function."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


def exported(function: Callable[[Any], Any], rank: int) -> Any:
    shape = (3, 4, *(6 + k for k in range(rank)))
    axes = {0: torch.export.Dim("n", min=2), rank + 1: torch.export.Dim("m", min=6)}
    return torch.export.export(One(function), (torch.ones(shape),), dynamic_shapes=(axes,))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_windows_equal_pytorch(name: str) -> None:
    function, rank = FUNCTIONS[name]
    module = from_exported_program(exported(function, rank))
    rng = np.random.default_rng(0)
    for n, m in ((2, 6), (3, 9), (1, 7)):
        shape = (n, 4, *(6 + k for k in range(rank - 1)), m)
        x = rng.uniform(-2, 2, shape).astype(np.float32)
        expected = function(torch.from_numpy(x)).numpy()
        (found,) = run_graph(module, [x])
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5, strict=True)


@pytest.mark.parametrize("size", [5, 6, 7, 8])
def test_windows_that_are_rounded_up_equal_pytorch(size: int) -> None:
    def function(x: Any) -> Any:
        means = F.avg_pool1d(x, 3, 2, 1, ceil_mode=True)
        found = F.max_pool1d(x, 3, 2, ceil_mode=True)
        return found + means[..., : found.shape[-1]]

    x = torch.randn((2, 4, size), generator=_GENERATOR)
    module = from_exported_program(torch.export.export(One(function), (x,)))
    (found,) = run_graph(module, [x.numpy()])
    np.testing.assert_allclose(found, function(x).numpy(), rtol=1e-5, atol=1e-6, strict=True)


def test_windows_that_are_rounded_up_have_another_divisor() -> None:
    def function(x: Any) -> list[Any]:
        form: dict[str, Any] = {"ceil_mode": True, "divisor_override": 5}
        return [
            F.avg_pool2d(x, 3, 2, 1, **form),
            F.avg_pool2d(x, (1, 3), (4, 3), **form),
            F.avg_pool3d(x[None], 2, **form),
        ]

    for width in (4, 5, 7):
        x = torch.randn(2, 3, 6, width, generator=_GENERATOR)
        same_as_pytorch(function, x, dynamic=[{0: torch.export.Dim("batch")}], others=[(x[:1],)])


def test_the_position_of_the_last_element_that_is_not_a_number() -> None:
    def function(x: Any) -> list[Any]:
        return [
            *F.max_pool2d(x, 3, 2, 1, return_indices=True),
            *F.max_pool2d(x, 2, return_indices=True),
            *F.adaptive_max_pool2d(x, (2, 3), return_indices=True),
        ]

    x = torch.randn(2, 3, 6, 7, generator=_GENERATOR)
    x[:, :, 2:4, 3:6] = math.nan
    same_as_pytorch(function, x)
