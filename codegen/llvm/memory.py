"""Reads and writes: contiguous, strided, gathered, scattered, masked."""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.symbolic import Const, Expr, const_value
from ...ir.thread.types import PointerType, Type, VectorType
from .emitter import Emitter
from .indices import integer, spread
from .types import iota, mangled, memory_type, splat, type_name, vector


def pointer(em: Emitter, base: str, offset: Expr) -> str:
    """Move an address by bytes."""
    if const_value(offset) == 0:
        return base
    return em.op(f"getelementptr i8, ptr {base}, i64 {integer(em, offset)}")


def _from_memory(em: Emitter, raw: str, of: Type) -> str:
    """Turn bytes into truth values; everything else is held the same way."""
    if isinstance(of, PointerType) or of.dtype.kind != "bool":
        return raw
    return em.op(f"icmp ne {memory_type(of)} {raw}, {splat('0', 'i8', of.lanes)}")


def _to_memory(em: Emitter, operand: str, of: Type) -> str:
    if isinstance(of, PointerType) or of.dtype.kind != "bool":
        return operand
    return em.op(f"zext {type_name(of)} {operand} to {memory_type(of)}")


def _memory_mangled(of: VectorType) -> str:
    if of.dtype.kind == "bool":
        return "i8" if of.lanes == 1 else f"v{of.lanes}i8"
    return mangled(of)


@dataclass(frozen=True, slots=True)
class Place:
    """Operands of an access: address (or one a lane), known alignment, and mask."""

    where: str
    alignment: int
    mask: str | None = None


# ---------------------------------------------------------------- contiguous


def load(em: Emitter, of: Type, place: Place) -> str:
    """Read contiguous elements."""
    kind, align, where = memory_type(of), place.alignment, place.where
    if place.mask is None or isinstance(of, PointerType):
        return _from_memory(em, em.op(f"load {kind}, ptr {where}, align {align}"), of)
    full = f"llvm.masked.load.{_memory_mangled(of)}.p0"
    bits = vector("i1", of.lanes)
    em.module.declare(full, f"{kind} @{full}(ptr, i32, {bits}, {kind})")
    args = f"ptr {where}, i32 {align}, {bits} {place.mask}, {kind} zeroinitializer"
    return _from_memory(em, em.op(f"call {kind} @{full}({args})"), of)


def store(em: Emitter, of: Type, place: Place, operand: str) -> None:
    """Write contiguous elements."""
    kind, align, where = memory_type(of), place.alignment, place.where
    raw = _to_memory(em, operand, of)
    if place.mask is None or isinstance(of, PointerType):
        em.line(f"store {kind} {raw}, ptr {where}, align {align}")
        return
    full = f"llvm.masked.store.{_memory_mangled(of)}.p0"
    bits = vector("i1", of.lanes)
    em.module.declare(full, f"void @{full}({kind}, ptr, i32, {bits})")
    em.line(f"call void @{full}({kind} {raw}, ptr {where}, i32 {align}, {bits} {place.mask})")


# ---------------------------------------------------------------- scattered


def lane_addresses(em: Emitter, base: str, offsets: str, lanes: int) -> str:
    """Move an address by bytes, another number in every lane."""
    return em.op(f"getelementptr i8, ptr {base}, {vector('i64', lanes)} {offsets}")


def strided_offsets(em: Emitter, stride: Expr, lanes: int) -> str:
    """Give the byte offset of every lane from the first."""
    if isinstance(stride, Const):
        return "<" + ", ".join(f"i64 {k * stride.value}" for k in range(lanes)) + ">"
    step = spread(em, integer(em, stride), "i64", lanes)
    return em.op(f"mul nsw {vector('i64', lanes)} {step}, {iota(lanes)}")


def gather(em: Emitter, of: VectorType, place: Place) -> str:
    """Read one element a lane."""
    lanes = of.lanes
    kind, pointers, bits = memory_type(of), vector("ptr", lanes), vector("i1", lanes)
    full = f"llvm.masked.gather.{_memory_mangled(of)}.v{lanes}p0"
    em.module.declare(full, f"{kind} @{full}({pointers}, i32, {bits}, {kind})")
    on = place.mask or splat("true", "i1", lanes)
    args = f"{pointers} {place.where}, i32 {place.alignment}, {bits} {on}, {kind} zeroinitializer"
    return _from_memory(em, em.op(f"call {kind} @{full}({args})"), of)


def scatter(em: Emitter, of: VectorType, place: Place, operand: str) -> None:
    """Write one element a lane."""
    lanes = of.lanes
    kind, pointers, bits = memory_type(of), vector("ptr", lanes), vector("i1", lanes)
    full = f"llvm.masked.scatter.{_memory_mangled(of)}.v{lanes}p0"
    em.module.declare(full, f"void @{full}({kind}, {pointers}, i32, {bits})")
    on = place.mask or splat("true", "i1", lanes)
    raw = _to_memory(em, operand, of)
    args = f"{kind} {raw}, {pointers} {place.where}, i32 {place.alignment}, {bits} {on}"
    em.line(f"call void @{full}({args})")
