"""Import handlers of PyTorch operators of mixtures of experts: histograms and grouped products."""

from __future__ import annotations

from typing import Any

from ..dtype import i64
from ..symbolic import as_expr, const_value
from .elementwise import convert
from .formulas import Formula, number, positions
from .shaping import concat
from .tensors import Imported
from .torch_context import TorchContext, aten
from .unsupported import UnsupportedFormError


@aten("histc")
def histc(
    t: TorchContext,
    x: Imported,
    bins: int = 100,
    min: float = 0,  # noqa: A002  # the name in PyTorch
    max: float = 0,  # noqa: A002
) -> Imported:
    """Import the numbers of elements in bins of equal width; elements out of range do not count."""
    if min > max:
        raise UnsupportedFormError(f"expected limits in order, got {min} and {max}")
    dtype = t.result_dtype()
    flat = Formula(t, x).reshape(-1).to(dtype)
    low, high = (number(t, float(v), dtype) for v in (min, max))
    width = number(t, float(max - min), dtype)
    if min == max and const_value(flat.shape[0]) != 0:
        low, high = _limits(flat)
        width = high - low
    scaled = (flat - low) / width * float(bins)
    inside = (flat >= low) & (flat <= high)
    column = scaled.apply("floor").minimum(float(bins - 1))
    equal = column.unsqueeze(1).equal(positions(t, bins).to(dtype).unsqueeze(0))
    return (equal & inside.unsqueeze(1)).to(dtype).sum(0).x


def _limits(x: Formula) -> tuple[Formula, Formula]:
    """Return the least and the greatest element, or numbers around them if they are equal."""
    low, high = x.reduce("min", 0), x.reduce("max", 0)
    margin = low.equal(high).choose(1.0, 0.0, x.dtype)
    return low - margin, high + margin


@aten("_grouped_mm", "transformers.grouped_mm_fallback")
def grouped_mm(
    t: TorchContext, x: Imported, w: Imported, offs: Imported | None = None, *others: Any, **_: Any
) -> Imported:
    """Import the product of groups of rows; ``offs`` are the ends of the groups."""
    if offs is None or x.rank != 2 or w.rank != 3 or any(v is not None for v in others):
        raise UnsupportedFormError(
            "a grouped matrix product is supported for groups of rows, a matrix per group, and "
            "neither bias nor another dtype of the result"
        )
    start = convert(t, t.uniform(0, (as_expr(1),), i64), offs.dtype)
    offsets = concat(t, [start, offs], 0)
    return t.apply("grouped_matmul", t.plain(x), t.plain(w), t.plain(offsets), name=t.leaf)
