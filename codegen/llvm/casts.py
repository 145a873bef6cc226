"""Conversions between dtypes: floats to integers saturate, NaN becomes 0, integers wrap."""

from __future__ import annotations

from ...ir.dtype import DType, bf16, f16, f32, f64
from ...ir.thread.types import VectorType
from . import f16_conversion
from .emitter import Emitter
from .types import constant, mangled, splat, type_name, vector


def _retyped(of: VectorType, dtype: DType) -> VectorType:
    return VectorType(dtype, of.lanes)


def convert(em: Emitter, operand: str, source: VectorType, target: VectorType) -> str:
    """Emit a conversion between types with equal lanes; return its result."""
    a, b = source.dtype, target.dtype
    if a == b:
        return operand
    if b.kind == "bool":
        return _truth(em, operand, source)
    if a.is_float and b.is_float:
        return _float_to_float(em, operand, source, target)
    if a.is_float:
        return _float_to_integer(em, operand, source, target)
    if b.is_float:
        return _integer_to_float(em, operand, source, target)
    return _integer_to_integer(em, operand, source, target)


def _is_half(of: VectorType) -> bool:
    """Return whether numbers are converted to single precision to compute with them."""
    return of.dtype.is_float and of.dtype.compute is f32 and of.dtype is not f32


def _truth(em: Emitter, operand: str, source: VectorType) -> str:
    if _is_half(source):
        wide = _retyped(source, f32)
        return _truth(em, convert(em, operand, source, wide), wide)
    compare = "fcmp une" if source.dtype.is_float else "icmp ne"
    return em.op(f"{compare} {type_name(source)} {operand}, {constant(0, source)}")


def _float_to_integer(em: Emitter, operand: str, source: VectorType, target: VectorType) -> str:
    if _is_half(source):
        wide = _retyped(source, f32)
        return _float_to_integer(em, convert(em, operand, source, wide), wide, target)
    name = "llvm.fptosi.sat" if target.dtype.kind == "int" else "llvm.fptoui.sat"
    full = f"{name}.{mangled(target)}.{mangled(source)}"
    return em.call(full, type_name(target), ((type_name(source), operand),))


def _integer_to_float(em: Emitter, operand: str, source: VectorType, target: VectorType) -> str:
    if _is_half(target):
        if target.dtype is bf16:
            wide = _retyped(source, f32 if source.dtype.bits <= f32.bits else f64)
            if source.dtype.bits >= f32.bits:
                operand = _exactly(em, operand, source, wide.dtype.mantissa + 1)
        else:
            wide = _retyped(source, f32 if source.dtype.bits < f32.bits else f64)
        return convert(em, _integer_to_float(em, operand, source, wide), wide, target)
    name = "sitofp" if source.dtype.kind == "int" else "uitofp"
    return em.op(f"{name} {type_name(source)} {operand} to {type_name(target)}")


def _exactly(em: Emitter, operand: str, source: VectorType, digits: int) -> str:
    """Emit integers of at most some digits whose narrow floats are those of the operand.

    The lowest bits of a large integer are replaced by one bit, which is set if any of them was.
    """
    of, bit, lost = type_name(source), vector("i1", source.lanes), source.dtype.bits - digits

    def number(value: int) -> str:
        return splat(str(value), f"i{source.dtype.bits}", source.lanes)

    signed = source.dtype.kind == "int"
    moved = em.op(f"add {of} {operand}, {number(1 << digits)}") if signed else operand
    small = em.op(f"icmp ult {of} {moved}, {number(1 << (digits + signed))}")
    low = em.op(f"and {of} {operand}, {number((1 << lost) - 1)}")
    inexact = em.op(f"icmp ne {of} {low}, {number(0)}")
    sticky = em.op(f"select {bit} {inexact}, {of} {number(1 << lost)}, {of} {number(0)}")
    high = em.op(f"and {of} {operand}, {number(-1 << lost)}")
    folded = em.op(f"or {of} {high}, {sticky}")
    return em.op(f"select {bit} {small}, {of} {operand}, {of} {folded}")


def _integer_to_integer(em: Emitter, operand: str, source: VectorType, target: VectorType) -> str:
    width = 1 if source.dtype.kind == "bool" else source.dtype.bits
    if width == target.dtype.bits:
        return operand
    name = "trunc" if width > target.dtype.bits else "zext"
    if name == "zext" and source.dtype.kind == "int":
        name = "sext"
    return em.op(f"{name} {type_name(source)} {operand} to {type_name(target)}")


def _float_to_float(em: Emitter, operand: str, source: VectorType, target: VectorType) -> str:
    single = _retyped(source, f32)
    if _is_half(source) and target.dtype is not f32:
        return _float_to_float(em, _widen_half(em, operand, source), single, target)
    if _is_half(source):
        return _widen_half(em, operand, source)
    if target.dtype is f64:
        return em.op(f"fpext {type_name(source)} {operand} to {type_name(target)}")
    if target.dtype is f32:
        return em.op(f"fptrunc {type_name(source)} {operand} to {type_name(target)}")
    if source.dtype is f64:
        operand = _round_to_odd(em, operand, source.lanes)
    if target.dtype is bf16:
        return _narrow_bfloat(em, operand, source.lanes)
    if not em.module.halves:
        return f16_conversion.narrow(em, operand, source.lanes)
    return em.op(f"fptrunc {type_name(single)} {operand} to {type_name(target)}")


def _widen_half(em: Emitter, operand: str, source: VectorType) -> str:
    single = vector("float", source.lanes)
    if source.dtype is f16 and not em.module.halves:
        return f16_conversion.widen(em, operand, source.lanes)
    if source.dtype is f16:
        return em.op(f"fpext {type_name(source)} {operand} to {single}")
    words = vector("i32", source.lanes)
    bits = em.op(f"zext {type_name(source)} {operand} to {words}")
    high = em.op(f"shl {words} {bits}, {splat('16', 'i32', source.lanes)}")
    return em.op(f"bitcast {words} {high} to {single}")


def _narrow_bfloat(em: Emitter, operand: str, lanes: int) -> str:
    """Round to nearest even by adding half a unit to the bits; NaN becomes a quiet NaN."""
    words, single, bit = vector("i32", lanes), vector("float", lanes), vector("i1", lanes)

    def number(value: int) -> str:
        return splat(str(value), "i32", lanes)

    raw = em.op(f"bitcast {single} {operand} to {words}")
    shifted = em.op(f"lshr {words} {raw}, {number(16)}")
    odd = em.op(f"and {words} {shifted}, {number(1)}")
    half = em.op(f"add {words} {odd}, {number(0x7FFF)}")
    rounded = em.op(f"add {words} {raw}, {half}")
    quiet = em.op(f"or {words} {raw}, {number(0x400000)}")
    is_nan = em.op(f"fcmp uno {single} {operand}, {operand}")
    chosen = em.op(f"select {bit} {is_nan}, {words} {quiet}, {words} {rounded}")
    high = em.op(f"lshr {words} {chosen}, {number(16)}")
    return em.op(f"trunc {words} {high} to {vector('i16', lanes)}")


def _round_to_odd(em: Emitter, operand: str, lanes: int) -> str:
    """Round doubles to odd singles, so a second rounding to 16 bits is correct.

    An inexact result is truncated and its last bit is set, so it is never halfway between two
    16-bit numbers.
    """
    double, single = vector("double", lanes), vector("float", lanes)
    words, bit = vector("i32", lanes), vector("i1", lanes)
    near = em.op(f"fptrunc {double} {operand} to {single}")
    back = em.op(f"fpext {single} {near} to {double}")
    size = em.call(f"llvm.fabs.{_double(lanes)}", double, ((double, operand),))
    near_size = em.call(f"llvm.fabs.{_double(lanes)}", double, ((double, back),))
    above = em.op(f"fcmp ogt {double} {near_size}, {size}")
    inexact = em.op(f"fcmp one {double} {back}, {operand}")
    raw = em.op(f"bitcast {single} {near} to {words}")
    down = em.op(f"sext {bit} {above} to {words}")
    truncated = em.op(f"add {words} {raw}, {down}")
    sticky = em.op(f"zext {bit} {inexact} to {words}")
    odd = em.op(f"or {words} {truncated}, {sticky}")
    return em.op(f"bitcast {words} {odd} to {single}")


def _double(lanes: int) -> str:
    return mangled(VectorType(f64, lanes))
