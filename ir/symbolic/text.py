"""Terms as text: Python syntax that `parse_expr` reads back to the same term."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias, TypeVar

from .base import ALGEBRA, Bool, Expr, Order, Term, structural_order, unsigned
from .predicates import And, BoolConst, Cmp, Eq, Le, Lt, Ne, Or
from .terms import Add, Const, FloorDiv, Max, Min, Mod, Mul, Select, Var, linear_terms
from .traverse import postorder

# How tightly an operator binds; an operand that binds less tightly gets parentheses.
_OR, _AND, _COMPARE, _SUM, _PRODUCT, _UNARY, _ATOM = range(7)

_UNNUMBERED = 1 << 32

Terms: TypeAlias = "Iterable[tuple[Expr, int]]"


class _Piece(NamedTuple):
    """The text of a subterm, how tightly it binds, and what sorts it among its neighbours."""

    text: str
    binding: int
    key: tuple[tuple[int, ...], int, Order]


def to_text(
    e: Expr | Bool,
    names: Mapping[Var, str] | None = None,
    order: Mapping[Var, int] | None = None,
) -> str:
    """Print a term in Python syntax.

    Parameters
    ----------
    e : Expr or Bool
        The term.
    names : Mapping[Var, str], optional
        Names to print instead of the symbols' own.
    order : Mapping[Var, int], optional
        The printer's own numbering of symbols. Terms are sorted by it, so that text does not
        depend on when symbols were made; symbols outside of it come last, by serial.

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
            text, binding = self.write(term)
            if self.limit is not None and len(text) > self.limit:
                text = text[: self.limit] + "..."
            self.pieces[term] = _Piece(text, binding, self.key(term))
        return self.pieces[e].text

    def key(self, term: Term) -> tuple[tuple[int, ...], int, Order]:
        """Sort by the symbols that occur, then products before their factors, then by structure."""
        places = tuple(sorted(self.place(v) for v in term.free))
        degree = len(term.factors) if isinstance(term, Mul) else 1
        return places, -degree, self.structure(term)

    def place(self, symbol: Var) -> int:
        return self.order.get(symbol, _UNNUMBERED + symbol.serial)

    def structure(self, term: Term) -> Order:
        """What depends on structure and on places alone."""
        match term:
            case Var():
                return (0, self.place(term))
            case Const(value) | BoolConst(value):
                return structural_order((), 0, unsigned(value))
            case Add(terms, constant):
                parts = sorted((self.pieces[t].key[2], unsigned(c)) for t, c in terms)
                numbers = [c for _, c in parts]
                return structural_order([p for p, _ in parts], 1, unsigned(constant), *numbers)
            case FloorDiv() | Mod() | Select():
                ordered = [self.pieces[child].key[2] for child in term.children]
                return structural_order(ordered, _TAGS[type(term)])
            case _:
                unordered = sorted(self.pieces[child].key[2] for child in term.children)
                return structural_order(unordered, _TAGS[type(term)])

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

    def operand(self, term: Term, binding: int = _ATOM) -> str:
        piece = self.pieces[term]
        return piece.text if piece.binding >= binding else f"({piece.text})"

    def arranged(self, terms: Iterable[TermT]) -> list[TermT]:
        return sorted(terms, key=lambda term: self.pieces[term].key)

    def listing(self, terms: Iterable[Expr]) -> str:
        return ", ".join(self.pieces[term].text for term in self.arranged(terms))

    def connection(self, args: Iterable[Bool], word: str, binding: int) -> str:
        return word.join(self.operand(arg, binding + 1) for arg in self.arranged(args))

    def product(self, factors: Iterable[Expr], coefficient: int = 1) -> str:
        texts = [self.operand(factor) for factor in self.arranged(factors)]
        return " * ".join(texts if coefficient == 1 else [*texts, str(coefficient)])

    def quotient(self, a: Expr, d: Expr) -> tuple[str, int]:
        """Write a quotient, rounded up where the numerator says so."""
        terms, constant = linear_terms(a)
        if isinstance(d, Const) and terms and constant == d.value - 1 > 0:
            return f"ceildiv({self.sum(terms, 0)[0]}, {d.value})", _ATOM
        return f"{self.operand(a)} // {self.operand(d)}", _PRODUCT

    def sum(self, terms: Terms, constant: int) -> tuple[str, int]:
        """Write a sum, a positive term first if there is one, the constant last."""
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
        """How tightly a sum of one part binds."""
        if not ordered:
            return _ATOM if constant >= 0 else _UNARY
        term, coefficient = ordered[0]
        if coefficient == 1:
            return self.pieces[term].binding
        return _PRODUCT

    def summand(self, term: Expr, coefficient: int, constant: int) -> tuple[str, bool]:
        """Write one product; whether it was rounded up, taking its share of the sum's constant."""
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
        """Write a comparison with positive coefficients, a lone constant on the right."""
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
        """Whether the first side of an equality reads better behind the second."""
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
    """Negate a leading product; ``-a * b`` reads as ``(-a) * b``, the same value for products."""
    return f"-{text}" if text.isidentifier() or text.isdecimal() else f"-({text})"


_SHOWN = 2000


def _shown(term: Term) -> str:
    """Text for a message: a term that shares subterms may be exponentially long written out."""
    return _Printer({}, {}, _SHOWN).text(term)


ALGEBRA.text = _shown
