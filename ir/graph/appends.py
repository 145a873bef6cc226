"""Values that a loop carries and that grow at their end."""

from __future__ import annotations

from typing import Final

from ..symbolic import Expr, const_value
from .nodes import Call, CallDPSLibrary, Operand, Rhs, TensorInfo, operand_info

APPEND: Final = "std.append"
"""The library function that concatenates tensors to a carried value."""

MOST_PARTS: Final = 64
"""The most tensors that are appended to a carried value by copies; more are one kernel."""


def append_axis(right: Rhs) -> int | None:
    """Return the axis of a concatenation whose result begins with its first operand.

    The elements of the first operand are the first ones of the result if all dimensions before the
    axis are 1; None for other right-hand sides. With a larger leading dimension, the elements of
    every row but the first one move: a cache of shape ``(batch, heads, t, d)`` that grows in ``t``
    is copied, whatever the block it is in. A static one, ``(batch, heads, most, d)``, which
    ``index_copy`` updates at axis 2, stays in place.

    Examples
    --------
    >>> from ..script import parse
    >>> module = parse('''
    ... n = symbols("n", lower=0)
    ...
    ... @graph_func
    ... def main(x: Tensor[(1, n, 4), f32], r: Tensor[(1, 1, 4), f32]):
    ...     a = concat(x, r, axis=1)
    ...     b = concat(a, a, axis=-1)
    ...     return b
    ... ''')
    >>> [append_axis(b.right) for b in module.graph().bindings]
    [1, None]
    """
    match right:
        case Call(op="concat", args=args, attributes=attributes):
            pass
        case CallDPSLibrary(symbol=symbol, args=args, attributes=attributes) if symbol == APPEND:
            pass
        case _:
            return None
    shapes = [_shape(o) for o in args]
    first, axis = shapes[0] if shapes else None, dict(attributes).get("axis", 0)
    if first is None or None in shapes or not isinstance(axis, int) or len(args) > MOST_PARTS:
        return None
    axis += len(first) if axis < 0 else 0
    leading = all(const_value(d) == 1 for d in first[:axis])
    return axis if leading and 0 <= axis < len(first) else None


def _shape(operand: Operand) -> tuple[Expr, ...] | None:
    info = operand_info(operand)
    return info.shape if isinstance(info, TensorInfo) and not info.dtype.is_packed else None
