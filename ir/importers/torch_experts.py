"""Import handlers of PyTorch operators of mixtures of experts: histograms and grouped products."""

from __future__ import annotations

from typing import Any

from ..dtype import i64
from ..symbolic import as_expr
from .elementwise import convert, elementwise
from .shaping import concat, expand_dims, reshape
from .tensors import Imported, Iota
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
    if not min < max:
        raise UnsupportedFormError(
            f"histc with the limits {min} and {max} is not supported; limits from the elements are "
            "unknown until run time",
            hint="pass min < max",
        )
    dtype = t.result_dtype()
    flat = convert(t, reshape(t, x, (-1,)), dtype)
    low, high, width = (t.number(v, dtype) for v in (min, max, max - min))
    part = elementwise(t, "divide", [elementwise(t, "subtract", [flat, low]), width])
    scaled = elementwise(t, "multiply", [part, t.number(bins, dtype)])
    inside = elementwise(
        t,
        "logical_and",
        [elementwise(t, "greater_equal", [flat, low]), elementwise(t, "less_equal", [flat, high])],
    )
    last = t.number(bins - 1, dtype)
    column = elementwise(t, "minimum", [elementwise(t, "floor", [scaled]), last])
    numbers = convert(t, Imported((as_expr(bins),), i64, known=Iota(0, as_expr(0))), dtype)
    equal = elementwise(t, "equal", [expand_dims(t, column, (1,)), expand_dims(t, numbers, (0,))])
    counted = elementwise(t, "logical_and", [equal, expand_dims(t, inside, (1,))])
    return t.apply("sum", t.plain(convert(t, counted, dtype)), axes=(0,))


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
