"""Unification of annotations and shapes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ..symbolic import (
    Expr,
    Facts,
    Refuted,
    SymInt,
    Var,
    eq,
    is_proved,
    ne,
    prove,
    substitute,
    to_text,
)
from .nodes import (
    ConstantRef,
    Dims,
    Info,
    Operand,
    PrimInfo,
    ScalarLiteral,
    ShapeInfo,
    TensorInfo,
    TupleInfo,
    Value,
)

_DIFFERENT: Final = "different for"


def depends_on_values(problem: str) -> bool:
    """Return whether a disagreement is one of dimensions that some values make equal.

    Examples
    --------
    >>> depends_on_values("axis 0: expected n, got m (different for n = 0, m = 1)")
    True
    """
    return _DIFFERENT in problem


def dims_differ(left: Expr, right: Expr, facts: Facts) -> str:
    """Describe for which values a dimension differs from the expected one, ``right``.

    Empty if no such values were found.
    """
    if left is right:
        return ""
    answer = prove(eq(left, right), facts)
    if not isinstance(answer, Refuted):
        return ""
    never = is_proved(ne(left, right), facts)
    where = f" ({_DIFFERENT} {answer})" if answer.counterexample and not never else ""
    return f"expected {to_text(right)}, got {to_text(left)}{where}"


def _shapes_differ(
    left: tuple[Expr, ...] | None, right: tuple[Expr, ...] | None, facts: Facts
) -> str:
    if left is None or right is None:
        return ""
    if len(left) != len(right):
        return f"expected rank {len(right)}, got rank {len(left)}"
    for axis, (a, b) in enumerate(zip(left, right, strict=True)):
        problem = dims_differ(a, b, facts)
        if problem:
            return f"axis {axis}: {problem}"
    return ""


def operands_text(operands: Iterable[Operand]) -> str:
    """Return operands with their annotations, for messages.

    Examples
    --------
    >>> from ..dtype import f32
    >>> from ..symbolic import as_expr
    >>> operands_text([Value(1, "x", TensorInfo((as_expr(4),), f32))])
    'x: Tensor[(4,), f32]'
    """
    return ", ".join(map(_operand_text, operands)) or "none"


def _operand_text(operand: Operand) -> str:
    match operand:
        case Value(name=name, info=info):
            return f"{name}: {info}"
        case ConstantRef(key=key, info=info):
            return f"const({key!r}): {info}"
        case ScalarLiteral(value=value):
            return str(value)
        case Dims(dims=dims):
            return f"({', '.join(map(to_text, dims))})"


def disagreement(left: Info, right: Info, facts: Facts) -> str:
    """Describe how an annotation contradicts the expected one, ``right``; empty if it does not.

    An unknown part of one annotation agrees with every part of the other.

    Examples
    --------
    >>> from ..dtype import f32, i64
    >>> from ..symbolic import as_expr
    >>> a, b = (TensorInfo((as_expr(n),), t) for n, t in ((4, f32), (5, i64)))
    >>> disagreement(a, b, Facts())
    'expected dtype i64, got f32'
    """
    match left, right:
        case TensorInfo(), TensorInfo():
            if left.dtype != right.dtype:
                return f"expected dtype {right.dtype}, got {left.dtype}"
            return _shapes_differ(left.shape, right.shape, facts)
        case ShapeInfo(), ShapeInfo():
            return _shapes_differ(left.dims, right.dims, facts)
        case PrimInfo(), PrimInfo():
            same = left.dtype == right.dtype
            return "" if same else f"expected dtype {right.dtype}, got {left.dtype}"
        case TupleInfo(fields=a), TupleInfo(fields=b):
            if len(a) != len(b):
                return f"number of tuple fields: expected {len(b)}, got {len(a)}"
            parts = (disagreement(x, y, facts) for x, y in zip(a, b, strict=True))
            return next((p for p in parts if p), "")
        case _:
            message = f"expected {_kind(right)}, got {_kind(left)}"
            return "" if _compatible(left, right) else message


def _compatible(left: Info, right: Info) -> bool:
    kinds = {type(left), type(right)}
    return len(kinds) == 1 or "Object" in {_kind(left), _kind(right)}


def _kind(info: Info) -> str:
    return type(info).__name__.removesuffix("Info")


def bind_dims(formal: TensorInfo, actual: TensorInfo, bound: dict[Var, Expr]) -> None:
    """Bind each symbol that is itself a dimension of a parameter to the argument's dimension."""
    for dim, size in zip(formal.shape or (), actual.shape or (), strict=False):
        if isinstance(dim, Var):
            bound.setdefault(dim, size)


def rebound(info: TensorInfo, bound: Mapping[Var, Expr]) -> TensorInfo:
    """Rewrite a callee's annotation in the caller's symbols.

    The shape becomes unknown if some of its symbols are not bound.
    """
    if info.shape is None or any(d.free - bound.keys() for d in info.shape):
        return TensorInfo(None, info.dtype, info.device)
    values: dict[Var, SymInt] = dict(bound)
    return TensorInfo(tuple(substitute(d, values) for d in info.shape), info.dtype, info.device)
