"""Integers read from memory and bound to symbols: proved, checked or clamped ranges."""

from __future__ import annotations

from hashlib import sha256

from ....ir.dtype import i32
from ....ir.loop import nodes as loop
from ....ir.symbolic import all_of, as_expr, negate
from ....ir.thread.nodes import (
    POINTER,
    Address,
    Assign,
    Binary,
    Call,
    Const,
    Data,
    If,
    Index,
    Let,
    Load,
    Predicate,
    Reg,
    Return,
    Stmt,
    Value,
    VectorType,
)
from ....ir.thread.table import CODE_RANGE, CONTEXT, ERROR
from .context import Context
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


def fail(
    table: Reg, code: int, text: str, numbers: tuple[Value, Value], context: Context
) -> tuple[Stmt, ...]:
    """Report an error through the runtime table and leave with its code."""
    handler, owner = Reg("report", POINTER), Reg("owner", POINTER)
    source = context.source
    number = Const(code, VectorType(i32))
    message = Data(f"text.{_hash(text)}", text.encode() + b"\0")
    return (
        Assign(handler, Load(POINTER, Address(table, as_expr(ERROR), 8)), source),
        Assign(owner, Load(POINTER, Address(table, as_expr(CONTEXT), 8)), source),
        Call(handler, (owner, number, message, *numbers), None, source),
        Return(number, source),
    )


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:12]
