"""Elementwise operations as LLVM instructions.

Every operation is defined for all operands: integers wrap, shifts beyond the width and division by
zero have defined results. Half precision is computed in single precision and rounded after every
operation.
"""

from __future__ import annotations

from ...errors import TilewrightError
from ...ir.thread.nodes import BinaryOp, CompareOp, ReduceOp, UnaryOp
from ...ir.thread.types import VectorType
from . import fused
from .casts import convert
from .emitter import REPORT, Emitter
from .types import constant, mangled, splat, type_name, vector


class UnsupportedOperationError(TilewrightError):
    """An operation that is not defined for a dtype."""

    title = "Unsupported operation"


def _undefined(em: Emitter, op: str, of: VectorType) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"operation {op!r} is not defined for type {of}",
        where=f"function {em.function.name!r}",
        hint=REPORT,
    )


def _wide(of: VectorType) -> VectorType:
    return VectorType(of.dtype.compute, of.lanes)


def _is_half(of: VectorType) -> bool:
    return of.dtype.compute is not of.dtype


_ROUNDING = {
    "floor": "floor",
    "ceil": "ceil",
    "round": "roundeven",
    "trunc": "trunc",
    "sqrt": "sqrt",
    "abs": "fabs",
}


def unary(em: Emitter, op: UnaryOp, x: str, of: VectorType) -> str:
    """Emit a unary operation; return its result."""
    if _is_half(of):
        wide = _wide(of)
        result = unary(em, op, convert(em, x, of, wide), wide)
        return result if op == "isnan" else convert(em, result, wide, of)
    name = type_name(of)
    if of.dtype.is_float:
        return _float_unary(em, op, x, of)
    match op:
        case "neg":
            return em.op(f"sub {name} {constant(0, of)}, {x}")
        case "not":
            ones = constant(True if of.dtype.kind == "bool" else -1, of)
            return em.op(f"xor {name} {x}, {ones}")
        case "abs" if of.dtype.kind == "int":
            return em.call(f"llvm.abs.{mangled(of)}", name, ((name, x), ("i1", "false")))
        case "clz":
            return em.call(f"llvm.ctlz.{mangled(of)}", name, ((name, x), ("i1", "false")))
        case "floor" | "ceil" | "round" | "trunc" | "abs":
            return x
        case "isnan":
            return splat("false", "i1", of.lanes)
        case _:
            raise _undefined(em, op, of)


def _float_unary(em: Emitter, op: UnaryOp, x: str, of: VectorType) -> str:
    name = type_name(of)
    if op == "neg":
        return em.op(f"fneg {name} {x}")
    if op == "isnan":
        return em.op(f"fcmp uno {name} {x}, {x}")
    if op not in _ROUNDING:
        raise _undefined(em, op, of)
    return em.call(f"llvm.{_ROUNDING[op]}.{mangled(of)}", name, ((name, x),))


_FLOAT = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_INTEGER = {"add": "add", "sub": "sub", "mul": "mul", "and": "and", "or": "or", "xor": "xor"}
_TRUTH = {
    "add": "or",
    "mul": "and",
    "min": "and",
    "max": "or",
    "and": "and",
    "or": "or",
    "xor": "xor",
    "sub": "xor",
}


def binary(em: Emitter, op: BinaryOp, x: str, y: str, of: VectorType) -> str:
    """Emit a binary operation; return its result."""
    name = type_name(of)
    if _is_half(of):
        wide = _wide(of)
        result = binary(em, op, convert(em, x, of, wide), convert(em, y, of, wide), wide)
        return convert(em, result, wide, of)
    if of.dtype.is_float:
        return _float_binary(em, op, x, y, of)
    if of.dtype.kind == "bool":
        if op not in _TRUTH:
            raise _undefined(em, op, of)
        return em.op(f"{_TRUTH[op]} {name} {x}, {y}")
    if op in _INTEGER:
        return em.op(f"{_INTEGER[op]} {name} {x}, {y}")
    sign = "s" if of.dtype.kind == "int" else "u"
    match op:
        case "min" | "max":
            return em.call(f"llvm.{sign}{op}.{mangled(of)}", name, ((name, x), (name, y)))
        case "shl" | "shr":
            return _shift(em, op, x, y, of)
        case "div" | "floordiv" | "mod":
            return _division(em, op, x, y, of)
        case _:
            raise _undefined(em, op, of)


def _float_binary(em: Emitter, op: BinaryOp, x: str, y: str, of: VectorType) -> str:
    name = type_name(of)
    if op in _FLOAT:
        return em.op(f"{_FLOAT[op]} {name} {x}, {y}")
    if op in ("min", "max"):
        full = f"llvm.{op}imum.{mangled(of)}"
        em.module.declare(full, f"{name} @{full}({name}, {name})")
        return em.op(f"call nsz {name} @{full}({name} {x}, {name} {y})")
    raise _undefined(em, op, of)


def _select(em: Emitter, bit: str, x: str, y: str, of: VectorType) -> str:
    name = type_name(of)
    return em.op(f"select {vector('i1', of.lanes)} {bit}, {name} {x}, {name} {y}")


def _shift(em: Emitter, op: BinaryOp, x: str, y: str, of: VectorType) -> str:
    name, width = type_name(of), of.dtype.bits
    small = em.op(f"icmp ult {name} {y}, {constant(width, of)}")
    if op == "shr" and of.dtype.kind == "int":
        amount = _select(em, small, y, constant(width - 1, of), of)
        return em.op(f"ashr {name} {x}, {amount}")
    amount = _select(em, small, y, constant(0, of), of)
    shifted = em.op(f"{'shl' if op == 'shl' else 'lshr'} {name} {x}, {amount}")
    return _select(em, small, shifted, constant(0, of), of)


def _division(em: Emitter, op: BinaryOp, x: str, y: str, of: VectorType) -> str:
    """Emit a division that never traps: 0 for divisor 0, wrapping negation for divisor -1."""
    name = type_name(of)
    zero = constant(0, of)
    by_zero = em.op(f"icmp eq {name} {y}, {zero}")
    divisor = _select(em, by_zero, constant(1, of), y, of)
    if of.dtype.kind == "uint":
        result = em.op(f"{'urem' if op == 'mod' else 'udiv'} {name} {x}, {divisor}")
        return _select(em, by_zero, zero, result, of)
    by_minus = em.op(f"icmp eq {name} {y}, {constant(-1, of)}")
    safe = _select(em, by_minus, constant(1, of), divisor, of)
    quotient = em.op(f"sdiv {name} {x}, {safe}")
    rest = em.op(f"srem {name} {x}, {safe}")
    negated = em.op(f"sub {name} {zero}, {x}")
    if op != "div":
        quotient, rest = _floored(em, quotient, rest, y, of)
    result = rest if op == "mod" else _select(em, by_minus, negated, quotient, of)
    return _select(em, by_zero, zero, result, of)


def _floored(em: Emitter, quotient: str, rest: str, y: str, of: VectorType) -> tuple[str, str]:
    name, bits = type_name(of), vector("i1", of.lanes)
    inexact = em.op(f"icmp ne {name} {rest}, {constant(0, of)}")
    signs = em.op(f"xor {name} {rest}, {y}")
    opposite = em.op(f"icmp slt {name} {signs}, {constant(0, of)}")
    step = em.op(f"and {bits} {inexact}, {opposite}")
    step = em.op(f"sext {bits} {step} to {name}")
    correction = em.op(f"and {name} {step}, {y}")
    return em.op(f"add {name} {quotient}, {step}"), em.op(f"add {name} {rest}, {correction}")


_ORDERED = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"}


def compare(em: Emitter, op: CompareOp, x: str, y: str, of: VectorType) -> str:
    """Emit a comparison per lane; return its result."""
    if _is_half(of):
        wide = _wide(of)
        return compare(em, op, convert(em, x, of, wide), convert(em, y, of, wide), wide)
    name = type_name(of)
    if of.dtype.is_float:
        return em.op(f"fcmp {_ORDERED[op]} {name} {x}, {y}")
    if op in ("eq", "ne"):
        return em.op(f"icmp {op} {name} {x}, {y}")
    sign = "s" if of.dtype.kind == "int" else "u"
    return em.op(f"icmp {sign}{op} {name} {x}, {y}")


def fma(em: Emitter, a: str, b: str, c: str, of: VectorType, *, exact: bool = False) -> str:
    """Emit a fused multiply-add, with one rounding for floats if the machine has it or `exact`."""
    if not of.dtype.is_float or _is_half(of):
        return binary(em, "add", binary(em, "mul", a, b, of), c, of)
    name = type_name(of)
    if of.dtype.bits == 64 and not em.module.fused:
        return fused.multiply_add(em, a, b, c, of.lanes)
    if exact and not em.module.fused:
        return fused.multiply_add_once(em, a, b, c, of.lanes)
    # Without a fused instruction, the library function is about 100 times as slow.
    word = "fma" if em.module.fused else "fmuladd"
    return em.call(f"llvm.{word}.{mangled(of)}", name, ((name, a), (name, b), (name, c)))


def reduce_lanes(em: Emitter, op: ReduceOp, x: str, of: VectorType) -> str:
    """Emit a pairwise reduction of all lanes, whose error grows with the logarithm of lanes."""
    lanes = of.lanes
    if of.dtype.kind == "bool" and lanes > 1:
        return em.call(f"llvm.vector.reduce.{_TRUTH[op]}.v{lanes}i1", "i1", ((type_name(of), x),))
    while lanes > 1:
        half, rest = lanes // 2, lanes % 2
        here = vector(_element(of), lanes)
        low = _pick(em, x, here, range(half))
        high = _pick(em, x, here, range(half, 2 * half))
        narrower = VectorType(of.dtype, half)
        folded = binary(em, op, low, high, narrower)
        if rest:
            scalar = VectorType(of.dtype)
            odd = em.op(f"extractelement {here} {x}, i64 {lanes - 1}")
            folded = reduce_lanes(em, op, folded, narrower)
            return binary(em, op, folded, odd, scalar)
        x, lanes = folded, half
    return x


def _element(of: VectorType) -> str:
    return type_name(VectorType(of.dtype))


def _pick(em: Emitter, x: str, of: str, lanes: range) -> str:
    if len(lanes) == 1:
        return em.op(f"extractelement {of} {x}, i64 {lanes[0]}")
    chosen = ", ".join(f"i32 {k}" for k in lanes)
    return em.op(f"shufflevector {of} {x}, {of} poison, <{len(lanes)} x i32> <{chosen}>")
