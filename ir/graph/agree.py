"""Whether two annotations can be those of one value, and whether shapes unify."""

from __future__ import annotations

from collections.abc import Mapping

from ..symbolic import Expr, Facts, Refuted, SymInt, Var, eq, prove, substitute, to_text
from .nodes import Info, PrimInfo, ShapeInfo, TensorInfo, TupleInfo


def dims_differ(left: Expr, right: Expr, facts: Facts) -> str:
    """Say for which sizes two dimensions differ; empty if none is known."""
    if left is right:
        return ""
    answer = prove(eq(left, right), facts)
    if not isinstance(answer, Refuted):
        return ""
    where = f" where {answer}" if answer.counterexample else ""
    return f"{to_text(left)} is not {to_text(right)}{where}"


def _shapes_differ(
    left: tuple[Expr, ...] | None, right: tuple[Expr, ...] | None, facts: Facts
) -> str:
    if left is None or right is None:
        return ""
    if len(left) != len(right):
        return f"rank {len(left)} is not rank {len(right)}"
    for axis, (a, b) in enumerate(zip(left, right, strict=True)):
        problem = dims_differ(a, b, facts)
        if problem:
            return f"axis {axis}: {problem}"
    return ""


def disagreement(left: Info, right: Info, facts: Facts) -> str:
    """Say why two annotations cannot be those of one value; empty if they can.

    What is unknown on either side agrees with everything.

    Examples
    --------
    >>> from ..dtype import f32, i64
    >>> from ..symbolic import as_expr
    >>> a, b = (TensorInfo((as_expr(n),), t) for n, t in ((4, f32), (5, i64)))
    >>> disagreement(a, b, Facts())
    'f32 is not i64'
    """
    match left, right:
        case TensorInfo(), TensorInfo():
            if left.dtype != right.dtype:
                return f"{left.dtype} is not {right.dtype}"
            return _shapes_differ(left.shape, right.shape, facts)
        case ShapeInfo(), ShapeInfo():
            return _shapes_differ(left.dims, right.dims, facts)
        case PrimInfo(), PrimInfo():
            return "" if left.dtype == right.dtype else f"{left.dtype} is not {right.dtype}"
        case TupleInfo(fields=a), TupleInfo(fields=b):
            if len(a) != len(b):
                return f"{len(a)} fields are not {len(b)}"
            parts = (disagreement(x, y, facts) for x, y in zip(a, b, strict=True))
            return next((p for p in parts if p), "")
        case _:
            return "" if _compatible(left, right) else f"{_kind(left)} is not {_kind(right)}"


def _compatible(left: Info, right: Info) -> bool:
    kinds = {type(left), type(right)}
    return len(kinds) == 1 or "Object" in {_kind(left), _kind(right)}


def _kind(info: Info) -> str:
    return type(info).__name__.removesuffix("Info")


def bind_dims(formal: TensorInfo, actual: TensorInfo, bound: dict[Var, Expr]) -> None:
    """Bind the symbols that are whole dimensions of a parameter to an argument's dimensions."""
    for dim, size in zip(formal.shape or (), actual.shape or (), strict=False):
        if isinstance(dim, Var):
            bound.setdefault(dim, size)


def rebound(info: TensorInfo, bound: Mapping[Var, Expr]) -> TensorInfo:
    """Write a callee's annotation in the caller's symbols, where all of them are known."""
    if info.shape is None or any(d.free - bound.keys() for d in info.shape):
        return TensorInfo(None, info.dtype, info.device)
    values: dict[Var, SymInt] = dict(bound)
    return TensorInfo(tuple(substitute(d, values) for d in info.shape), info.dtype, info.device)
