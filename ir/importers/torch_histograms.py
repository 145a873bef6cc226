"""Import handlers of histograms in PyTorch over one or several coordinates.

An element is in the last bin whose left edge is not greater; the last bin includes its right edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from ..dtype import i64
from ..symbolic import const_value, to_text
from .formulas import Formula, number, positions, size_of
from .tensors import Imported
from .torch_context import TorchContext, aten
from .unsupported import UnsupportedFormError


def _columns(t: TorchContext, x: Imported) -> list[Formula]:
    """Return the coordinates of all elements as vectors."""
    count = const_value(x.shape[-1])
    if count is None:
        raise UnsupportedFormError(
            f"a histogram over {to_text(x.shape[-1])} coordinates is not supported; their number "
            "must be constant"
        )
    flat = Formula(t, x).reshape(-1, count)
    return [flat.at(1, k) for k in range(count)]


def _edges(t: TorchContext, x: Formula, bins: int, ends: Sequence[float] | None) -> Formula:
    """Return the edges of bins of one width, from the least to the greatest element by default.

    Without elements they are from 0 to 1.
    """
    if ends or const_value(x.shape[0]) == 0:
        low, high = (number(t, float(v), x.dtype) for v in ends or (0, 1))
    else:
        empty = size_of(t, x.shape[0]).equal(0)
        low = empty.choose(0.0, x.reduce("min", 0), x.dtype)
        high = empty.choose(1.0, x.reduce("max", 0), x.dtype)
    equal = low.equal(high).choose(0.5, 0.0, x.dtype)
    low, high = low - equal, high + equal
    step = (high - low) / float(bins)
    at = positions(t, bins + 1)
    near, rest = at.to(x.dtype), (-at + bins).to(x.dtype)
    return (at < (bins + 1) // 2).choose(low + step * near, high - step * rest, x.dtype)


def _counted(
    t: TorchContext, columns: Sequence[Formula], edges: Sequence[Formula], weight: Imported | None,
    *, density: bool,
) -> Imported:  # fmt: skip
    """Return the numbers or weights of the elements in each bin."""
    dtype = columns[0].dtype
    flat, inside = number(t, 0, i64), None
    sizes = [e.shape[0] - 1 for e in edges]
    for x, ends, size in zip(columns, edges, sizes, strict=True):
        place = (ends.unsqueeze(0) <= x.unsqueeze(1)).to(i64).sum(1) - 1
        last = ends.at(0, size)
        here = (x >= ends.at(0, 0)) & (x <= last)
        inside = here if inside is None else inside & here
        count = Formula(t, t.number(size, i64))
        flat = flat * count + place.minimum(count - 1)
    total = reduce(lambda a, b: a * b, sizes)
    amounts = number(t, 1.0, dtype) if weight is None else Formula(t, weight).reshape(-1).to(dtype)
    amounts = amounts.expand(columns[0].shape[0])
    outside = Formula(t, t.number(total, i64))
    target = flat if inside is None else inside.choose(flat, outside, i64)
    start = Formula(t, t.uniform(0, (total + 1,), dtype))
    found = start.call("index_add", target, amounts, axis=0).cut(0, 0, total).reshape(*sizes)
    if density:
        found = found / found.sum(*range(found.rank))
        for axis, ends in enumerate(edges):
            widths = ends.cut(0, 1, ends.shape[0]) - ends.cut(0, 0, ends.shape[0] - 1)
            found = found / widths.unsqueeze(*range(1, found.rank - axis))
    return found.x


@aten("histogram")
def histogram(
    t: TorchContext, x: Imported, bins: int | Imported = 100, *,
    range: Sequence[float] | None = None,  # noqa: A002  # the name in PyTorch
    weight: Imported | None = None, density: bool = False,
) -> list[Imported]:  # fmt: skip
    """Import a histogram over edges that are given or computed."""
    flat = Formula(t, x).reshape(-1)
    edges = Formula(t, bins) if isinstance(bins, Imported) else _edges(t, flat, bins, range)
    return [_counted(t, [flat], [edges], weight, density=density), edges.x]


@aten("_histogramdd_bin_edges")
def bin_edges(
    t: TorchContext, x: Imported, bins: Sequence[int], *,
    range: Sequence[float] | None = None, **_: Any,  # noqa: A002  # the name in PyTorch
) -> list[Imported]:  # fmt: skip
    """Import the edges of bins of one width along each coordinate."""
    return [e.x for e in _all_edges(t, _columns(t, x), bins, range)]


def _all_edges(
    t: TorchContext, columns: Sequence[Formula], bins: Sequence[int], ends: Sequence[float] | None
) -> list[Formula]:
    pairs = [None if not ends else ends[2 * k : 2 * k + 2] for k in range(len(columns))]
    return [_edges(t, x, n, pair) for x, n, pair in zip(columns, bins, pairs, strict=True)]


@aten("_histogramdd_from_bin_cts")
def counts_of_bins(
    t: TorchContext, x: Imported, bins: Sequence[int], *,
    range: Sequence[float] | None = None,  # noqa: A002  # the name in PyTorch
    weight: Imported | None = None, density: bool = False,
) -> Imported:  # fmt: skip
    """Import a histogram over bins of one width along each coordinate."""
    columns = _columns(t, x)
    return _counted(t, columns, _all_edges(t, columns, bins, range), weight, density=density)


@aten("_histogramdd_from_bin_tensors")
def counts_of_edges(
    t: TorchContext, x: Imported, bins: Sequence[Imported], *, weight: Imported | None = None,
    density: bool = False,
) -> Imported:  # fmt: skip
    """Import a histogram over given edges along each coordinate."""
    edges = [Formula(t, e) for e in bins]
    return _counted(t, _columns(t, x), edges, weight, density=density)
