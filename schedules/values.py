"""What the fields of a step may hold, and how such values print."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ..ir.loop.nodes import IndexMap
from ..ir.symbolic import Bool, Expr, to_text
from .refs import REF_TYPES, Ref, label

Value: TypeAlias = (
    "bool | int | float | str | Expr | Bool | IndexMap | Ref | tuple[Value, ...] | None"
)


def value_text(value: Value, show_ref: Callable[[Ref], str] = label) -> str:
    """Print a field's value the way a person would write it in Python.

    Examples
    --------
    >>> from .refs import LoopRef
    >>> value_text((None, 8, LoopRef("main", 3, "i")))
    '(None, 8, i)'
    """
    if isinstance(value, REF_TYPES):
        return show_ref(value)
    if isinstance(value, IndexMap):
        return repr(index_map_text(value))
    if isinstance(value, Expr | Bool):
        return to_text(value)
    if isinstance(value, tuple):
        inner = ", ".join(value_text(v, show_ref) for v in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return repr(value)


def index_map_text(index_map: IndexMap) -> str:
    """Print a map of indices as a Python lambda.

    Examples
    --------
    >>> from ..ir.symbolic import var
    >>> k, n = var("k"), var("n")
    >>> index_map_text(IndexMap((k, n), (n // 32, k, n % 32)))
    'lambda k, n: (n // 32, k, n % 32)'
    """
    outputs = ", ".join(to_text(e) for e in index_map.outputs)
    closing = "," if len(index_map.outputs) == 1 else ""
    return f"lambda {', '.join(v.name for v in index_map.inputs)}: ({outputs}{closing})"
