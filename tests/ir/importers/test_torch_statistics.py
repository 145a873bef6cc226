"""Order statistics and searches of PyTorch, compiled for all sizes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from tests.ir.importers.exported import compiled, equals_pytorch, matrix, same_as_pytorch

if TYPE_CHECKING:
    from collections.abc import Callable


def with_nan(x: Any) -> Any:
    """Replace some numbers by NaN, in the first row all of them."""
    row = torch.arange(x.shape[0])[:, None]
    return torch.where((x > 1) | (row == 0), math.nan, x)


FUNCTIONS: dict[str, Callable[[Any], list[Any]]] = {
    "median": lambda x: [x.median(), *x.median(1), *x.median(0, keepdim=True)],
    "median of NaN": lambda x: [with_nan(x).median()],
    "median with NaN": lambda x: [with_nan(x).median(1)[0], with_nan(x)[1:].nanmedian()],
    "median without NaN": lambda x: [with_nan(x).nanmedian(1)[0], *x.nanmedian(0)],
    "kthvalue": lambda x: [*x.kthvalue(2, 1), *x.kthvalue(3, 0, keepdim=True)],
    "mode": lambda x: [*x.round().int().mode(1), *x.mode(0, keepdim=True)],
    "searches": lambda x: [
        torch.searchsorted(x.sort(1)[0], x),
        torch.searchsorted(x.sort(1)[0], x.round(), right=True, out_int32=True),
        torch.bucketize(with_nan(x), x[0].sort()[0]),
        torch.bucketize(with_nan(x), x[0].sort()[0], right=True),
    ],
    "masks": lambda x: [x.masked_select(x > 0), x.masked_scatter(x > 0, x.flip(0))],
    "writes by position": lambda x: [
        x.put(torch.tensor([0, -1, 3]), x[0, :3]),
        x.put(torch.tensor([1, 1, 3]), x[0, :3], accumulate=True),
    ],
    "strided view": lambda x: [torch.as_strided(x, (2, 3), (1, 2), 1)],
    "write of a strided view": lambda x: [
        torch.as_strided_scatter(x.clone(), x[:2, :3], (2, 3), (1, 2), 1)
    ],
    "distances of pairs": lambda x: [
        torch.nn.functional.pdist(x, p) for p in (0.0, 1.0, 2.0, 3.0, math.inf)
    ],
    "no indices": lambda x: [x.gather(1, torch.zeros(0, dtype=torch.int64))],
    "distances": lambda x: [torch.cdist(x[:3], x[:2], p=p) for p in (0.0, 1.0, 2.0, 3.0, math.inf)],
    "three factors": lambda x: [
        torch.nn.functional.bilinear(x[:, :2], x[:, 2:5], x[:1, :2, None].expand(4, 2, 3))
    ],
    "writes of diagonals": lambda x: [
        torch.diagonal_scatter(x[:2, :4], x[0, :2] + k, k) for k in (0, 1, 2)
    ] + [torch.diagonal_scatter(x[None, :2, :4], x[:1, :1], -1, 1, 2)],
    "orders of a number": lambda x: [*x.sum().sort(), *x.sum().topk(1)],
    "negative padding": lambda x: [
        torch.nn.functional.pad(x[None, :2, :3], (-2, 4), mode="replicate"),
        torch.nn.functional.pad(x[None, :2, :4], (-1, 2), mode="reflect"),
    ],
    "sums of products": lambda x: [torch.addbmm(x[:, :1], x[None], x.t()[None], beta=0.5)],
}  # fmt: skip


def test_reductions_of_a_number_have_the_axes_of_a_vector() -> None:
    def function(x: Any) -> list[Any]:
        found = [x.sum(0), x.mean(-1), x.prod(0), x.amax(0), x.amin((0,)), (x > 0).any(0)]
        found += [x.all(-1), x.var(0, False), x.std(0, False), *torch.var_mean(x, 0, False)]
        found += [x.softmax(0), x.log_softmax(-1), x.logsumexp(0), *torch.aminmax(x, dim=0)]
        found += [x.count_nonzero(0), x.nansum(0), x.nanmean(0)]
        return [*found, torch.nn.functional.cosine_similarity(x, -x, dim=0)]

    same_as_pytorch(function, torch.tensor(3.0))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_program_for_all_sizes_equals_pytorch(name: str) -> None:
    equals_pytorch(FUNCTIONS[name])


def test_the_position_of_a_median_that_is_nan_is_that_of_a_nan() -> None:
    run = compiled(lambda x: [*with_nan(x).median(1)])
    x = matrix(4, 6)
    values, positions = (np.asarray(y) for y in run(x.numpy()))
    expected = with_nan(x).numpy()
    assert np.isnan(values[0])
    found = expected[np.arange(4), positions]
    np.testing.assert_array_equal(found, values)
