"""Atomic operations on memory.

An update that LLVM has no instruction for, such as a product or a sum of 16-bit floats, is a loop:
load the element, compute the new value, and exchange it if no other thread changed the element.
"""

from __future__ import annotations

from typing import Final

from ...ir.thread.nodes import AtomicLoad, AtomicStore, AtomicUpdate, BinaryOp, CompareExchange
from ...ir.thread.types import PointerType, VectorType
from .arithmetic import binary
from .emitter import Emitter
from .types import type_name
from .values import evaluate, located, numeric, typed

_INTEGER: Final[dict[BinaryOp, str]] = {
    "add": "add", "sub": "sub", "and": "and", "or": "or", "xor": "xor",
}  # fmt: skip
_EXTREMES: Final[dict[BinaryOp, dict[str, str]]] = {
    "min": {"int": "min", "uint": "umin"},
    "max": {"int": "max", "uint": "umax"},
}


def update(em: Emitter, statement: AtomicUpdate) -> str:
    """Emit an atomic update; return the old value."""
    of = numeric(em, statement.value.type)
    where, operand = located(em, statement.address, None).typed, typed(em, statement.value)
    op = statement.op
    native = "xchg" if op == "exchange" else _instruction(op, of)
    if op == "exchange" or native is not None:
        return em.op(f"atomicrmw {native} {where}, {operand} {_order(em, statement)}")
    return _exchanged(em, statement, (op, of), where)


def _order(em: Emitter, statement: AtomicUpdate) -> str:
    """Return the scope and the ordering; the threads of one kernel need no other ordering."""
    if not statement.relaxed:
        return "seq_cst"
    return 'syncscope("device") monotonic' if em.function.launch is not None else "monotonic"


def _instruction(op: BinaryOp, of: VectorType) -> str | None:
    """Return the instruction of an update; None if it needs a loop."""
    dtype = of.dtype
    if dtype.bits < 32 or dtype.kind == "bool":
        return None
    if dtype.is_integer:
        return _INTEGER.get(op) or _EXTREMES.get(op, {}).get(dtype.kind)
    # The minimum and maximum of LLVM ignore NaN, where those of the program propagate it.
    return "fadd" if op == "add" else None


def _exchanged(
    em: Emitter, statement: AtomicUpdate, change: tuple[BinaryOp, VectorType], where: str
) -> str:
    """Emit a loop that exchanges the element for its new value; return the old value."""
    op, of = change
    bits = f"i{max(of.dtype.bits, 8)}"
    align = max(of.dtype.bits, 8) // 8
    operand = evaluate(em, statement.value)
    order = _order(em, statement)
    kind = order.rpartition(" ")[2]
    first = em.op(f"load atomic {bits}, {where} {order}, align {align}")
    before, head, after = em.block, em.label("retry"), em.label("updated")
    seen = em.name()
    em.line(f"br label %{head}")
    em.begin(head)
    patch = len(em.lines)
    em.line("")
    now = em.name()
    old = _value(em, now, bits, of)
    new = _bits(em, binary(em, op, old, operand, of), bits, of)
    both = em.op(f"cmpxchg {where}, {bits} {now}, {bits} {new} {order} {kind}")
    em.line(f"{seen} = extractvalue {{ {bits}, i1 }} {both}, 0")
    done = em.op(f"extractvalue {{ {bits}, i1 }} {both}, 1")
    last = em.block
    em.line(f"br i1 {done}, label %{after}, label %{head}")
    em.lines[patch] = f"{now} = phi {bits} [ {first}, %{before} ], [ {seen}, %{last} ]{em.location}"
    em.begin(after)
    return old


def _value(em: Emitter, raw: str, bits: str, of: VectorType) -> str:
    if of.dtype.kind == "bool":
        return em.op(f"icmp ne {bits} {raw}, 0")
    return em.op(f"bitcast {bits} {raw} to {type_name(of)}") if of.dtype.is_float else raw


def _bits(em: Emitter, value: str, bits: str, of: VectorType) -> str:
    if of.dtype.kind == "bool":
        return em.op(f"zext i1 {value} to {bits}")
    return em.op(f"bitcast {type_name(of)} {value} to {bits}") if of.dtype.is_float else value


def compare_exchange(em: Emitter, statement: CompareExchange) -> str:
    """Emit a compare-and-exchange; return the old value."""
    where = located(em, statement.address, None).typed
    pair = f"{typed(em, statement.expected)}, {typed(em, statement.desired)}"
    both = em.op(f"cmpxchg {where}, {pair} seq_cst seq_cst")
    kind = type_name(statement.expected.type)
    return em.op(f"extractvalue {{ {kind}, i1 }} {both}, 0")


def load(em: Emitter, statement: AtomicLoad) -> str:
    """Emit an atomic load; return the value."""
    where, of = located(em, statement.address, None).typed, statement.result.type
    align = numeric(em, of).width if isinstance(of, VectorType) else 8
    return em.op(f"load atomic {type_name(of)}, {where} acquire, align {align}")


def store(em: Emitter, statement: AtomicStore) -> None:
    """Emit an atomic store."""
    where, value = located(em, statement.address, None).typed, statement.value
    align = 8 if isinstance(value.type, PointerType) else numeric(em, value.type).width
    em.line(f"store atomic {typed(em, value)}, {where} release, align {align}")
