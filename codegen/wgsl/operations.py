"""Element operations on expressions, defined for all operands as thread IR states."""

from __future__ import annotations

from typing import Final

from ...ir.dtype import DType, dtype as dtype_named
from ...ir.thread.nodes import BinaryOp, CompareOp, UnaryOp
from .emitter import Emitter, UnsupportedShaderError, bare
from .types import Literal, integer, literal, type_name

_SIGNS: Final = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^"}
_TRUTH: Final = {
    "add": "|", "or": "|", "max": "|", "mul": "&", "and": "&", "min": "&", "xor": "!=", "sub": "!=",
}  # fmt: skip
_PAIRS: Final = {"add": "tw_add64", "sub": "tw_sub64", "mul": "tw_mul64"}


def wrapped(value: str, dtype: DType) -> str:
    """Return the value of an integer of fewer than 32 bits after an operation that may overflow."""
    if dtype.kind == "bool" or dtype.is_float or dtype.bits >= 32:
        return value
    if dtype.kind == "int":
        return f"extractBits({bare(value)}, 0u, {dtype.bits}u)"
    return f"({value} & {(1 << dtype.bits) - 1}u)"


def _rounded(value: str, dtype: DType) -> str:
    return value if dtype.bits == 32 else f"tw_round_{dtype}({bare(value)})"


def _undefined(em: Emitter, op: str, dtype: DType) -> UnsupportedShaderError:
    return em.unsupported(f"operation {op!r} of dtype {dtype}")


def unary(em: Emitter, op: UnaryOp, x: str, dtype: DType) -> str:
    """Return an operation on one operand."""
    (x,) = em.opaque(x)
    if dtype.is_float:
        return _float_unary(em, op, x, dtype)
    wide = dtype.bits == 64
    match op:
        case "isnan":
            return Literal("false")
        case "floor" | "ceil" | "round" | "trunc":
            return x
        case "not" if dtype.kind == "bool":
            return f"(!{x})"
        case "not":
            return wrapped(f"(~{x})", dtype)
        case "neg" if wide:
            return f"tw_neg64({bare(x)})"
        case "neg":
            return wrapped(f"(0{'i' if dtype.kind == 'int' else 'u'} - {x})", dtype)
        case "abs" if dtype.kind == "uint":
            return x
        case "abs":
            return f"tw_abs64({bare(x)})" if wide else wrapped(f"abs({bare(x)})", dtype)
        case "clz" if wide:
            return f"tw_clz64({bare(x)})"
        case "clz" if dtype.bits == 32:
            return f"countLeadingZeros({bare(x)})"
        case "clz":
            low = "i" if dtype.kind == "int" else "u"
            bits = f"{x} & {(1 << dtype.bits) - 1}{low}"
            return f"(countLeadingZeros({bits}) - {32 - dtype.bits}{low})"
        case _:
            raise _undefined(em, op, dtype)


def _float_unary(em: Emitter, op: UnaryOp, x: str, dtype: DType) -> str:
    match op:
        case "neg":
            return f"(-{x})"
        case "isnan":
            return f"tw_isnan({bare(x)})"
        case "abs" | "floor" | "ceil" | "round" | "trunc":
            return f"{op}({bare(x)})"
        case "sqrt":
            return _rounded(f"sqrt({bare(x)})", dtype)
        case _:
            raise _undefined(em, op, dtype)


def binary(em: Emitter, op: BinaryOp, x: str, y: str, dtype: DType) -> str:
    """Return an operation on two operands of one dtype."""
    x, y = em.opaque(x, y)
    if dtype.is_float:
        return _float_binary(em, op, x, y, dtype)
    if dtype.kind == "bool":
        if op not in _TRUTH:
            raise _undefined(em, op, dtype)
        return f"({x} {_TRUTH[op]} {y})"
    kind = "i" if dtype.kind == "int" else "u"
    if dtype.bits == 64:
        return _pair_binary(em, op, x, y, kind)
    return wrapped(_word_binary(em, op, x, y, kind), dtype)


def _float_binary(em: Emitter, op: BinaryOp, x: str, y: str, dtype: DType) -> str:
    if op in ("add", "sub", "mul", "div"):
        if op == "div":
            (x,) = em.opaque(x)
            y = em.keep(y) if isinstance(y, Literal) and float(y.removesuffix("f")) == 0 else y
        return _rounded(f"({x} {'/' if op == 'div' else _SIGNS[op]} {y})", dtype)
    if op in ("min", "max"):
        return f"tw_{op}_f32({bare(x)}, {bare(y)})"
    raise _undefined(em, op, dtype)


def _word_binary(em: Emitter, op: BinaryOp, x: str, y: str, kind: str) -> str:
    of = f"{kind}32"
    match op:
        case "add" | "sub" | "mul" | "and" | "or" | "xor":
            return f"({x} {_SIGNS[op]} {y})"
        case "min" | "max":
            return f"{op}({bare(x)}, {bare(y)})"
        case "shl" | "shr":
            return _shift(op, x, y, kind)
        case "div" | "floordiv" if kind == "u":
            return f"tw_div_u32({bare(x)}, {bare(y)})"
        case "div" | "floordiv" | "mod":
            return f"tw_{op}_{of}({bare(x)}, {bare(y)})"
        case _:
            raise _undefined(em, op, dtype_named(of))


def _shift(op: str, x: str, y: str, kind: str) -> str:
    """Return a shift; amounts are compared as unsigned numbers, so a negative one is large."""
    small = isinstance(y, Literal) and 0 <= int(y.rstrip("iu")) < 32
    amount = f"{y.rstrip('iu')}u" if small else y if kind == "u" else f"bitcast<u32>({bare(y)})"
    if small:
        return f"({x} {'<<' if op == 'shl' else '>>'} {amount})"
    if op == "shr":
        return f"tw_shr_{kind}32({bare(x)}, {bare(amount)})"
    if kind == "u":
        return f"tw_shl_u32({bare(x)}, {bare(amount)})"
    return f"bitcast<i32>(tw_shl_u32(bitcast<u32>({bare(x)}), {bare(amount)}))"


def _pair_binary(em: Emitter, op: BinaryOp, x: str, y: str, kind: str) -> str:
    operands = f"({bare(x)}, {bare(y)})"
    match op:
        case "add" | "sub" | "mul":
            return _PAIRS[op] + operands
        case "and" | "or" | "xor":
            return f"({x} {_SIGNS[op]} {y})"
        case "shl":
            return f"tw_shl_64{operands}"
        case "floordiv" if kind == "u":
            return f"tw_div_u64{operands}"
        case "shr" | "min" | "max" | "div" | "floordiv" | "mod":
            return f"tw_{op}_{kind}64{operands}"
        case _:
            raise _undefined(em, op, dtype_named(f"{kind}64"))


_COMPARED: Final = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}


def compare(em: Emitter, op: CompareOp, x: str, y: str, dtype: DType) -> str:
    """Return a comparison; those with NaN are false, except ``ne``."""
    x, y = em.opaque(x, y)
    if dtype.kind == "bool":
        return _compare_truth(em, op, x, y)
    if op in ("gt", "ge"):
        op, x, y = ("lt" if op == "gt" else "le"), y, x
    a, b = bare(x), bare(y)
    if dtype.is_float:
        if op == "ne":
            return f"(!tw_eq_f32({a}, {b}))"
        return f"tw_{op}_f32({a}, {b})"
    if dtype.bits < 64:
        return f"({x} {_COMPARED[op]} {y})"
    less = f"tw_lt_{'i' if dtype.kind == 'int' else 'u'}64"
    match op:
        case "eq":
            return f"tw_eq64({a}, {b})"
        case "ne":
            return f"(!tw_eq64({a}, {b}))"
        case "lt":
            return f"{less}({a}, {b})"
        case _:
            return f"(!{less}({b}, {a}))"


def _compare_truth(em: Emitter, op: CompareOp, x: str, y: str) -> str:
    match op:
        case "eq" | "ne":
            return f"({x} {_COMPARED[op]} {y})"
        case "lt":
            return f"(!{x} & {y})"
        case "le":
            return f"(!{x} | {y})"
        case "gt":
            return f"({x} & !{y})"
        case "ge":
            return f"({x} | !{y})"
        case _:
            raise em.unsupported(f"comparison {op!r}")


def cast(em: Emitter, x: str, source: DType, target: DType) -> str:
    """Return a conversion: floats saturate to integers and NaN becomes 0; integers wrap."""
    (x,) = em.opaque(x)
    for dtype in (source, target):
        type_name(dtype)  # reports one that shaders lack
    if source == target:
        return x
    if target.kind == "bool":
        return compare(em, "ne", x, literal(0, source), source)
    if source.kind == "bool":
        return _select(literal(0, target), literal(1, target), x)
    if target.is_float:
        return _to_float(x, source, target)
    return _float_to_integer(x, target) if source.is_float else _to_integer(x, source, target)


def _select(otherwise: str, then: str, bit: str) -> str:
    return f"select({otherwise}, {then}, {bare(bit)})"


def _to_float(x: str, source: DType, target: DType) -> str:
    if source.is_float:
        return _rounded(x, target)
    if source.bits == 64:
        text = f"tw_f32_of_{'i' if source.kind == 'int' else 'u'}64({bare(x)})"
    else:
        text = f"f32({bare(x)})"
    return _rounded(text, target)


def _float_to_integer(x: str, target: DType) -> str:
    if target.bits >= 32:
        return f"tw_{'i' if target.kind == 'int' else 'u'}{target.bits}_of_f32({bare(x)})"
    if target.kind == "uint":
        return f"min(tw_u32_of_f32({bare(x)}), {(1 << target.bits) - 1}u)"
    low, high = -(1 << (target.bits - 1)), (1 << (target.bits - 1)) - 1
    return f"tw_clamped_i32(tw_i32_of_f32({bare(x)}), {integer(low)}, {integer(high)})"


def _to_integer(x: str, source: DType, target: DType) -> str:
    signed = source.kind == "int"
    if target.bits == 64:
        if source.bits == 64:
            return x
        return f"tw_i64_of_i32({bare(x)})" if signed else f"vec2<u32>({bare(x)}, 0u)"
    if source.bits == 64:
        low = f"{x}.x" if x.isidentifier() or x.endswith(")") else f"({x}).x"
        return wrapped(low if target.kind == "uint" else f"bitcast<i32>({low})", target)
    same = signed == (target.kind == "int")
    word = x if same else f"bitcast<{type_name(target)}>({bare(x)})"
    fits = target.bits > source.bits or (target.bits == source.bits and same)
    if not same and signed and target.bits < 32:
        fits = False  # the sign is in the high bits
    if fits and (same or target.bits > source.bits):
        return word
    return wrapped(word, target)


def bits_as(x: str, source: DType, target: DType) -> str:
    """Return the bits of an element as an element of a dtype of as many bits."""
    a, b = type_name(source), type_name(target)
    if source == target:
        return x
    if source.is_float and source.bits < 32:
        word = f"tw_{source}_bits({bare(x)})"
        return wrapped(f"bitcast<i32>({word})", target) if b == "i32" else word
    if target.is_float and target.bits < 32:
        word = x if a == "u32" else f"bitcast<u32>({bare(x)}) & 65535u"
        return f"tw_{target}_value({word})"
    if a == b:
        return wrapped(x, target)
    return wrapped(f"bitcast<{b}>({bare(x)})", target)
