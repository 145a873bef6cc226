"""Integer terms as C expressions."""

from __future__ import annotations

from collections.abc import Mapping

from ...ir.symbolic import (
    Add,
    And,
    Bool,
    Cmp,
    Const,
    Expr,
    FloorDiv,
    Max,
    Min,
    Mod,
    Mul,
    Or,
    Select,
    Var,
)
from .errors import ExportError

FUNCTIONS = """\
static inline int64_t term_floordiv(int64_t a, int64_t b) {
  return b ? a / b - (a % b && (a % b < 0) != (b < 0)) : 0;
}
static inline int64_t term_mod(int64_t a, int64_t b) { return a - b * term_floordiv(a, b); }
static inline int64_t term_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t term_max(int64_t a, int64_t b) { return a > b ? a : b; }"""
"""The definitions of the functions that terms call."""


def c_term(term: Expr | Bool, names: Mapping[Var, str]) -> str:
    """Return a term or a condition as a C expression of type ``int64_t``.

    Parameters
    ----------
    term : Expr or Bool
        The term, whose values do not overflow.
    names : Mapping of Var to str
        The C expression of each symbol.

    Raises
    ------
    ExportError
        If the term is of an unknown kind.

    Examples
    --------
    >>> from tilewright.ir.symbolic import var
    >>> n = var("n", lower=0)
    >>> c_term(n * 4 + 1, {n: "s[0]"})
    '(INT64_C(4) * s[0] + INT64_C(1))'
    >>> c_term(n // 3, {n: "s[0]"})
    'term_floordiv(s[0], INT64_C(3))'
    """
    match term:
        case Const(value):
            return f"INT64_C({value})"
        case Var():
            return names[term]
        case Add(terms, constant):
            parts = [_product(factor, c_term(t, names)) for t, factor in terms]
            parts += [f"INT64_C({constant})"] if constant else []
            return f"({' + '.join(parts)})"
        case Mul(factors):
            return f"({' * '.join(c_term(f, names) for f in factors)})"
        case FloorDiv(numerator, divisor):
            return f"term_floordiv({c_term(numerator, names)}, {c_term(divisor, names)})"
        case Mod(numerator, divisor):
            return f"term_mod({c_term(numerator, names)}, {c_term(divisor, names)})"
        case Min(args):
            return _nested("term_min", [c_term(a, names) for a in args])
        case Max(args):
            return _nested("term_max", [c_term(a, names) for a in args])
        case Select(condition, then, otherwise):
            given, *sides = (c_term(t, names) for t in (condition, then, otherwise))
            return f"({given} ? {sides[0]} : {sides[1]})"
        case Cmp(left, right):
            return f"({c_term(left, names)} {term.symbol} {c_term(right, names)})"
        case And(args) | Or(args):
            sign = " && " if isinstance(term, And) else " || "
            return f"({sign.join(c_term(a, names) for a in args)})"
        case _:
            raise ExportError(
                f"term {term} of kind {type(term).__name__} has no form in C",
                hint="please report this defect, with the program",
            )


def _product(factor: int, text: str) -> str:
    return text if factor == 1 else f"INT64_C({factor}) * {text}"


def _nested(function: str, args: list[str]) -> str:
    found = args[0]
    for arg in args[1:]:
        found = f"{function}({found}, {arg})"
    return found
