"""Checks of indices before accesses: those without a proof, or all of them in debug mode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeAlias

from ....ir.dtype import i32, i64
from ....ir.loop import nodes as loop
from ....ir.loop.visit import loads, stores
from ....ir.symbolic import TRUE, Bool, Expr, all_of, as_expr, negate, to_text
from ....ir.thread.nodes import (
    Address,
    Assign,
    Binary,
    Call,
    Const,
    Data,
    If,
    Index,
    Load,
    Predicate,
    Reduce,
    Reg,
    Return,
    Select,
    Stmt,
    Value,
)
from ....ir.thread.runtime_table import CODE_BOUNDS, CONTEXT, ERROR
from ....ir.thread.types import POINTER, VectorType
from .context import LoweringContext

Fail: TypeAlias = Callable[[int, str, tuple[Value, Value], LoweringContext], tuple[Stmt, ...]]
"""The statements that report an error with a code, a message, and two numbers."""

Access: TypeAlias = tuple[loop.Buffer, tuple[Expr, ...]]
"""A buffer and the indices of an access to it."""


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


@dataclass(frozen=True, slots=True)
class AccessChecks:
    """The accesses whose indices are checked before they run.

    Parameters
    ----------
    fail : callable
        Returns the statements that report an error and end the kernel.
    accesses : frozenset of tuple or None
        The buffers and indices of the checked accesses; None for all accesses.
    """

    fail: Fail
    accesses: frozenset[Access] | None = None

    def covers(self, buffer: loop.Buffer, indices: tuple[Expr, ...]) -> bool:
        """Return whether an access is checked."""
        return self.accesses is None or (buffer, indices) in self.accesses

    def inside(self, statement: loop.Stmt) -> bool:
        """Return whether any access in a statement is checked."""
        if self.accesses is None or not self.accesses:
            return self.accesses is None
        accesses = (*loads(statement), *stores(statement))
        return any(self.covers(x.buffer, x.indices) for x in accesses)

    def before(
        self,
        buffer: loop.Buffer,
        indices: tuple[Expr, ...],
        context: LoweringContext,
        mask: Value | None,
    ) -> list[Stmt]:
        """Return the checks of an access against the shape of its buffer.

        The check of a vector access compares all lanes; ``mask`` selects those that run.
        """
        checks: list[Stmt] = []
        for axis, (raw, dim) in enumerate(zip(indices, buffer.shape, strict=True)):
            index, extent = context.term(raw), context.term(dim)
            inside = context.assumptions.decide(all_of(index >= 0, index < extent))
            if inside is TRUE:
                continue
            listed = ", ".join(map(to_text, indices))
            block = f" in block {context.source.name!r}" if context.source.name else ""
            text = f"{buffer.name}: index of axis {axis} is out of bounds{block}, "
            text += f"in {buffer.name}[{listed}]{context.line(f'{buffer.name}[')}"
            found, value = _lanes_outside(negate(inside), index, context, mask)
            failing = self.fail(CODE_BOUNDS, text, (value, Index(extent)), context)
            checks.append(If(found, failing, (), context.source))
        return checks


def _lanes_outside(
    outside: Bool, index: Expr, context: LoweringContext, mask: Value | None
) -> tuple[Value, Value]:
    """Return whether any lane that runs is outside, and the smallest index outside."""
    lanes = context.lanes
    if lanes is None or not context.varies(outside):
        claim = Predicate(outside)
        return claim if mask is None else Binary("and", claim, Reduce("or", mask)), Index(index)
    bad: Value = Predicate(outside, lanes.var, lanes.count)
    bad = bad if mask is None else Binary("and", bad, mask)
    most = Const((1 << 63) - 1, VectorType(i64, lanes.count))
    each = Select(bad, Index(index, lanes.var, lanes.count), most)
    return Reduce("or", bad), Reduce("min", each)
