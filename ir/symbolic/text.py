"""Printing of terms in Python syntax; `parse_expr` is the inverse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias, TypeVar

from .base import ALGEBRA, Bool, Expr, Order, Term, Var, structural_order, unsigned
from .predicates import And, BoolConst, Cmp, Eq, Le, Lt, Ne, Or
from .terms import Add, Const, FloorDiv, Max, Min, Mod, Mul, Select, linear_terms
from .traverse import postorder

# Precedence of operators; an operand of lower precedence gets parentheses.
_OR, _AND, _COMPARE, _SUM, _PRODUCT, _UNARY, _ATOM = range(7)

_UNNUMBERED = 1 << 32

WeightedTerms: TypeAlias = "Iterable[tuple[Expr, int]]"


class _Piece(NamedTuple):
    """The text of a subterm, its precedence, and its sort key among siblings."""

    text: str
    precedence: int
    key: tuple[tuple[int, ...], int, Order]


def to_text(
    e: Expr | Bool,
    names: Mapping[Var, str] | None = None,
    order: Mapping[Var, int] | None = None,
) -> str:
    """Return a term as text in Python syntax.

    Parameters
    ----------
    e : Expr or Bool
        The term.
    names : Mapping[Var, str], optional
        Names that replace the names of the symbols.
    order : Mapping[Var, int], optional
        A numbering of symbols by which terms are sorted, so that the text does not depend on the
        order in which symbols were created. Other symbols follow, by serial.

    Examples
    --------
    >>> from tilewright.ir.symbolic import var
    >>> n, i = var("n"), var("i")
    >>> to_text(3 + i * n - 2 * i, order={i: 0, n: 1})
    'i * n - i * 2 + 3'
    """
    return _Printer(names or {}, order or {}).text(e)


class _Printer:
    """Prints every subterm, children first."""

    def __init__(
        self, names: Mapping[Var, str], order: Mapping[Var, int], limit: int | None = None
    ) -> None:
        self.limit = limit
        self.names = names
        self.order = order
        self.pieces: dict[Term, _Piece] = {}

    def text(self, e: Term) -> str:
        for term in postorder(e):
            text, precedence = self.write(term)
            if self.limit is not None and len(text) > self.limit:
                text = text[: self.limit] + "..."
            self.pieces[term] = _Piece(text, precedence, self.key(term))
        return self.pieces[e].text

    def key(self, term: Term) -> tuple[tuple[int, ...], int, Order]:
        """Return a sort key: symbols, then products before their factors, then structure."""
        positions = tuple(sorted(self.position(v) for v in term.free))
        degree = len(term.factors) if isinstance(term, Mul) else 1
        return positions, -degree, self.structure(term)

    def position(self, symbol: Var) -> int:
        return self.order.get(symbol, _UNNUMBERED + symbol.serial)

    def structure(self, term: Term) -> Order:
        """Return a sort key that depends only on structure and symbol positions."""
        match term:
            case Var():
                return (0, self.position(term))
            case Const(value) | BoolConst(value):
                return structural_order((), 0, unsigned(value))
            case Add(terms, constant):
                return self.sum_structure(terms, constant)
            case Eq(delta=delta) | Ne(delta=delta):
                # The sign of the difference depends on the order in which symbols were created.
                terms, constant = linear_terms(delta)
                negated = [(t, -c) for t, c in terms]
                found = self.sum_structure(terms, constant), self.sum_structure(negated, -constant)
                return structural_order([min(found)], _TAGS[type(term)])
            case FloorDiv() | Mod() | Select():
                ordered = [self.pieces[child].key[2] for child in term.children]
                return structural_order(ordered, _TAGS[type(term)])
            case _:
                unordered = sorted(self.pieces[child].key[2] for child in term.children)
                return structural_order(unordered, _TAGS[type(term)])

    def sum_structure(self, terms: WeightedTerms, constant: int) -> Order:
        """Return a sort key of a sum."""
        parts = sorted((self.pieces[t].key[2], unsigned(c)) for t, c in terms)
        numbers = [c for _, c in parts]
        return structural_order([p for p, _ in parts], 1, unsigned(constant), *numbers)

    def write(self, term: Term) -> tuple[str, int]:
        match term:
            case Var():
                return self.names.get(term, term.name), _ATOM
            case Const(value):
                return str(value), _ATOM if value >= 0 else _UNARY
            case BoolConst(value):
                return str(value), _ATOM
            case Add(terms, constant):
                return self.sum(terms, constant)
            case Mul(factors):
                return self.product(factors), _PRODUCT
            case FloorDiv(a, d):
                return self.quotient(a, d)
            case Mod(a, d):
                return f"{self.operand(a)} % {self.operand(d)}", _PRODUCT
            case Min(args):
                return f"min({self.listing(args)})", _ATOM
            case Max(args):
                return f"max({self.listing(args)})", _ATOM
            case Select():
                inside = ", ".join(self.pieces[child].text for child in term.children)
                return f"select({inside})", _ATOM
            case _:
                return self.condition(term)

    def condition(self, term: Term) -> tuple[str, int]:
        match term:
            case Cmp():
                return self.comparison(term), _COMPARE
            case And(args):
                return self.connection(args, " and ", _AND), _AND
            case Or(args):
                return self.connection(args, " or ", _OR), _OR
            case _:
                raise TypeError(f"unknown kind of term: {type(term).__name__}")

    def operand(self, term: Term, precedence: int = _ATOM) -> str:
        piece = self.pieces[term]
        return piece.text if piece.precedence >= precedence else f"({piece.text})"

    def arranged(self, terms: Iterable[TermT]) -> list[TermT]:
        return sorted(terms, key=lambda term: self.pieces[term].key)

    def listing(self, terms: Iterable[Expr]) -> str:
        return ", ".join(self.pieces[term].text for term in self.arranged(terms))

    def connection(self, args: Iterable[Bool], word: str, precedence: int) -> str:
        return word.join(self.operand(arg, precedence + 1) for arg in self.arranged(args))

    def product(self, factors: Iterable[Expr], coefficient: int = 1) -> str:
        texts = [self.operand(factor) for factor in self.arranged(factors)]
        return " * ".join(texts if coefficient == 1 else [*texts, str(coefficient)])

    def quotient(self, a: Expr, d: Expr) -> tuple[str, int]:
        """Return a quotient as text, as ``ceildiv`` if the numerator has the form ``n + d - 1``."""
        terms, constant = linear_terms(a)
        if isinstance(d, Const) and terms and constant == d.value - 1 > 0:
            return f"ceildiv({self.sum(terms, 0)[0]}, {d.value})", _ATOM
        return f"{self.operand(a)} // {self.operand(d)}", _PRODUCT

    def sum(self, terms: WeightedTerms, constant: int) -> tuple[str, int]:
        """Return a sum as text: a positive term first if there is one, the constant last."""
        ordered = sorted(terms, key=lambda item: self.pieces[item[0]].key)
        lead = next((item for item in ordered if item[1] > 0), None)
        if lead is not None:
            ordered.remove(lead)
            ordered.insert(0, lead)
        parts: list[tuple[str, bool]] = []
        for term, coefficient in ordered:
            text, rounded_up = self.summand(
                term, abs(coefficient), constant if coefficient > 0 else 0
            )
            constant -= coefficient if rounded_up else 0
            parts.append((text, coefficient < 0))
        if constant or not parts:
            parts.append((str(abs(constant)), constant < 0))
        return _joined(parts), _SUM if len(parts) > 1 else self.alone(ordered, constant)

    def alone(self, ordered: list[tuple[Expr, int]], constant: int) -> int:
        """Return the precedence of a sum with one part."""
        if not ordered:
            return _ATOM if constant >= 0 else _UNARY
        term, coefficient = ordered[0]
        if coefficient == 1:
            return self.pieces[term].precedence
        return _PRODUCT

    def summand(self, term: Expr, coefficient: int, constant: int) -> tuple[str, bool]:
        """Return a product as text, and whether ``ceildiv`` uses up part of the constant."""
        if constant >= coefficient and isinstance(term, FloorDiv):
            terms, inner = linear_terms(term.numerator)
            divisor = term.divisor
            if inner == -1 and not isinstance(divisor, Const) and _not_negative(divisor):
                text = f"ceildiv({self.sum(terms, 0)[0]}, {self.pieces[divisor].text})"
                return (text if coefficient == 1 else f"{text} * {coefficient}"), True
        if coefficient == 1:
            return self.operand(term, _PRODUCT), False
        factors = term.factors if isinstance(term, Mul) else (term,)
        return self.product(factors, coefficient), False

    def comparison(self, term: Cmp) -> str:
        """Return a comparison as text: positive coefficients, a single constant on the right."""
        terms, constant = linear_terms(term.delta)
        constant -= term.shift
        left = [(t, c) for t, c in terms if c > 0]
        right = [(t, -c) for t, c in terms if c < 0]
        swap = not left or (isinstance(term, (Eq, Ne)) and bool(right) and self.later(left, right))
        first = self.sum(left, max(constant, 0))[0]
        second = self.sum(right, max(-constant, 0))[0]
        if swap:
            return f"{second} {_MIRRORED.get(term.symbol, term.symbol)} {first}"
        return f"{first} {term.symbol} {second}"

    def later(self, a: list[tuple[Expr, int]], b: list[tuple[Expr, int]]) -> bool:
        """Return whether the first side of an equality is printed after the second."""
        return min(self.pieces[t].key for t, _ in a) > min(self.pieces[t].key for t, _ in b)


TermT = TypeVar("TermT", bound=Term)
_MIRRORED = {"<": ">", "<=": ">="}
_TAGS: dict[type[Term], int] = {
    kind: tag
    for tag, kind in enumerate(
        (Mul, FloorDiv, Mod, Min, Max, Select, Eq, Ne, Le, Lt, And, Or), start=2
    )
}


def _not_negative(e: Expr) -> bool:
    return e.lower is not None and e.lower >= 0


def _joined(parts: list[tuple[str, bool]]) -> str:
    """Join summands with their signs."""
    (first, negative), *rest = parts
    text = _minus(first) if negative else first
    for part, minus in rest:
        text += f" - {part}" if minus else f" + {part}"
    return text


def _minus(text: str) -> str:
    """Negate a leading product; ``-a * b`` parses as ``(-a) * b``, which is equal."""
    return f"-{text}" if text.isidentifier() or text.isdecimal() else f"-({text})"


_MAX_SHOWN = 2000


def _shortened(term: Term) -> str:
    """Return text of limited length; a term with shared subterms may be exponentially long."""
    return _Printer({}, {}, _MAX_SHOWN).text(term)


ALGEBRA.text = _shortened
