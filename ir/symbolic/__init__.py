"""Symbolic integers: terms, rewrite rules, bounds, facts and proofs.

Python operators build terms; construction simplifies and interns them.

Example
-------
>>> from tilewright.ir.symbolic import var
>>> n = var("n", lower=1)
>>> (n // 8) * 8 + n % 8
n
"""

from .algebra import latex, solve_for, to_sympy
from .base import Bool, Expr, SymInt, Term, Var
from .build import as_expr, ceildiv, clear_caches, const_value, product, total, var
from .conditions import all_of, any_of, eq, maximum, minimum, ne, negate, select
from .errors import (
    ContradictoryFactsError,
    InvalidSymbolError,
    NotAConditionError,
    NotAnIntegerError,
    OperandError,
    SymbolicError,
    SymbolicSyntaxError,
    UnboundSymbolError,
    UndecidedConditionError,
    UnsolvableEquationError,
    ZeroDivisorError,
)
from .facts import Discharge, Fact, Facts, Origin
from .linear import LinearForm, determined_by, linear_form, unknown_of
from .parse import parse_expr
from .predicates import FALSE, TRUE, And, BoolConst, Cmp, Eq, Le, Lt, Ne, Or, conjuncts
from .proof.answer import Proof, Proved, Refuted, Unknown
from .prove import bounds, congruence, is_proved, is_simple, prove, simplify
from .ranges import Bounds
from .terms import Add, Const, FloorDiv, Max, Min, Mod, Mul, Select
from .text import to_text
from .traverse import (
    divides_by_zero,
    evaluate,
    free_vars,
    postorder,
    substitute,
    without_zero_divisors,
)

__all__ = [
    "FALSE",
    "TRUE",
    "Add",
    "And",
    "Bool",
    "BoolConst",
    "Bounds",
    "Cmp",
    "Const",
    "ContradictoryFactsError",
    "Discharge",
    "Eq",
    "Expr",
    "Fact",
    "Facts",
    "FloorDiv",
    "InvalidSymbolError",
    "Le",
    "LinearForm",
    "Lt",
    "Max",
    "Min",
    "Mod",
    "Mul",
    "Ne",
    "NotAConditionError",
    "NotAnIntegerError",
    "OperandError",
    "Or",
    "Origin",
    "Proof",
    "Proved",
    "Refuted",
    "Select",
    "SymInt",
    "SymbolicError",
    "SymbolicSyntaxError",
    "Term",
    "UnboundSymbolError",
    "UndecidedConditionError",
    "Unknown",
    "UnsolvableEquationError",
    "Var",
    "ZeroDivisorError",
    "all_of",
    "any_of",
    "as_expr",
    "bounds",
    "ceildiv",
    "clear_caches",
    "congruence",
    "conjuncts",
    "const_value",
    "determined_by",
    "divides_by_zero",
    "eq",
    "evaluate",
    "free_vars",
    "is_proved",
    "is_simple",
    "latex",
    "linear_form",
    "maximum",
    "minimum",
    "ne",
    "negate",
    "parse_expr",
    "postorder",
    "product",
    "prove",
    "select",
    "simplify",
    "solve_for",
    "substitute",
    "to_sympy",
    "to_text",
    "total",
    "unknown_of",
    "var",
    "without_zero_divisors",
]
