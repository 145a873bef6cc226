"""Lanes in the padding of the rows of a temporary, which no access of the program reads."""

from __future__ import annotations

from ....ir.loop.nodes import Buffer
from ....ir.symbolic import TRUE, Expr, as_expr, const_value, substitute
from .buffer_addresses import ALIGNMENT
from .context import LoweringContext


def skips_only_padding(buffer: Buffer, indices: tuple[Expr, ...], context: LoweringContext) -> bool:
    """Return whether every lane that does not run addresses the padding of its row.

    ``pad_vector_rows`` stores the rows of a small temporary in whole vectors. The elements after
    the last one of a row belong to no index, so that a vector may be stored whole.

    Parameters
    ----------
    buffer : Buffer
        The temporary.
    indices : tuple of Expr
        The indices of an access.
    context : LoweringContext
        The context, with lanes.
    """
    row, pitch = const_value(buffer.shape[-1]) if indices else None, _pitch(buffer)
    if context.lanes is None or row is None or pitch is None:
        return False
    *outer, last = map(context.term, indices)
    if any(context.varies(index) for index in outer):
        return False
    for k in range(context.count):
        at = {context.lanes.var: as_expr(k)}
        if context.assumptions.decide(substitute(context.mask, at)) is TRUE:
            continue
        index = const_value(substitute(last, at))
        if index is None or not row <= index < pitch:
            return False
    return True


def _pitch(buffer: Buffer) -> int | None:
    """Return the distance of the rows of a buffer, which do not overlap; None if unknown."""
    sizes = list(map(const_value, buffer.shape))
    steps = list(map(const_value, buffer.strides or ()))
    known = [step for step in steps if step is not None]
    if not known or len(known) < len(steps) or known[-1] != 1:
        return None
    rows = zip(known, known[1:], sizes[1:], strict=False)
    if any(size is None or outer < inner * size for outer, inner, size in rows):
        return None
    return known[-2] if len(known) > 1 else ALIGNMENT // buffer.dtype.alignment
