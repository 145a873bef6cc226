"""Pairing of the stored value of a program with that of an instruction, operand by operand."""

from __future__ import annotations

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
    Ternary,
    Unary,
    Where,
)
from ...ir.loop.visit import operands
from ...ir.script import element_text
from .nest import COMMUTATIVE, Nest

ValueKind: TypeAlias = Literal["dtype", "access", "reduction"]

MOST_WAYS = 8
"""The largest number of operand orders that are compared completely."""

_COSTS = {"dtype": 1, "access": 4, "reduction": 4}


@dataclass(frozen=True, slots=True)
class ValueDifference:
    """A difference between two elements."""

    kind: ValueKind
    program: str
    pattern: str
    message: str


@dataclass(frozen=True, slots=True)
class Pairing:
    """Accesses of the program with their counterparts in the semantics, and the differences."""

    accesses: tuple[tuple[Load, Load], ...] = ()
    differences: tuple[ValueDifference, ...] = ()

    def __add__(self, other: Pairing) -> Pairing:
        """Return the union of two pairings."""
        return Pairing(
            self.accesses + other.accesses,
            tuple(dict.fromkeys(self.differences + other.differences)),
        )

    @property
    def cost(self) -> int:
        """The total weight of the differences."""
        return sum(_COSTS[d.kind] for d in self.differences)


def pair_values(program: Nest, pattern: Nest) -> tuple[Pairing, ...]:
    """Return the pairings of the stores of two nests with the least cost, at least one.

    Operands of commutative operations are compared in all orders. An update ``own op value`` is
    paired with an update.
    """
    start = Pairing(((_written(program), _written(pattern)),))
    own, wanted = program.update, pattern.update
    if wanted is None:
        ways = _pair(program.store.value, pattern.store.value)
    elif own is None:
        shown = element_text(program.store.value), element_text(pattern.store.value)
        message = (
            f"the program overwrites the result with {shown[0]}; the instruction updates it: "
            f"{shown[1]}"
        )
        start = start + _found("reduction", shown, message)
        ways = _pair(program.store.value, wanted.right)
    else:
        ways = _pair(own.right, wanted.right)
        if own.op != wanted.op:
            shown = element_text(program.store.value), element_text(pattern.store.value)
            message = f"the program reduces with {own.op!r}, the instruction with {wanted.op!r}"
            start = start + _found("reduction", shown, message)
    return tuple(start + way for way in ways)


def _found(kind: ValueKind, texts: tuple[str, str], message: str) -> Pairing:
    return Pairing((), (ValueDifference(kind, *texts, message),))


def _written(nest: Nest) -> Load:
    return Load(nest.store.buffer, nest.store.indices)


def _different(program: Element, pattern: Element) -> tuple[Pairing, ...]:
    left, right = element_text(program), element_text(pattern)
    message = f"the program computes {left}, the instruction computes {right}"
    return (_found("access", (left, right), message),)


def _pair(program: Element, pattern: Element) -> tuple[Pairing, ...]:
    """Return the pairings of two elements with the least cost."""
    match program, pattern:
        case Load(), Load():
            return (Pairing(((program, pattern),)),)
        case Cast(), Cast() if program.dtype == pattern.dtype:
            return _pair(program.operand, pattern.operand)
        case Cast(), Cast():
            return _converted(program, pattern, _pair(program.operand, pattern.operand))
        case Cast(operand=inner), _:
            return _converted(program, pattern, _pair(inner, pattern))
        case _, Cast(operand=inner):
            return _converted(program, pattern, _pair(program, inner))
        case Number(), Number():
            return (Pairing(),) if program == pattern else _different(program, pattern)
        case _ if _same_operation(program, pattern):
            return _orders(program, pattern)
        case _:
            return _different(program, pattern)


def _converted(
    program: Element, pattern: Element, ways: tuple[Pairing, ...]
) -> tuple[Pairing, ...]:
    texts = element_text(program), element_text(pattern)
    message = (
        f"the program computes {texts[0]} in {program.dtype}, the instruction computes {texts[1]} "
        f"in {pattern.dtype}"
    )
    return tuple(way + _found("dtype", texts, message) for way in ways)


def _same_operation(program: Element, pattern: Element) -> bool:
    match program, pattern:
        case (
            (Binary(op=one), Binary(op=other))
            | (Unary(op=one), Unary(op=other))
            | (Ternary(op=one), Ternary(op=other))
            | (Compare(op=one), Compare(op=other))
        ):
            return one == other
        case Where(), Where():
            return True
        case (Index(), Index()) | (Condition(), Condition()):
            return program == pattern
        case _:
            return False


def _orders(program: Element, pattern: Element) -> tuple[Pairing, ...]:
    """Return the pairings of the operands, in both orders if the operation commutes."""
    given, wanted = operands(program), operands(pattern)
    ways = _all(given, wanted)
    if isinstance(program, Binary) and program.op in COMMUTATIVE:
        ways += _all(given[::-1], wanted)
    least = min(way.cost for way in ways)
    return tuple(dict.fromkeys(way for way in ways if way.cost == least))[:MOST_WAYS]


def _all(given: tuple[Element, ...], wanted: tuple[Element, ...]) -> tuple[Pairing, ...]:
    ways: tuple[Pairing, ...] = (Pairing(),)
    for one, other in zip(given, wanted, strict=True):
        found = _pair(one, other)
        ways = tuple(way + more for way in ways for more in found)[:MOST_WAYS]
    return ways
