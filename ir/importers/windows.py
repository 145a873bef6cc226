"""Operators over windows of images shared by the importers."""

from __future__ import annotations

from collections.abc import Sequence

from ..symbolic import Expr, const_value, maximum, minimum
from .elementwise import elementwise
from .emitter import Emitter
from .shaping import expand_dims, slice_exact
from .tensors import Imported


def with_bias(e: Emitter, x: Imported, bias: Imported | None) -> Imported:
    """Add one number per channel; None adds nothing."""
    if bias is None:
        return x
    return elementwise(e, "add", [x, expand_dims(e, bias, tuple(range(1, x.rank - 1)))])


def padded(
    e: Emitter,
    x: Imported,
    widths: tuple[Sequence[Expr], Sequence[Expr]],
    value: float,
    mode: str,
) -> Imported:
    """Add elements before and after each dimension; negative numbers remove elements.

    Elements of the tensor that are repeated or reflected are those before the removal.
    """
    before, after = map(list, widths)
    if mode in ("edge", "reflect") and any((const_value(n) or 0) < 0 for n in (*before, *after)):
        more = [[maximum(n, 0) for n in side] for side in (before, after)]
        x = padded(e, x, (more[0], more[1]), value, mode)
        before, after = ([minimum(n, 0) for n in side] for side in (before, after))
    for axis, (low, high) in enumerate(zip(before, after, strict=True)):
        if (const_value(low) or 0) < 0 or (const_value(high) or 0) < 0:
            bounds = (maximum(-low, 0), x.shape[axis] + minimum(high, 0))
            x = slice_exact(e, x, axis, bounds)
            before[axis], after[axis] = maximum(low, 0), maximum(high, 0)
    if all(const_value(n) == 0 for n in (*before, *after)):
        return x
    return e.apply("pad", e.plain(x), tuple(before), tuple(after), value, mode=mode)
