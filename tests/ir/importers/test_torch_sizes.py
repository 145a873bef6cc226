"""Sizes that PyTorch reads from tensors are read when the program runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tilewright as tw
from tilewright.errors import TilewrightError, UnsupportedOperatorsError
from tilewright.ir.interpreter import run_graph


class Prefix(torch.nn.Module):
    """The first rows, the sum of the others, and a tensor of a size that is data."""

    def forward(self, x: Any, n: Any) -> Any:
        k = n.item()
        torch._check(k >= 0)
        torch._check(k <= x.shape[0])
        return x[:k] * 2, x[k:].sum(0), torch.ones(k + 1)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_a_size_from_an_input(dtype: Any) -> None:
    axes = ({0: torch.export.Dim("rows")}, None)
    given = (torch.randn(5, 3), torch.tensor(2, dtype=dtype))
    module = tw.from_exported_program(torch.export.export(Prefix(), given, dynamic_shapes=axes))
    run: Any = tw.compile(module, target="cpu")
    for rows, count in ((5, 2), (4, 0), (3, 3), (0, 0)):
        x, n = torch.randn(rows, 3), torch.tensor(count, dtype=dtype)
        expected = Prefix()(x, n)
        arrays = [x.numpy(), n.numpy()]
        for found in (run_graph(module, arrays), run(*arrays)):
            for have, want in zip(found, expected, strict=True):
                np.testing.assert_allclose(np.asarray(have), want.numpy(), rtol=1e-5)
    wrong = [np.zeros((5, 3), np.float32), np.array(-1, dtype=str(dtype).removeprefix("torch."))]
    with pytest.raises(TilewrightError):
        run_graph(module, wrong)
    with pytest.raises(TilewrightError):
        run(*wrong)


def test_a_size_from_a_computed_tensor_of_one_element() -> None:
    class Filled(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            k = (x > 0).sum(0, keepdim=True).item()
            torch._check(k >= 0)
            return torch.arange(k)

    module = tw.from_exported_program(torch.export.export(Filled(), (torch.ones(4),)))
    (found,) = run_graph(module, [np.array([1, -1, 2, 3], np.float32)])
    assert found.tolist() == [0, 1, 2]


def test_other_numbers_are_rejected_by_name() -> None:
    class Scaled(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x * x[0].item()

    program = torch.export.export(Scaled(), (torch.ones(4),))
    with pytest.raises(UnsupportedOperatorsError, match="a number of dtype f32 that is read"):
        tw.from_exported_program(program)


class Split(torch.nn.Module):
    """Parts of columns between positions that are data."""

    def forward(self, x: Any, ends: Any) -> Any:
        return torch.tensor_split(x, ends, 1)


def test_parts_between_positions_that_are_data() -> None:
    given = (torch.randn(3, 7), torch.tensor([2, 5]))
    program = torch.export.export(Split(), given, strict=False)
    run: Any = tw.compile(tw.from_exported_program(program), target="cpu")
    for ends in ([2, 5], [0, 7], [3, 3], [6, 7]):
        at = torch.tensor(ends)
        for have, want in zip(
            run(given[0].numpy(), at.numpy()), Split()(given[0], at), strict=True
        ):
            np.testing.assert_array_equal(np.asarray(have), want.numpy(), strict=True)


def test_a_position_in_memory_is_rejected_by_name() -> None:
    class Offset(torch.nn.Module):
        def forward(self, x: Any, ends: Any) -> Any:
            return torch.ones(torch.tensor_split(x, ends)[1].storage_offset() + 1)

    given = (torch.randn(7), torch.tensor([2, 5]))
    program = torch.export.export(Offset(), given, strict=False)
    with pytest.raises(UnsupportedOperatorsError, match="position of a tensor in its memory"):
        tw.from_exported_program(program)
