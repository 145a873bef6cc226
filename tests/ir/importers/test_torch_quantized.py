"""Quantization operators of PyTorch, compared with PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.errors import UnsupportedOperatorsError
from tilewright.ir.importers import from_exported_program
from tilewright.ir.interpreter.graph import run_graph

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS, COLUMNS = 5, 8


def ops() -> Any:
    import torch
    import torch.ao.quantization.fx._decomposed

    return torch.ops.quantized_decomposed


def imported(function: Callable[..., Any], *inputs: Any, **buffers: Any) -> tuple[Any, Any]:
    """Return the imported program of a function of inputs and buffers, and its model."""
    import torch
    from torch.export import export

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name, value in buffers.items():
                self.register_buffer(name, value)

        def forward(self, *given: Any) -> Any:
            return function(self, *given)

    model = Model()
    return from_exported_program(export(model, inputs)), model


def check(function: Callable[..., Any], *inputs: Any, native: bool = False, **buffers: Any) -> None:
    module, model = imported(function, *inputs, **buffers)
    expected = model(*inputs)
    arrays = [x.numpy() for x in inputs]
    found = [tw.compile(module)(*arrays)] if native else run_graph(module, arrays)
    for have, want in zip(
        found, expected if isinstance(expected, tuple) else (expected,), strict=True
    ):
        assert str(want.dtype).removeprefix("torch.") == have.dtype.name
        left, right = np.asarray(have).astype(np.float64), want.double().numpy()
        np.testing.assert_array_equal(left, right)


def data(seed: int = 0) -> Any:
    import torch

    x = torch.randn(ROWS, COLUMNS, generator=torch.Generator().manual_seed(seed)) * 4
    x[0, :4] = torch.tensor([0.25, 0.75, -0.25, 1e6])  # halves of the scales below
    return x


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [("int8", -128, 127), ("uint8", 0, 255), ("int16", -32768, 32767), ("int8", -8, 7)],
)
def test_one_scale(dtype: str, low: int, high: int) -> None:
    import torch

    kind, o = getattr(torch, dtype), ops()

    def forward(_: Any, x: Any) -> Any:
        q = o.quantize_per_tensor(x, 0.5, 3, low, high, kind)
        return q, o.dequantize_per_tensor(q, 0.3, 3, low, high, kind)

    check(forward, data())
    if (dtype, high) == ("int8", 127):
        check(lambda m, x: forward(m, x)[1], data(), native=True)


@pytest.mark.parametrize("constant", [False, True])
def test_one_scale_in_a_tensor(constant: bool) -> None:
    import torch

    o = ops()
    scale, zero = torch.tensor([0.3]), torch.tensor([-4])

    def forward(m: Any, x: Any, *given: Any) -> Any:
        s, z = given or (m.scale, m.zero)
        q = o.quantize_per_tensor.tensor(x, s, z, -128, 127, torch.int8)
        return q, o.dequantize_per_tensor.tensor(q, s, z, -128, 127, torch.int8)

    if constant:
        check(forward, data(), scale=scale, zero=zero)
    else:
        check(forward, data(), scale, zero)


def test_limits_in_tensors() -> None:
    import torch

    o = ops()
    scale, zero = torch.tensor(0.3), torch.tensor(7)
    low, high = torch.tensor(0), torch.tensor(15)

    def forward(m: Any, x: Any) -> Any:
        return o.quantize_per_tensor.tensor2(x, m.s, m.z, m.low, m.high, torch.uint8)

    check(forward, data(), s=scale, z=zero, low=low, high=high)


@pytest.mark.parametrize("axis", [0, 1])
def test_one_scale_per_channel(axis: int) -> None:
    import torch

    o, size = ops(), (ROWS, COLUMNS)[axis]
    scales = torch.rand(size, generator=torch.Generator().manual_seed(1)) + 0.1
    zeros = torch.arange(size) - 2

    def forward(m: Any, x: Any) -> Any:
        q = o.quantize_per_channel(x, m.scales, m.zeros, axis, -128, 127, torch.int8)
        full = o.dequantize_per_channel(q, m.scales, m.zeros, axis, -128, 127, torch.int8)
        return q, full, o.dequantize_per_channel(q, m.scales, None, axis, -128, 127, torch.int8)

    check(forward, data(), scales=scales, zeros=zeros)


def test_one_scale_per_row() -> None:
    import torch

    o = ops()
    scales = torch.rand(ROWS, 1, generator=torch.Generator().manual_seed(2)) + 0.1
    zeros = torch.arange(ROWS)[:, None] - 2

    def forward(m: Any, x: Any) -> Any:
        q = o.quantize_per_token(x, m.scales, m.zeros, -128, 127, torch.int8)
        return q, o.dequantize_per_token(q, m.scales, m.zeros, -128, 127, torch.int8, torch.float32)

    check(forward, data(), scales=scales, zeros=zeros)


def test_one_scale_per_group() -> None:
    import torch

    o = ops()
    generator = torch.Generator().manual_seed(3)
    weight = torch.randint(-8, 8, (ROWS, COLUMNS), generator=generator, dtype=torch.int8)
    scales = torch.rand(ROWS, 2, generator=generator) + 0.1
    zeros = torch.randint(-8, 8, (ROWS, 2), generator=generator, dtype=torch.int32)

    def forward(m: Any, x: Any) -> Any:
        w = o.dequantize_per_channel_group(
            m.weight, m.scales, m.zeros, -8, 7, torch.int8, 4, torch.float32
        )
        return x + w

    check(forward, data(), weight=weight, scales=scales, zeros=zeros)


def test_8_bit_floats() -> None:
    import torch

    o = ops()

    def forward(_: Any, x: Any) -> Any:
        q = o.quantize_per_tensor(x, 0.5, 0, -448, 448, torch.float8_e4m3fn)
        return o.dequantize_per_tensor(q, 0.5, 0, -448, 448, torch.float8_e4m3fn)

    check(forward, data())


def test_zero_points_of_groups_out_of_range_are_rejected() -> None:
    import torch

    o = ops()

    def forward(m: Any, x: Any) -> Any:
        return x + o.dequantize_per_channel_group(
            m.weight, m.scales, m.zeros, -8, 7, torch.int8, 4, torch.float32
        )

    with pytest.raises(UnsupportedOperatorsError, match="integers in -128 to 127, got 300 to 300"):
        imported(
            forward,
            data(),
            weight=torch.zeros(ROWS, COLUMNS, dtype=torch.int8),
            scales=torch.ones(ROWS, 2),
            zeros=torch.full((ROWS, 2), 300, dtype=torch.int32),
        )


def test_an_operator_without_an_import_is_reported_by_name() -> None:
    import torch

    o = ops()

    def forward(_: Any, x: Any) -> Any:
        return o.choose_qparams.tensor(x, -128, 127, 1e-5, torch.int8)

    with pytest.raises(UnsupportedOperatorsError, match=r"quantized_decomposed\.choose_qparams"):
        imported(forward, data())
