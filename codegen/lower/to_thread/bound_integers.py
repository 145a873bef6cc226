"""Integers read from memory and bound to symbols, with proved, checked, or clamped ranges."""

from __future__ import annotations

from ....ir.dtype import u64
from ....ir.loop import nodes as loop
from ....ir.symbolic import all_of, negate, select, to_text, var
from ....ir.thread.nodes import Binary, If, Index, Let, Predicate, Stmt
from ....ir.thread.runtime_table import CODE_RANGE, CODE_RANGE_UNSIGNED
from .bounds_checks import Fail
from .context import LoweringContext
from .element_values import Elements, as_index


def bind_integer(
    let: loop.Let, elements: Elements, fail: Fail
) -> tuple[list[Stmt], LoweringContext]:
    """Read an integer, clamp or check it, and bind the symbol.

    An unrolled loop binds the symbol once per copy, so each copy has its own symbol.
    """
    context = elements.context
    value = as_index(elements.value(let.load))
    lower, upper = context.term(let.lower), context.term(let.upper)
    limits = lower, upper
    source, name = context.source, let.var.name
    bound = var(name, lower=let.var.lower, upper=let.var.upper)
    inner = context.binding(let.var, bound)
    # The raw integer must not have the bounds of the symbol, since these are checked here.
    raw = var(name)
    unsigned = let.load.buffer.dtype is u64  # 2**63 or more is negative as an index
    if let.mode == "clamped":
        before = [Let(raw, value, source)] if unsigned else []
        value = Index(select(raw < 0, upper - 1, raw)) if unsigned else value
        value = Binary("max", Binary("min", value, Index(upper - 1)), Index(lower))
        return [*before, Let(bound, value, source, limits)], inner
    if let.mode != "checked":
        return [Let(bound, value, source, limits)], inner
    inside = context.assumptions.decide(all_of(lower <= raw, raw < upper))
    where = _location(let, context)
    text = f"{let.load.buffer.name}: integer read from memory is out of range{where}"
    numbers = (Index(raw), Index(select(raw < lower, lower, upper)))
    checks = [If(Predicate(negate(inside)), fail(CODE_RANGE, text, numbers, context), (), source)]
    if unsigned:
        large = fail(CODE_RANGE_UNSIGNED, text, (Index(raw), Index(upper)), context)
        checks.insert(0, If(Predicate(raw < 0), large, (), source))
    return [Let(raw, value, source), *checks, Let(bound, Index(raw), source, limits)], inner


def _location(let: loop.Let, context: LoweringContext) -> str:
    """Return the block, statement, and line that read an integer, as a part of a message."""
    block = f" in block {context.source.name!r}" if context.source.name else ""
    indices = ", ".join(map(to_text, let.load.indices)) or "()"
    limits = f"{to_text(let.lower)}, {to_text(let.upper)}"
    access = f"checked({let.load.buffer.name}["
    return f"{block}, in {access}{indices}], {limits}){context.line(access)}"
