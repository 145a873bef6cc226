"""Symbolic terms as expressions: with 32 bits where they fit, else with pairs of words.

The low word of a sum or a product depends on the low words of its operands only, so an address,
which is in range, is computed with 32 bits even if the range of its terms is unknown.
"""

from __future__ import annotations

from typing import Final

from ...errors import MalformedProgramError
from ...ir.symbolic import (
    Add,
    And,
    Bool,
    BoolConst,
    Const,
    Eq,
    Expr,
    FloorDiv,
    Le,
    Lt,
    Max,
    Min,
    Mod,
    Mul,
    Ne,
    Or,
    Select,
    Var,
)
from ...ir.thread.index_width import SHORT_LIMIT
from .emitter import Emitter, bare
from .types import Literal, integer, pair


def fits(em: Emitter, e: Expr) -> bool:
    """Return whether a term, with its intermediate values, fits into 32 bits."""
    if isinstance(e, Const):
        return -SHORT_LIMIT <= e.value < SHORT_LIMIT
    return e in em.short


def short(em: Emitter, e: Expr) -> str:
    """Return the low 32 bits of a term, which are its value if it fits."""
    match e:
        case Const(value=value):
            low = value & 0xFFFFFFFF
            return integer(low - (1 << 32) if low >> 31 else low)
        case Var():
            name, narrow = _variable(em, e)
            return name if narrow else f"bitcast<i32>({name}.x)"
        case Add(terms=terms, constant=constant):
            return _sum(em, terms, constant)
        case Mul(factors=factors):
            return f"({' * '.join(short(em, f) for f in factors)})"
        case _ if fits(em, e):
            return _operation(em, e)
        case _:
            return f"bitcast<i32>({wide(em, e)}.x)"


def _sum(em: Emitter, terms: tuple[tuple[Expr, int], ...], constant: int) -> str:
    text = ""
    ordered = sorted(terms, key=lambda item: item[1] < 0)
    for term, coefficient in ordered:
        part = short(em, term)
        if isinstance(part, Literal):  # the number of a lane
            constant += coefficient * int(part.removesuffix("i"))
            continue
        low = coefficient & 0xFFFFFFFF
        factor = low - (1 << 32) if low >> 31 else low
        sign = " - " if factor < 0 and text else " + "
        size = abs(factor) if text else factor
        if abs(size) == 1 << 31:
            part = f"{part} * {integer(-(1 << 31))}"
            sign = " + "
        elif size != 1:
            part = f"{part} * {size}i"
        text = f"{text}{sign}{part}" if text else part
    low = constant & 0xFFFFFFFF
    rest = low - (1 << 32) if low >> 31 else low
    if not text:
        return integer(rest)
    if rest == -(1 << 31):
        text += f" + {integer(rest)}"
    elif rest:
        text += f" {'-' if rest < 0 else '+'} {abs(rest)}i"
    return f"({text})"


def _power_of_two(e: Expr) -> int | None:
    if isinstance(e, Const) and e.value > 0 and e.value & (e.value - 1) == 0:
        return e.value.bit_length() - 1
    return None


def _non_negative(e: Expr) -> bool:
    return e.lower is not None and e.lower >= 0


def _operation(em: Emitter, e: Expr) -> str:
    match e:
        case FloorDiv(numerator=a, divisor=b):
            bits = _power_of_two(b)
            if bits is not None:
                return f"({short(em, a)} >> {bits}u)"
            if _non_negative(a) and b.lower is not None and b.lower > 0:
                return f"({_variable_operand(em, a)} / {short(em, b)})"
            return f"tw_floordiv_i32({bare(short(em, a))}, {bare(short(em, b))})"
        case Mod(numerator=a, divisor=b):
            bits = _power_of_two(b)
            if bits is not None:
                return f"({short(em, a)} & {(1 << bits) - 1}i)"
            if _non_negative(a) and b.lower is not None and b.lower > 0:
                return f"({_variable_operand(em, a)} % {short(em, b)})"
            return f"tw_mod_i32({bare(short(em, a))}, {bare(short(em, b))})"
        case Min(args=args) | Max(args=args):
            name = "min" if isinstance(e, Min) else "max"
            text = bare(short(em, args[0]))
            for arg in args[1:]:
                text = f"{name}({text}, {bare(short(em, arg))})"
            return text
        case Select(condition=c, then=a, otherwise=b):
            sides = f"{bare(short(em, b))}, {bare(short(em, a))}"
            return f"select({sides}, {bare(condition(em, c))})"
        case _:
            raise _missing(em, e)


def _variable_operand(em: Emitter, e: Expr) -> str:
    """Return a term that is not a literal, so that compilers do not evaluate the operation."""
    text = short(em, e)
    return em.keep(text) if isinstance(text, Literal) else text


def wide(em: Emitter, e: Expr) -> str:
    """Return a term as a pair of words."""
    if isinstance(e, Const):
        return pair(e.value)
    if fits(em, e) or (isinstance(e, Var) and _variable(em, e)[1]):
        return f"tw_i64_of_i32({bare(short(em, e))})"
    match e:
        case Var():
            return _variable(em, e)[0]
        case Add(terms=terms, constant=constant):
            parts = [
                wide(em, t) if c == 1 else f"tw_mul64({wide(em, t)}, {pair(c)})" for t, c in terms
            ]
            parts += [pair(constant)] if constant else []
            return _folded("tw_add64", parts)
        case Mul(factors=factors):
            return _folded("tw_mul64", [wide(em, f) for f in factors])
        case FloorDiv(numerator=a, divisor=b):
            return f"tw_floordiv_i64({wide(em, a)}, {wide(em, b)})"
        case Mod(numerator=a, divisor=b):
            return f"tw_mod_i64({wide(em, a)}, {wide(em, b)})"
        case Min(args=args):
            return _folded("tw_min_i64", [wide(em, a) for a in args])
        case Max(args=args):
            return _folded("tw_max_i64", [wide(em, a) for a in args])
        case Select(condition=c, then=a, otherwise=b):
            return f"select({wide(em, b)}, {wide(em, a)}, {bare(condition(em, c))})"
        case _:
            raise _missing(em, e)


def _folded(name: str, parts: list[str]) -> str:
    text = parts[0]
    for part in parts[1:]:
        text = f"{name}({text}, {part})"
    return text


_SIGNS: Final = {Eq: "==", Ne: "!=", Le: "<=", Lt: "<"}


def condition(em: Emitter, b: Bool) -> str:
    """Return a predicate as an expression."""
    match b:
        case BoolConst(value=value):
            return Literal("true" if value else "false")
        case Eq(left=x, right=y) | Ne(left=x, right=y) | Le(left=x, right=y) | Lt(left=x, right=y):
            if fits(em, x) and fits(em, y):
                return f"({short(em, x)} {_SIGNS[type(b)]} {short(em, y)})"
            return _wide_comparison(em, b, x, y)
        case And(args=args):
            return f"({' && '.join(condition(em, a) for a in args)})"
        case Or(args=args):
            return f"({' || '.join(condition(em, a) for a in args)})"
        case _:
            raise _missing(em, b)


def _wide_comparison(em: Emitter, b: Bool, x: Expr, y: Expr) -> str:
    left, right = wide(em, x), wide(em, y)
    match b:
        case Eq():
            return f"tw_eq64({left}, {right})"
        case Ne():
            return f"(!tw_eq64({left}, {right}))"
        case Lt():
            return f"tw_lt_i64({left}, {right})"
        case _:
            return f"(!tw_lt_i64({right}, {left}))"


def _variable(em: Emitter, e: Var) -> tuple[str, bool]:
    found = em.variables.get(e)
    if found is None:
        raise _missing(em, e)
    return found


def _missing(em: Emitter, term: object) -> MalformedProgramError:
    return MalformedProgramError(
        f"the term {term} has no value in kernel {em.function.name!r}",
        where=f"kernel {em.function.name!r}",
        hint="this is a bug in the code generator; report it with the program",
    )
