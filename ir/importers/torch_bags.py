"""Import handlers of PyTorch operators that combine the rows of groups."""

from __future__ import annotations

import math
from typing import Any, Final

from ..dtype import i64
from ..symbolic import Expr
from .elementwise import rounded_once
from .formulas import Formula, number, positions, size_of
from .shaping import expand
from .tensors import Imported
from .torch_context import HANDLERS, TorchContext, aten
from .unsupported import UnsupportedFormError

_SUM: Final = 0
_MEAN: Final = 1

_MARGIN: Final = 1e-7
"""PyTorch adds this to the norms that it divides by."""


@aten("_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(  # noqa: PLR0917  # the order of PyTorch
    t: TorchContext, weight: Imported, indices: Imported, offsets: Imported,
    scale_grad: bool = False, mode: int = _SUM, sparse: bool = False,  # noqa: FBT001, FBT002
    factors: Imported | None = None, last: bool = False,  # noqa: FBT001, FBT002
    padding: int = -1, **named: Any,
) -> list[Imported | None]:  # fmt: skip
    """Import the sums, means, or maxima of the rows of each bag."""
    del scale_grad, sparse
    factors = named.get("per_sample_weights", factors)
    last, padding = named.get("include_last_offset", last), named.get("padding_idx", padding)
    if any(user.args[1:] != (0,) and user.users for user in t.node.users):
        raise UnsupportedFormError(
            "the bags of the indices and their sizes are not supported; only the rows are"
        )
    at, starts = Formula(t, indices).to(i64), Formula(t, offsets).to(i64)
    bags = offsets.shape[0] - 1 if last else offsets.shape[0]
    starts = starts.cut(0, 0, bags)
    place = positions(t, indices.shape[0]).unsqueeze(1) >= starts.unsqueeze(0)
    bag = place.to(i64).sum(1) - 1
    if padding >= 0:  # rows of the padding are those of a bag after the last one
        bag = at.equal(padding).choose(size_of(t, bags), bag, i64)

    def compute(table: Imported, *scales: Imported) -> Imported:
        rows = Formula(t, table).take(at, 0)
        for scale in scales:
            rows = rows * Formula(t, scale).unsqueeze(1)
        return _combined(rows, bag, bags + 1, mode).cut(0, 0, bags).x

    return [rounded_once(t, compute, weight, *([] if factors is None else [factors])), *[None] * 3]


def _combined(rows: Formula, bag: Formula, bags: Expr, mode: int) -> Formula:
    """Return the rows of each bag combined."""
    t = rows.e
    start = Formula(t, t.uniform(0, (bags, rows.shape[1]), rows.dtype))
    if mode in {_SUM, _MEAN}:
        found = start.call("index_add", bag, rows, axis=0)
        if mode == _SUM:
            return found
        ones = number(t, 1, i64).expand(bag.shape[0])
        none = Formula(t, t.uniform(0, (bags,), i64))
        count = none.call("index_add", bag, ones, axis=0).maximum(1)
        return found / count.to(rows.dtype).unsqueeze(1)
    full = Formula(t, expand(t, bag.unsqueeze(1).x, rows.shape))
    form: dict[str, Any] = {"reduction": "max", "include_self": False, "axis": 0}
    return start.call("scatter_reduce", full, rows, **form)


@aten("embedding_renorm")
def embedding_renorm(
    t: TorchContext, table: Imported, indices: Imported, largest: float, order: float
) -> Imported:
    """Import the table whose rows at indices are scaled down to a largest norm."""
    at = Formula(t, indices).to(i64).reshape(-1)
    count = table.shape[0]
    start = Formula(t, t.uniform(0, (count,), i64))
    ones = number(t, 1, i64).expand(at.shape[0])
    used = start.call("index_add", at, ones, axis=0) > 0

    def compute(rows: Imported) -> Imported:
        norms = HANDLERS["linalg_vector_norm"](t, rows, order, 1)
        size = Formula(t, norms)
        long = used & (size > largest)
        factor = long.choose(largest / (size + _MARGIN), 1.0, rows.dtype)
        return (Formula(t, rows) * factor.unsqueeze(1)).x

    return rounded_once(t, compute, table)


@aten("segment_reduce")
def segment_reduce(  # the order of PyTorch
    t: TorchContext, x: Imported, reduce: str, *, lengths: Imported | None = None,
    indices: Imported | None = None, offsets: Imported | None = None, axis: int = 0,
    unsafe: bool = False, initial: float | None = None,
) -> Imported:  # fmt: skip
    """Import reductions of segments of an axis, which is the last one of their lengths."""
    del unsafe
    given = lengths if offsets is None else offsets
    if given is None or indices is not None:
        raise UnsupportedFormError("segments by indices are not supported; only lengths or offsets")
    ends, last = Formula(t, given).to(i64), given.rank - 1
    if offsets is None:
        ends = ends.call("cumsum", axis=last)
        starts = ends - Formula(t, given).to(i64)
    else:
        count = ends.shape[last]
        starts, ends = ends.cut(last, 0, count - 1), ends.cut(last, 1, count)
    place = positions(t, x.shape[axis])
    starts, ends = starts.unsqueeze(given.rank), ends.unsqueeze(given.rank)
    inside = (place >= starts) & (place < ends)
    after = range(given.rank + 1, x.rank + 1)
    chosen = inside.unsqueeze(*after)
    op, least = _SEGMENTS[reduce]
    start = least if initial is None else float(initial)

    def compute(image: Imported) -> Imported:
        rows = Formula(t, image).unsqueeze(axis)
        found = chosen.choose(rows, least, image.dtype).reduce(op, axis + 1)
        if initial is not None:
            found = found.apply(_COMBINED[op], start)
        if reduce != "mean":
            return found.x
        size = (ends - starts).squeeze(given.rank).unsqueeze(*(k - 1 for k in after))
        empty = size.equal(0)
        found = found / size.maximum(1).to(image.dtype)
        return empty.choose(math.nan if initial is None else start, found, image.dtype).x

    return rounded_once(t, compute, x)


_SEGMENTS: Final = {
    "sum": ("sum", 0.0), "mean": ("sum", 0.0), "prod": ("prod", 1.0), "max": ("max", -math.inf),
    "min": ("min", math.inf),
}  # fmt: skip
"""The reductions of segments by their names in PyTorch, and their identities."""

_COMBINED: Final = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}
"""The functions of two elements by reduction."""
