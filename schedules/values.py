"""Values of the fields of steps, and their text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self, TypeAlias

from ..ir.loop.nodes import IndexMap
from ..ir.symbolic import Bool, Expr, to_text
from .handles import HANDLE_TYPES, Handle, label

Value: TypeAlias = (
    "bool | int | float | str | Expr | Bool | IndexMap | Handle | tuple[Value, ...] | None"
)

Result: TypeAlias = "Handle | int | Expr"
"""A result of a step, which later steps may use: a part of the program, or a value."""


class StepInt(int):
    """An integer that a step returned; a later step that uses it refers to that step.

    It behaves as an ``int``, and the result of an operation on it is a plain one.

    Parameters
    ----------
    value : int
        The integer.
    step : int
        The number of the step in the trace.
    index : int
        The position among its results.
    """

    step: int
    index: int

    def __new__(cls, value: int, step: int, index: int) -> Self:
        """Return an integer with its origin."""
        made = super().__new__(cls, value)
        made.step, made.index = step, index
        return made

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        """Return the plain integer: a copy belongs to no trace."""
        return int, (int(self),)


def plain(value: Value) -> Value:
    """Return a value with plain integers in place of those that steps returned."""
    if isinstance(value, StepInt):
        return int(value)
    if isinstance(value, tuple) and any(isinstance(item, StepInt | tuple) for item in value):
        return tuple(plain(item) for item in value)
    return value


def value_text(value: Value, show_handle: Callable[[Handle], str] = label) -> str:
    """Return a field's value as Python text.

    Examples
    --------
    >>> from .handles import LoopRef
    >>> value_text((None, 8, LoopRef("main", 3, "i")))
    '(None, 8, i)'
    """
    if isinstance(value, HANDLE_TYPES):
        return show_handle(value)
    if isinstance(value, IndexMap):
        return repr(index_map_text(value))
    if isinstance(value, Expr | Bool):
        return to_text(value)
    if isinstance(value, tuple):
        inner = ", ".join(value_text(v, show_handle) for v in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return repr(value)


def index_map_text(index_map: IndexMap) -> str:
    """Return an index map as the text of a Python lambda.

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
