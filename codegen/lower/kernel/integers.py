"""Integers read from memory and bound to symbols: proved, checked or clamped ranges."""

from __future__ import annotations

from ....ir.loop import nodes as loop
from ....ir.symbolic import all_of, negate
from ....ir.thread.nodes import Binary, If, Index, Let, Predicate, Reg, Stmt
from ....ir.thread.table import CODE_RANGE
from .bounds import fail
from .elements import Elements, as_index


def bind_integer(let: loop.Let, elements: Elements, table: Reg) -> list[Stmt]:
    """Read the integer, bring it into its range or check it, and bind the symbol."""
    context = elements.context
    raw = as_index(elements.value(let.load))
    lower, upper = context.term(let.lower), context.term(let.upper)
    source = context.source
    if let.mode == "clamped":
        raw = Binary("max", Binary("min", raw, Index(upper - 1)), Index(lower))
    bound: list[Stmt] = [Let(let.var, raw, source)]
    if let.mode == "checked":
        inside = context.known.decide(all_of(lower <= let.var, let.var < upper))
        name = f"{let.load.buffer.name}: integer read from memory outside its range"
        failing = fail(table, CODE_RANGE, name, (Index(let.var), Index(upper)), context)
        bound.append(If(Predicate(negate(inside)), failing, (), source))
    return bound
