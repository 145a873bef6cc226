"""Emission of thread-IR values as LLVM instructions."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from ...ir.symbolic import Expr
from ...ir.thread.index_width import scaled
from ...ir.thread.nodes import (
    Address,
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
    Select,
    Shuffle,
    Unary,
    Value,
)
from ...ir.thread.types import PointerType, Type, VectorType
from . import arithmetic, memory_access
from .casts import convert
from .emitter import REPORT, Emitter, UnboundVariableError
from .indices import Lane, condition, conditions, fits, integer, integers, shorts, spread
from .masks import merging_mask
from .memory_access import Pointer
from .types import constant, element_type, type_name, vector


class TypeMismatchError(UnboundVariableError):
    """A value in thread IR whose type does not match its use."""

    title = "Type mismatch"


def numeric(em: Emitter, of: Type) -> VectorType:
    """Return a numeric type; reject an address type."""
    if isinstance(of, VectorType):
        return of
    raise TypeMismatchError(
        f"expected a number, got an address of type {of}",
        where=f"function {em.function.name!r}",
        hint=REPORT,
    )


def evaluate(em: Emitter, value: Value) -> str:
    """Return the operand of a value, emitted once per statement."""
    found = em.memo.get(value)
    if found is None:
        found = _evaluate(em, value)
        em.memo[value] = found
    return found


def typed(em: Emitter, value: Value) -> str:
    """Return the type and the operand of a value."""
    return f"{type_name(value.type)} {evaluate(em, value)}"


def _evaluate(em: Emitter, value: Value) -> str:
    match value:
        case Reg():
            return _register(em, value)
        case Const(value=number, type=of):
            return constant(number, of)
        case Null():
            return "null"
        case Index(expr=expr, lane=lane, lanes=lanes):
            if lane is None:
                return spread(em, integer(em, expr), "i64", lanes)
            return integers(em, expr, Lane(lane, lanes))
        case Predicate(condition=claim, lane=lane, lanes=lanes):
            if lane is None:
                return spread(em, condition(em, claim), "i1", lanes)
            return conditions(em, claim, Lane(lane, lanes))
        case Data(name=name):
            em.module.data.setdefault(name, value)
            return f"@{name}"
        case FunctionAddress(name=name):
            em.module.declare(name, f"void @{name}()")
            return f"@{name}"
        case Offset(base=base, offset=offset):
            space = memory_access.space_of(em, base.type)
            return memory_access.pointer(em, evaluate(em, base), offset, space)
        case Load() | Gather():
            return _read(em, value)
        case _:
            return _compute(em, value)


def _register(em: Emitter, reg: Reg) -> str:
    if reg in em.fixed:
        return em.fixed[reg]
    if reg not in em.slots:
        raise UnboundVariableError(
            f"register {reg.name!r} is read but never assigned",
            where=f"function {em.function.name!r}",
            hint=REPORT,
        )
    return em.op(f"load {type_name(reg.type)}, ptr {em.slots[reg]}")


def optional(em: Emitter, value: Value | None) -> str | None:
    """Return the operand of a value, or None."""
    return None if value is None else evaluate(em, value)


def located(em: Emitter, address: Address, mask: Value | None) -> Pointer:
    """Return the pointer of an access."""
    bits, base = optional(em, mask), evaluate(em, address.base)
    space = memory_access.space_of(em, address.base.type)
    where = memory_access.pointer(em, base, address.offset, space)
    return Pointer(where, address.alignment, bits, space)


def scattered(
    em: Emitter, base: Value, offsets: Value, mask: Value | None, of: VectorType
) -> Pointer:
    """Return the pointers of elements at one offset per lane."""
    bits, space = optional(em, mask), memory_access.space_of(em, base.type)
    start = Pointer(evaluate(em, base), of.width, bits, space)
    if isinstance(offsets, Index) and offsets.lane is not None:
        found = scaled(offsets.expr)
        if fits(em, found.index):
            indices = shorts(em, found.index, Lane(offsets.lane, offsets.lanes))
            return memory_access.short_lane_addresses(em, start, indices, found.scale, of.lanes)
    return memory_access.lane_addresses(em, start, evaluate(em, offsets), of.lanes)


def _read(em: Emitter, value: Load | Gather) -> str:
    if isinstance(value, Gather):
        of = value.type
        return memory_access.gather(
            em, of, scattered(em, value.base, value.offsets, value.mask, of)
        )
    source = located(em, value.address, value.mask)
    if value.stride is None:
        return memory_access.load(em, value.type, source)
    of = numeric(em, value.type)
    return memory_access.gather(em, of, strided(em, source, value.stride, of))


def strided(em: Emitter, base: Pointer, stride: Expr, of: VectorType) -> Pointer:
    """Return the pointers of elements at multiples of ``stride`` bytes."""
    offsets = memory_access.strided_offsets(em, stride, of.lanes)
    lanes = memory_access.lane_addresses(em, base, offsets, of.lanes)
    return replace(lanes, alignment=of.width)


def _compute(
    em: Emitter,
    value: Unary
    | Binary
    | Fma
    | Compare
    | Select
    | Cast
    | Bitcast
    | Broadcast
    | Extract
    | Shuffle
    | Reduce,
) -> str:
    match value:
        case Unary(op=op, operand=x):
            return arithmetic.unary(em, op, evaluate(em, x), numeric(em, x.type))
        case Binary(op=op, left=x, right=y):
            of = numeric(em, x.type)
            return arithmetic.binary(em, op, evaluate(em, x), evaluate(em, y), of)
        case Fma(a=a, b=b, c=c, exact=exact):
            of = numeric(em, c.type)
            return arithmetic.fma(
                em, evaluate(em, a), evaluate(em, b), evaluate(em, c), of, exact=exact
            )
        case Compare(op=op, left=x, right=y):
            return _compare(em, value)
        case Select(condition=bit, then=x, otherwise=y):
            return _choose(em, bit, x, y)
        case Cast(type=of, operand=x):
            return convert(em, evaluate(em, x), numeric(em, x.type), of)
        case Bitcast():
            return _bitcast(em, value)
        case Broadcast(operand=x, lanes=lanes):
            of = numeric(em, x.type)
            if isinstance(x, Const):
                return constant(x.value, VectorType(of.dtype, lanes))
            return spread(em, evaluate(em, x), element_type(of.dtype), lanes)
        case Extract(operand=x, lane=lane):
            return em.op(f"extractelement {typed(em, x)}, i64 {lane}")
        case Shuffle(left=x, right=y, lanes=lanes):
            picked = ", ".join(f"i32 {k}" for k in lanes)
            pair = f"{typed(em, x)}, {typed(em, y)}"
            return em.op(f"shufflevector {pair}, {vector('i32', len(lanes))} <{picked}>")
        case Reduce(op=op, operand=x):
            return arithmetic.reduce_lanes(em, op, evaluate(em, x), numeric(em, x.type))
        case _:
            assert_never(value)


def _compare(em: Emitter, value: Compare) -> str:
    of = value.left.type
    x, y = evaluate(em, value.left), evaluate(em, value.right)
    if isinstance(of, PointerType):
        return em.op(f"icmp {value.op} {type_name(of)} {x}, {y}")
    return arithmetic.compare(em, value.op, x, y, of)


def _choose(em: Emitter, bit: Value, x: Value, y: Value) -> str:
    """Emit a select; one of products that are added becomes a masked instruction."""
    of = numeric(em, bit.type)
    chosen = evaluate(em, bit)
    if isinstance(x, Fma) and of.lanes > 1:
        chosen = merging_mask(em, chosen, of)
    kind = vector("i1", of.lanes) if of.lanes > 1 else "i1"
    return em.op(f"select {kind} {chosen}, {typed(em, x)}, {typed(em, y)}")


def _bitcast(em: Emitter, value: Bitcast) -> str:
    source, target = type_name(value.operand.type), type_name(value.type)
    operand = evaluate(em, value.operand)
    if source == target:
        return operand
    if isinstance(value.operand.type, PointerType):
        word = "addrspacecast" if isinstance(value.type, PointerType) else "ptrtoint"
        return em.op(f"{word} {source} {operand} to {target}")
    word = "inttoptr" if isinstance(value.type, PointerType) else "bitcast"
    return em.op(f"{word} {source} {operand} to {target}")
