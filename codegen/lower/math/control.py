"""Control flow around values: registers, and code that runs only if a lane needs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ....ir.thread.nodes import (
    NO_SOURCE,
    Assign,
    If,
    Reduce,
    Reg,
    Source,
    Stmt,
    Value,
    While,
)
from .number import Num


@dataclass(frozen=True, slots=True)
class Code:
    """The statements that run before a value is used.

    Parameters
    ----------
    before : list of Stmt
        The list that statements are appended to.
    source : Source
        The origin of the statements.
    native : frozenset of str
        The functions of floats that the target computes with its own functions.
    """

    before: list[Stmt]
    source: Source = NO_SOURCE
    native: frozenset[str] = frozenset()

    def keep(self, name: str, x: Num) -> Num:
        """Assign a number to a new register, so that several statements compute it once."""
        reg = Reg(name, x.type)
        self.assign(reg, x)
        return Num(reg, x.type)

    def assign(self, reg: Reg, x: Num) -> None:
        """Assign a number to a register."""
        self.before.append(Assign(reg, x.value, self.source))

    def replace_if_any(
        self, lanes: Value, name: str, x: Num, compute: Callable[[Code], Num]
    ) -> Num:
        """Return ``x``, or ``compute(...)`` in the given lanes; it runs only if there are any."""
        (found,) = self.replace_all_if_any(lanes, (name,), (x,), lambda code: (compute(code),))
        return found

    def replace_all_if_any(
        self,
        lanes: Value,
        names: tuple[str, ...],
        numbers: tuple[Num, ...],
        compute: Callable[[Code], tuple[Num, ...]],
    ) -> tuple[Num, ...]:
        """Replace several numbers in the given lanes; the code runs only if there are any."""
        regs = [Reg(name, x.type) for name, x in zip(names, numbers, strict=True)]
        current = tuple(Num(r, x.type) for r, x in zip(regs, numbers, strict=True))
        for reg, x in zip(regs, numbers, strict=True):
            self.assign(reg, x)
        inner = Code([], self.source)
        for reg, old, new in zip(regs, current, compute(inner), strict=True):
            inner.assign(reg, new.where(lanes, old))
        self.before.append(If(_any(lanes), tuple(inner.before), (), self.source))
        return current

    def repeat(
        self, name: str, x: Num, lanes: Callable[[Num], Value], compute: Callable[[Code, Num], Num]
    ) -> Num:
        """Replace ``x`` by ``compute(..., x)`` in the given lanes until there are none."""
        reg = Reg(name, x.type)
        self.assign(reg, x)
        current = Num(reg, x.type)
        inner = Code([], self.source)
        found = compute(inner, current)
        inner.assign(reg, found.where(lanes(current), current))
        self.before.append(While(_any(lanes(current)), tuple(inner.before), self.source))
        return current


def _any(lanes: Value) -> Value:
    return Reduce("or", lanes)
