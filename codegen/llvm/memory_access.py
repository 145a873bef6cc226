"""Loads and stores: contiguous, strided, gathered, scattered, and masked."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...errors import TilewrightError
from ...ir.symbolic import Const, Expr, const_value
from ...ir.thread.index_width import ScaledOffset, scaled
from ...ir.thread.types import PointerType, Space, Type, VectorType
from .emitter import REPORT, Emitter
from .indices import extended, fits, integer, spread
from .masks import opaque_elements, opaque_mask, part_of_mask
from .types import (
    iota,
    mangled,
    mangled_pointer,
    memory_type,
    pointer_name,
    splat,
    type_name,
    vector,
)


class AddressExpectedError(TilewrightError):
    """A number in thread IR that is used as an address."""

    title = "Number used as an address"


def space_of(em: Emitter, of: Type) -> Space:
    """Return the address space of a pointer type."""
    if isinstance(of, PointerType):
        return of.space
    raise AddressExpectedError(
        f"expected an address, got a value of type {of}",
        where=f"function {em.function.name!r}",
        hint=REPORT,
    )


def pointer(em: Emitter, base: str, offset: Expr, space: Space = "generic") -> str:
    """Return an address plus an offset in bytes."""
    if const_value(offset) == 0:
        return base
    where = f"{pointer_name(space)} {base}"
    if em.narrow_scalars:
        found = scaled(offset)
        if const_value(found.units) is None and fits(em, found.index):
            return _short_pointer(em, where, found, space)
    return em.op(f"getelementptr i8, {where}, i64 {integer(em, offset)}")


def _short_pointer(em: Emitter, where: str, offset: ScaledOffset, space: Space) -> str:
    """Return an address plus a 32-bit number of units, then plus the constant part.

    So the addresses of unrolled iterations differ by the offset of their instruction only.
    """
    index = extended(em, offset.units)
    made = em.op(f"getelementptr [{offset.scale} x i8], {where}, i64 {index}")
    if not offset.constant:
        return made
    distance = offset.constant * offset.scale
    return em.op(f"getelementptr i8, {pointer_name(space)} {made}, i64 {distance}")


def _from_memory(em: Emitter, raw: str, of: Type) -> str:
    """Convert a loaded value to its form in registers, which differs only for booleans."""
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
class Pointer:
    """The operands of an access: address (or one per lane), alignment, mask, address space."""

    where: str
    alignment: int
    mask: str | None = None
    space: Space = "generic"

    @property
    def typed(self) -> str:
        """The type and the address."""
        return f"{pointer_name(self.space)} {self.where}"


def load(em: Emitter, of: Type, access: Pointer) -> str:
    """Emit a load of contiguous elements."""
    kind, align = memory_type(of), access.alignment
    if access.mask is None or isinstance(of, PointerType):
        return _from_memory(em, em.op(f"load {kind}, {access.typed}, align {align}"), of)
    if of.lanes == 1:
        return _load_if(em, of, access, access.mask)
    if _exceeds_register(em, of):
        half = replace(of, lanes=of.lanes // 2)
        parts = [load(em, half, part) for part in _halves(em, of, access, access.mask)]
        typed = ", ".join(f"{type_name(half)} {part}" for part in parts)
        return em.op(f"shufflevector {typed}, {_lane_list(0, of.lanes)}")
    full = f"llvm.masked.load.{_memory_mangled(of)}.{mangled_pointer(access.space)}"
    bits = vector("i1", of.lanes)
    em.module.declare(full, f"{kind} @{full}({pointer_name(access.space)}, i32, {bits}, {kind})")
    mask = opaque_mask(em, access.mask, of)
    args = f"{access.typed}, i32 {align}, {bits} {mask}, {kind} zeroinitializer"
    return _from_memory(em, em.op(f"call {kind} @{full}({args})"), of)


def store(em: Emitter, of: Type, access: Pointer, operand: str) -> None:
    """Emit a store of contiguous elements."""
    kind, align = memory_type(of), access.alignment
    raw = _to_memory(em, operand, of)
    if access.mask is None or isinstance(of, PointerType):
        em.line(f"store {kind} {raw}, {access.typed}, align {align}")
        return
    if of.lanes == 1:
        _store_if(em, f"store {kind} {raw}, {access.typed}, align {align}", access.mask)
        return
    if _exceeds_register(em, of):
        half = replace(of, lanes=of.lanes // 2)
        for k, part in enumerate(_halves(em, of, access, access.mask)):
            store(em, half, part, _lanes(em, operand, of, k * half.lanes, half.lanes))
        return
    full = f"llvm.masked.store.{_memory_mangled(of)}.{mangled_pointer(access.space)}"
    bits = vector("i1", of.lanes)
    em.module.declare(full, f"void @{full}({kind}, {pointer_name(access.space)}, i32, {bits})")
    raw, mask = opaque_elements(em, raw, of), opaque_mask(em, access.mask, of)
    em.line(f"call void @{full}({kind} {raw}, {access.typed}, i32 {align}, {bits} {mask})")


def _exceeds_register(em: Emitter, of: VectorType) -> bool:
    """Return whether a masked vector must be split in halves.

    LLVM 22 fails to compile some masked accesses of several registers whose mask is constant.
    """
    limit = em.module.vector_bits
    splits = of.lanes > 2 and of.lanes % 2 == 0
    return limit > 0 and splits and of.lanes * max(of.dtype.bits, 8) > limit


def _halves(em: Emitter, of: VectorType, access: Pointer, mask: str) -> Iterator[Pointer]:
    """Yield the two halves of a masked access."""
    count = of.lanes // 2
    distance = count * max(of.dtype.bits, 8) // 8
    for k in range(2):
        bits = part_of_mask(em, mask, of.lanes, k * count, count)
        where = access.where
        if k:
            where = em.op(f"getelementptr i8, {access.typed}, i64 {distance}")
        alignment = access.alignment if k == 0 else math.gcd(access.alignment, distance)
        yield replace(access, where=where, alignment=alignment, mask=bits)


def _lanes(em: Emitter, operand: str, of: VectorType, start: int, count: int) -> str:
    """Return some adjacent lanes of a vector."""
    kind = type_name(of)
    return em.op(f"shufflevector {kind} {operand}, {kind} poison, {_lane_list(start, count)}")


def _lane_list(start: int, count: int) -> str:
    """Return the constant operand of a shuffle that selects adjacent lanes."""
    lanes = ", ".join(f"i32 {k}" for k in range(start, start + count))
    return f"<{count} x i32> <{lanes}>"


def _load_if(em: Emitter, of: VectorType, access: Pointer, bit: str) -> str:
    """Emit a conditional load of one element; LLVM has masked loads for vectors only."""
    before, kind = em.block, memory_type(of)
    inside, after = em.label("there"), em.label("read")
    em.line(f"br i1 {bit}, label %{inside}, label %{after}")
    em.begin(inside)
    found = em.op(f"load {kind}, {access.typed}, align {access.alignment}")
    em.line(f"br label %{after}")
    em.begin(after)
    raw = em.op(f"phi {kind} [ {found}, %{inside} ], [ zeroinitializer, %{before} ]")
    return _from_memory(em, raw, of)


def _store_if(em: Emitter, write: str, bit: str) -> None:
    inside, after = em.label("there"), em.label("written")
    em.line(f"br i1 {bit}, label %{inside}, label %{after}")
    em.begin(inside)
    em.line(write)
    em.line(f"br label %{after}")
    em.begin(after)


def short_lane_addresses(
    em: Emitter, base: Pointer, indices: str, scale: int, lanes: int
) -> Pointer:
    """Return the addresses at one 32-bit number of units of ``scale`` bytes per lane."""
    of = vector("i32", lanes)
    where = em.op(f"getelementptr [{scale} x i8], {base.typed}, {of} {indices}")
    return replace(base, where=where)


def lane_addresses(em: Emitter, base: Pointer, offsets: str, lanes: int) -> Pointer:
    """Return the addresses at one byte offset per lane."""
    where = em.op(f"getelementptr i8, {base.typed}, {vector('i64', lanes)} {offsets}")
    return replace(base, where=where)


def strided_offsets(em: Emitter, stride: Expr, lanes: int) -> str:
    """Return the byte offset of each lane from lane 0."""
    if isinstance(stride, Const):
        return "<" + ", ".join(f"i64 {k * stride.value}" for k in range(lanes)) + ">"
    step = spread(em, integer(em, stride), "i64", lanes)
    return em.op(f"mul nsw {vector('i64', lanes)} {step}, {iota(lanes)}")


def gather(em: Emitter, of: VectorType, access: Pointer) -> str:
    """Emit a load of one element per lane."""
    lanes = of.lanes
    kind, pointers = memory_type(of), vector(pointer_name(access.space), lanes)
    bits = vector("i1", lanes)
    full = f"llvm.masked.gather.{_memory_mangled(of)}.v{lanes}{mangled_pointer(access.space)}"
    em.module.declare(full, f"{kind} @{full}({pointers}, i32, {bits}, {kind})")
    on = access.mask or splat("true", "i1", lanes)
    args = f"{pointers} {access.where}, i32 {access.alignment}, {bits} {on}, {kind} zeroinitializer"
    return _from_memory(em, em.op(f"call {kind} @{full}({args})"), of)


def scatter(em: Emitter, of: VectorType, access: Pointer, operand: str) -> None:
    """Emit a store of one element per lane."""
    lanes = of.lanes
    kind, pointers = memory_type(of), vector(pointer_name(access.space), lanes)
    bits = vector("i1", lanes)
    full = f"llvm.masked.scatter.{_memory_mangled(of)}.v{lanes}{mangled_pointer(access.space)}"
    em.module.declare(full, f"void @{full}({kind}, {pointers}, i32, {bits})")
    on = access.mask or splat("true", "i1", lanes)
    raw = _to_memory(em, operand, of)
    args = f"{kind} {raw}, {pointers} {access.where}, i32 {access.alignment}, {bits} {on}"
    em.line(f"call void @{full}({args})")
