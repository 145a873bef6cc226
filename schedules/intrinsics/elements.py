"""Pair the value that a program computes with the one of an instruction, part by part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ...ir.loop.nodes import (
    Binary,
    Cast,
    Compare,
    Condition,
    Element,
    Index,
    Load,
    Number,
    Unary,
    Where,
)
from ...ir.loop.visit import operands
from ...ir.script import element_text
from .nest import COMMUTATIVE, Nest

ValueKind: TypeAlias = Literal["dtype", "access", "reduction"]

_COSTS = {"dtype": 1, "access": 4, "reduction": 4}


@dataclass(frozen=True, slots=True)
class ValueDifference:
    """Two elements that compute different things."""

    kind: ValueKind
    program: str
    pattern: str
    message: str


@dataclass(frozen=True, slots=True)
class Pairing:
    """Accesses of the program with those of the semantics that they are, and what differs."""

    accesses: tuple[tuple[Load, Load], ...] = ()
    differences: tuple[ValueDifference, ...] = ()

    def __add__(self, other: Pairing) -> Pairing:
        """Join two parts."""
        return Pairing(
            self.accesses + other.accesses,
            tuple(dict.fromkeys(self.differences + other.differences)),
        )

    @property
    def cost(self) -> int:
        """How bad the differences are together."""
        return sum(_COSTS[d.kind] for d in self.differences)


def pair_values(program: Nest, pattern: Nest) -> Pairing:
    """Pair what two nests store, and where.

    An update ``own op value`` is paired with an update, operands in either order.
    """
    target = _place(program), _place(pattern)
    start = Pairing((target,))
    own, wanted = program.update, pattern.update
    if wanted is None:
        if own is not None and pattern.store.value != own:
            return start + _different("reduction", program.store.value, pattern.store.value)
        return start + _pair(program.store.value, pattern.store.value)
    if own is None:
        shown = element_text(pattern.store.value)
        message = (
            f"{element_text(program.store.value)} is stored once for each iteration, where the "
            f"instruction adds to what is there: {shown}"
        )
        found = ValueDifference("reduction", element_text(program.store.value), shown, message)
        return start + _pair(program.store.value, wanted.right) + Pairing((), (found,))
    inner = start + _pair(own.right, wanted.right)
    if own.op != wanted.op:
        message = f"results are combined by {own.op!r}, in the instruction by {wanted.op!r}"
        texts = element_text(program.store.value), element_text(pattern.store.value)
        inner = inner + Pairing((), (ValueDifference("reduction", *texts, message),))
    return inner


def _place(nest: Nest) -> Load:
    return Load(nest.store.buffer, nest.store.indices)


def _different(kind: ValueKind, program: Element, pattern: Element) -> Pairing:
    left, right = element_text(program), element_text(pattern)
    message = f"{left} is computed where the instruction has {right}"
    return Pairing((), (ValueDifference(kind, left, right, message),))


def _pair(program: Element, pattern: Element) -> Pairing:
    match program, pattern:
        case Load(), Load():
            return Pairing(((program, pattern),))
        case Cast(), Cast() if program.dtype == pattern.dtype:
            return _pair(program.operand, pattern.operand)
        case Cast(), Cast():
            return _dtypes(program, pattern) + _pair(program.operand, pattern.operand)
        case Cast(operand=inner), _:
            return _dtypes(program, pattern) + _pair(inner, pattern)
        case _, Cast(operand=inner):
            return _dtypes(program, pattern) + _pair(program, inner)
        case Number(), Number():
            return Pairing() if program == pattern else _different("access", program, pattern)
        case _ if _same_operation(program, pattern):
            return min(_orders(program, pattern), key=lambda p: p.cost)
        case _:
            return _different("access", program, pattern)


def _same_operation(program: Element, pattern: Element) -> bool:
    match program, pattern:
        case (
            (Binary(op=one), Binary(op=other))
            | (Unary(op=one), Unary(op=other))
            | (Compare(op=one), Compare(op=other))
        ):
            return one == other
        case Where(), Where():
            return True
        case (Index(), Index()) | (Condition(), Condition()):
            return program == pattern
        case _:
            return False


def _orders(program: Element, pattern: Element) -> Iterator[Pairing]:
    """Pair the operands in their order, and exchanged where the operation commutes."""
    given, wanted = operands(program), operands(pattern)
    yield _all(given, wanted)
    if isinstance(program, Binary) and program.op in COMMUTATIVE:
        yield _all(given[::-1], wanted)


def _all(given: tuple[Element, ...], wanted: tuple[Element, ...]) -> Pairing:
    joined = Pairing()
    for one, other in zip(given, wanted, strict=True):
        joined = joined + _pair(one, other)
    return joined


def _dtypes(program: Element, pattern: Element) -> Pairing:
    left, right = element_text(program), element_text(pattern)
    message = f"{left} of {program.dtype} is computed where the instruction has {right} of "
    return Pairing((), (ValueDifference("dtype", left, right, f"{message}{pattern.dtype}"),))
