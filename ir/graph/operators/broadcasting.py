"""Broadcasting of shapes, right-aligned as in NumPy."""

from __future__ import annotations

from collections.abc import Sequence

from ...symbolic import Expr, as_expr, const_value
from .shape_inference import CallFacts, shape_text

_ONE = as_expr(1)


def _dim(call: CallFacts, left: Expr, right: Expr, reason: str) -> Expr:
    if left is right or const_value(right) == 1:
        return left
    if const_value(left) == 1:
        return right
    call.require_equal(left, right, reason)
    return left if const_value(right) is None else right


def broadcast(call: CallFacts, shapes: Sequence[tuple[Expr, ...]]) -> tuple[Expr, ...]:
    """Return the broadcast of shapes.

    Dimensions that are not the constant 1 are required to be equal. A symbolic dimension does not
    broadcast even if it is 1 at run time, because the shape of the result would depend on it; use
    ``broadcast_to`` for this.

    Raises
    ------
    ShapeMismatchError
        If two dimensions are proved to differ.
    """
    rank = max((len(s) for s in shapes), default=0)
    result: list[Expr] = [_ONE] * rank
    text = " with ".join(shape_text(s) for s in shapes)
    for shape in shapes:
        for k, dim in enumerate(shape, start=rank - len(shape)):
            result[k] = _dim(call, result[k], dim, f"cannot broadcast {text}")
    return tuple(result)


def require_broadcastable(
    call: CallFacts, source: tuple[Expr, ...], target: tuple[Expr, ...]
) -> None:
    """Require that ``source`` broadcasts to ``target``."""
    text = f"cannot broadcast {shape_text(source)} to {shape_text(target)}"
    if len(source) > len(target):
        raise call.error(0, text)
    for have, want in zip(source, target[len(target) - len(source) :], strict=True):
        if const_value(have) != 1:
            call.require_equal(have, want, text)
