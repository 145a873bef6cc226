"""Replacement of values in thread-level statements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

from .nodes import (
    Address,
    Assign,
    Binary,
    Bitcast,
    Broadcast,
    Cast,
    Compare,
    Const,
    Data,
    Extract,
    Fma,
    FunctionAddress,
    Gather,
    Index,
    Load,
    Null,
    Offset,
    Predicate,
    Reduce,
    Reg,
    Scatter,
    Select,
    Shuffle,
    Store,
    Unary,
    Value,
)


class ValueRewriter:
    """Replaces values and operands of values; each object is rewritten once.

    Parameters
    ----------
    change : callable
        Returns the replacement of a value, given the value and its form with rewritten operands.
    """

    def __init__(self, change: Callable[[Value, Value], Value]) -> None:
        """Start without results."""
        self._change = change
        self._made: dict[Value, Value] = {}

    def value(self, value: Value) -> Value:
        """Return the rewritten value."""
        found = self._made.get(value)
        if found is None:
            found = self._made[value] = self._change(value, self._with_operands(value))
        return found

    def statement(self, statement: Assign | Store | Scatter) -> Assign | Store | Scatter:
        """Return a statement with rewritten values."""
        match statement:
            case Assign(value=value):
                return replace(statement, value=self.value(value))
            case Store(value=value, mask=mask):
                return replace(statement, value=self.value(value), mask=self._optional(mask))
            case Scatter(offsets=offsets, value=value, mask=mask):
                return replace(
                    statement,
                    offsets=self.value(offsets),
                    value=self.value(value),
                    mask=self._optional(mask),
                )

    def _optional(self, value: Value | None) -> Value | None:
        return None if value is None else self.value(value)

    def _address(self, address: Address) -> Address:
        base = self.value(address.base)
        return address if base is address.base else replace(address, base=base)

    def _with_operands(self, value: Value) -> Value:
        of = self.value
        match value:
            case Reg() | Const() | Null() | Index() | Predicate() | Data() | FunctionAddress():
                return value
            case Offset(base=base):
                return replace(value, base=of(base))
            case Load(address=address, mask=mask):
                return replace(value, address=self._address(address), mask=self._optional(mask))
            case Gather(base=base, offsets=offsets, mask=mask):
                return replace(value, base=of(base), offsets=of(offsets), mask=self._optional(mask))
            case Unary() | Cast() | Bitcast() | Broadcast() | Extract() | Reduce():
                return replace(value, operand=of(value.operand))
            case Binary() | Compare() | Shuffle():
                return replace(value, left=of(value.left), right=of(value.right))
            case Fma(a=a, b=b, c=c):
                return replace(value, a=of(a), b=of(b), c=of(c))
            case Select(condition=condition, then=then, otherwise=otherwise):
                return replace(
                    value, condition=of(condition), then=of(then), otherwise=of(otherwise)
                )
            case _:
                assert_never(value)
