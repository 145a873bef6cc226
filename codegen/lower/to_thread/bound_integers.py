"""Integers read from memory and bound to symbols, with proved, checked, or clamped ranges."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ....ir.loop import nodes as loop
from ....ir.symbolic import all_of, negate, var
from ....ir.thread.nodes import Binary, If, Index, Let, Predicate, Stmt, Value
from ....ir.thread.runtime_table import CODE_RANGE
from .context import LoweringContext
from .element_values import Elements, as_index

Fail: TypeAlias = Callable[[int, str, tuple[Value, Value], LoweringContext], tuple[Stmt, ...]]
"""The statements that report an error with a code, a message, and two numbers."""


def bind_integer(
    let: loop.Let, elements: Elements, fail: Fail
) -> tuple[list[Stmt], LoweringContext]:
    """Read an integer, clamp or check it, and bind the symbol.

    An unrolled loop binds the symbol once per copy, so each copy has its own symbol.
    """
    context = elements.context
    value = as_index(elements.value(let.load))
    lower, upper = context.term(let.lower), context.term(let.upper)
    source, name = context.source, let.var.name
    bound = var(name, lower=let.var.lower, upper=let.var.upper)
    inner = context.binding(let.var, bound)
    if let.mode == "clamped":
        value = Binary("max", Binary("min", value, Index(upper - 1)), Index(lower))
    if let.mode != "checked":
        return [Let(bound, value, source)], inner
    # The raw integer must not have the bounds of the symbol, since these are checked here.
    raw = var(name)
    inside = context.assumptions.decide(all_of(lower <= raw, raw < upper))
    text = f"{let.load.buffer.name}: integer read from memory is out of range"
    failing = fail(CODE_RANGE, text, (Index(raw), Index(upper)), context)
    check = If(Predicate(negate(inside)), failing, (), source)
    return [Let(raw, value, source), check, Let(bound, Index(raw), source)], inner
