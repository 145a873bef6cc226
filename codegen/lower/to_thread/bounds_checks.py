"""Bounds checks of debug mode: every access is checked, and the first invalid one is reported."""

from __future__ import annotations

from hashlib import sha256

from ....ir.dtype import i32
from ....ir.loop import nodes as loop
from ....ir.symbolic import TRUE, Expr, all_of, as_expr, negate
from ....ir.thread.nodes import (
    Address,
    Assign,
    Call,
    Const,
    Data,
    If,
    Index,
    Load,
    Predicate,
    Reg,
    Return,
    Stmt,
    Value,
)
from ....ir.thread.runtime_table import CODE_BOUNDS, CONTEXT, ERROR
from ....ir.thread.types import POINTER, VectorType
from .context import LoweringContext


def fail(
    table: Reg, code: int, text: str, numbers: tuple[Value, Value], context: LoweringContext
) -> tuple[Stmt, ...]:
    """Return statements that report an error to the runtime table and return its code."""
    handler, owner = Reg("report", POINTER), Reg("owner", POINTER)
    source = context.source
    number = Const(code, VectorType(i32))
    message = Data(f"text.{sha256(text.encode()).hexdigest()[:12]}", text.encode() + b"\0")
    return (
        Assign(handler, Load(POINTER, Address(table, as_expr(ERROR), 8)), source),
        Assign(owner, Load(POINTER, Address(table, as_expr(CONTEXT), 8)), source),
        Call(handler, (owner, number, message, *numbers), None, source),
        Return(number, source),
    )


def check_access(
    table: Reg, buffer: loop.Buffer, indices: tuple[Expr, ...], context: LoweringContext
) -> list[Stmt]:
    """Return checks of the indices of a scalar access against the shape of its buffer."""
    checks: list[Stmt] = []
    for axis, (raw, dim) in enumerate(zip(indices, buffer.shape, strict=True)):
        index, extent = context.term(raw), context.term(dim)
        inside = context.assumptions.decide(all_of(index >= 0, index < extent))
        if inside is TRUE:
            continue
        block = f" in block {context.source.name}" if context.source.name else ""
        text = f"{buffer.name}: index of axis {axis} is out of bounds{block}"
        failing = fail(table, CODE_BOUNDS, text, (Index(index), Index(extent)), context)
        checks.append(If(Predicate(negate(inside)), failing, (), context.source))
    return checks
