"""The isl prover, for claims about affine terms.

A term that is not affine becomes an additional unknown integer. This is sound for proofs; models
may be spurious, and every model is checked.
"""

from __future__ import annotations

from math import prod
from threading import local
from typing import TYPE_CHECKING

from ..base import Bool, Expr, Term
from ..conditions import negate
from ..predicates import And, BoolConst, Cmp, Eq, Ne, Or
from ..terms import Add, Const, FloorDiv, Max, Min, Mod, Select
from ..traverse import postorder
from .answer import Proof, Proved, Refuted
from .goal import Goal

if TYPE_CHECKING:
    import islpy

_OPERATIONS = 100_000
_PIECES = 24
_DIVISIONS = 10
_threads = local()


def decide(goal: Goal) -> Proof | None:
    """Prove or refute a goal; None if isl cannot decide it within its limits."""
    import islpy as isl

    if not _is_small(goal):
        return None
    text = _Translation(goal)
    try:
        models = isl.Set.read_from_str(_context(), text.formula)
        if models.is_empty():
            return Proved("isl")
        point = models.sample_point()
        values = [_coordinate(point, i) for i in range(len(text.unknowns))]
    except isl.Error:
        # The operation limit was exceeded. Do not reuse a context after an error.
        _threads.context = None
        return None
    model = dict(zip(text.unknowns, values, strict=True))
    found = goal.counterexample({v: model[v] for v in goal.unknowns})
    return None if found is None else Refuted(found)


def _is_small(goal: Goal) -> bool:
    """Return whether isl's sets are small; its operation limit ignores expanded disjunctions."""
    roots = (negate(goal.reduced), *goal.remaining)
    terms = {term for root in roots for term in postorder(root)}
    divisions = sum(isinstance(term, (FloorDiv, Mod)) for term in terms)
    choices = [len(term.children) for term in terms if isinstance(term, (Min, Max, Select))]
    pieces = prod([_pieces(root) for root in roots]) * prod(choices)
    return pieces <= _PIECES and divisions <= _DIVISIONS


def _pieces(p: Bool) -> int:
    """Return the number of disjuncts of a condition in disjunctive normal form."""
    match p:
        case Or(args):
            return sum(map(_pieces, args))
        case And(args):
            return prod(map(_pieces, args))
        case _:
            return 2 if isinstance(p, Ne) else 1


def _coordinate(point: islpy.Point, i: int) -> int:
    import islpy as isl

    return int(point.get_coordinate_val(isl.dim_type.set, i).to_str())


def _context() -> islpy.Context:
    """Return the isl context of this thread; its operation limit makes answers deterministic."""
    import islpy as isl

    context: islpy.Context | None = getattr(_threads, "context", None)
    if context is None:
        context = isl.Context()
        _threads.context = context
    context.reset_operations()
    context.set_max_operations(_OPERATIONS)
    return context


class _Translation:
    """The facts and the negated claim as one isl set over the unknowns."""

    def __init__(self, goal: Goal) -> None:
        self.texts: dict[Term, str] = {}
        self.names: dict[Expr, str] = {}
        for v in goal.unknowns:
            self.name(v)
        parts = [self.write(negate(goal.reduced))]
        parts += [self.write(p) for p in goal.remaining]
        self.unknowns = list(self.names)
        parts += [condition for v in self.unknowns for condition in self.declaration(v)]
        space = ", ".join(self.names.values())
        self.formula = f"{{ [{space}] : {' and '.join(parts)} }}"

    def name(self, unknown: Expr) -> str:
        """Return the coordinate of a symbol or of a term that is not affine."""
        return self.names.setdefault(unknown, f"x{len(self.names)}")

    def declaration(self, unknown: Expr) -> list[str]:
        """Return the constraints of a coordinate: bounds, congruence, definition of a select."""
        name, parts = self.names[unknown], list[str]()
        if unknown.lower is not None:
            parts.append(f"{name} >= {unknown.lower}")
        if unknown.upper is not None:
            parts.append(f"{name} <= {unknown.upper}")
        if unknown.modulus > 1:
            parts.append(f"{name} mod {unknown.modulus} = {unknown.remainder}")
        if isinstance(unknown, Select):
            p, a, b = (self.write(child) for child in unknown.children)
            parts.append(f"(({p}) and {name} = {a} or not ({p}) and {name} = {b})")
        return parts

    def write(self, root: Term) -> str:
        """Return a term in isl's syntax."""
        for term in postorder(root, self.texts.__contains__):
            if term not in self.texts:
                self.texts[term] = self.piece(term)
        return self.texts[root]

    def piece(self, term: Term) -> str:
        match term:
            case Const(value):
                return str(value)
            case BoolConst(value):
                return "(1 = 1)" if value else "(1 = 0)"
            case Add(terms, constant):
                return " + ".join([*[f"{c}*{self.texts[t]}" for t, c in terms], str(constant)])
            case FloorDiv(a, Const(d)) if d > 0:
                return f"floor(({self.texts[a]})/{d})"
            case Mod(a, Const(d)) if d > 0:
                return f"(({self.texts[a]}) mod {d})"
            case Min(args) | Max(args):
                function = "min" if isinstance(term, Min) else "max"
                return f"{function}({', '.join([self.texts[arg] for arg in args])})"
            case Expr():
                return self.name(term)
            case _:
                return self.condition(term)

    def condition(self, term: Term) -> str:
        match term:
            case Cmp():
                relation = "=" if isinstance(term, Eq) else "!=" if isinstance(term, Ne) else "<="
                # isl parses a comparison that starts with a parenthesis as a condition.
                return f"(0 + {self.texts[term.delta]} {relation} 0)"
            case And(args):
                return f"({' and '.join([self.texts[arg] for arg in args])})"
            case Or(args):
                return f"({' or '.join([self.texts[arg] for arg in args])})"
            case _:
                raise TypeError(f"unknown kind of term: {type(term).__name__}")
