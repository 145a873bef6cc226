"""Integers read from memory and bound to symbols: proved, checked or clamped ranges."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ....ir.loop import nodes as loop
from ....ir.symbolic import all_of, negate, var
from ....ir.thread.nodes import Binary, If, Index, Let, Predicate, Stmt, Value
from ....ir.thread.table import CODE_RANGE
from .context import Context
from .elements import Elements, as_index

Fail: TypeAlias = Callable[[int, str, tuple[Value, Value], Context], tuple[Stmt, ...]]
"""Writes what a kernel does about a mistake: its code, what it says, and two numbers."""


def bind_integer(let: loop.Let, elements: Elements, fail: Fail) -> tuple[list[Stmt], Context]:
    """Read the integer, bring it into its range or check it, and bind the symbol.

    A loop that is unrolled binds the symbol once a copy, so each copy gets a symbol of its own.
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
    # The symbol's own bounds are what is to be checked: the raw integer must not have them.
    raw = var(name)
    inside = context.known.decide(all_of(lower <= raw, raw < upper))
    text = f"{let.load.buffer.name}: integer read from memory is outside of its range"
    failing = fail(CODE_RANGE, text, (Index(raw), Index(upper)), context)
    check = If(Predicate(negate(inside)), failing, (), source)
    return [Let(raw, value, source), check, Let(bound, Index(raw), source)], inner
