"""The canonical form of programs: a token list without names, uids and provenance.

Binders are numbered in the order of their first occurrence, so two programs have equal tokens if
and only if they are alpha-equivalent. The structural hash is the hash of the tokens.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final, assert_never

from .loop.nodes import Attribute, Attributes
from .symbolic import (
    Add,
    And,
    Bool,
    BoolConst,
    Const,
    Eq,
    Expr,
    Facts,
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

_NUMBERED: Final = re.compile(r"([%@$])(\d+)")


class Canon:
    """The token list of one program, under construction.

    Variables are ``%0``, ``%1``, ...; buffers ``@0``, ...; graph values ``$0``, ... With
    ``explain``, the location of every token is recorded.
    """

    def __init__(self, *, explain: bool = False) -> None:
        """Create an empty token list."""
        self.tokens: list[str] = []
        self.locations: list[str] = []
        self._explain = explain
        self._path: list[str] = []
        self._numbers: dict[object, str] = {}
        self._counts = {"%": 0, "@": 0, "$": 0}
        self._names: dict[str, str] = {}
        self._keys: dict[Expr | Bool, str] = {}

    def emit(self, token: str) -> None:
        """Append a token."""
        self.tokens.append(token)
        if self._explain:
            self.locations.append(", ".join(self._path))

    @contextmanager
    def inside(self, location: str) -> Generator[None]:
        """Add a component to the location of the tokens emitted in this context."""
        self._path.append(location)
        yield
        self._path.pop()

    def number(self, kind: str, node: object, name: str) -> str:
        """Return the number of a binder, assigning the next one at its first occurrence."""
        found = self._numbers.get(node)
        if found is None:
            found = self._numbers[node] = f"{kind}{self._counts[kind]}"
            self._counts[kind] += 1
            self._names[found] = name
        return found

    def symbols(self, terms: Iterable[Expr]) -> None:
        """Number the terms that are plain symbols: the symbols bound by a parameter's shape."""
        for term in terms:
            if isinstance(term, Var) and term not in self._numbers:
                self._symbol(term)

    def unknown(self, terms: Iterable[Expr]) -> bool:
        """Return whether some symbol of the terms is not numbered yet."""
        return any(v not in self._numbers for term in terms for v in term.free)

    def _symbol(self, symbol: Var) -> str:
        key = self.number("%", symbol, symbol.name)
        self.emit(f"symbol {key} in {symbol.lower}..{symbol.upper} by {symbol.multiple_of}")
        return key

    def symbol_named(self, name: str) -> str:
        """Return the number of the first symbol with this name, or the name if there is none."""
        numbered = (key for key, own in self._names.items() if key[0] == "%" and own == name)
        return next(numbered, name)

    def bind(self, variable: Var) -> str:
        """Number a loop or iteration variable, whose range follows from its extent."""
        return self.number("%", variable, variable.name)

    def readable(self, token: str) -> str:
        """Replace the numbers in a token by the original names, for messages."""
        return _NUMBERED.sub(lambda m: self._names.get(m[0], m[0]), token)

    def term(self, term: Expr | Bool) -> str:
        """Return the key of a term; alpha-equivalent terms have equal keys."""
        found = self._keys.get(term)
        if found is None:
            found = self._keys[term] = self._key(term)
        return found

    def terms(self, terms: Iterable[Expr]) -> str:
        """Return the key of a sequence of terms."""
        return ", ".join([self.term(t) for t in terms])

    def _sorted(self, terms: Iterable[Expr | Bool]) -> str:
        return ", ".join(sorted([self.term(t) for t in terms]))

    def _key(self, term: Expr | Bool) -> str:
        match term:
            case Const(value=value) | BoolConst(value=value):
                return str(value)
            case Var():
                return self._numbers.get(term) or self._symbol(term)
            case Add(terms=terms, constant=constant):
                parts = sorted([f"{c}*{self.term(t)}" for t, c in terms])
                return f"({' + '.join(parts)} + {constant})"
            case Mul(factors=factors):
                return f"({'*'.join(sorted([self.term(f) for f in factors]))})"
            case FloorDiv(numerator=a, divisor=b):
                return f"({self.term(a)} // {self.term(b)})"
            case Mod(numerator=a, divisor=b):
                return f"({self.term(a)} % {self.term(b)})"
            case Min(args=args):
                return f"min({self._sorted(args)})"
            case Max(args=args):
                return f"max({self._sorted(args)})"
            case Select(condition=condition, then=then, otherwise=otherwise):
                return f"select({self.term(condition)}, {self.terms((then, otherwise))})"
            case _:
                return self._predicate(term)

    def _predicate(self, term: Expr | Bool) -> str:
        match term:
            case Eq(left=left, right=right):
                return f"({' == '.join(sorted([self.term(left), self.term(right)]))})"
            case Ne(left=left, right=right):
                return f"({' != '.join(sorted([self.term(left), self.term(right)]))})"
            case Le(left=left, right=right):
                return f"({self.term(left)} <= {self.term(right)})"
            case Lt(left=left, right=right):
                return f"({self.term(left)} < {self.term(right)})"
            case And(args=args):
                return f"all({self._sorted(args)})"
            case Or(args=args):
                return f"any({self._sorted(args)})"
            case _:
                raise TypeError(type(term).__name__)

    def attribute(self, value: Attribute) -> str:
        """Return the key of an attribute value; 1, 1.0, True and "1" have different keys."""
        match value:
            case Expr():
                return f"expr {self.term(value)}"
            case tuple():
                return f"({', '.join([self.attribute(v) for v in value])})"
            case bool() | int() | float() | str():
                return repr(value)
            case _:
                assert_never(value)

    def attributes(self, kind: str, attributes: Attributes) -> None:
        """Append attributes, sorted by key."""
        for key, value in sorted(attributes, key=_first):
            self.emit(f"{kind} {key}={self.attribute(value)}")

    def facts(self, facts: Facts) -> None:
        """Append facts and hints; their order and their origins are ignored."""
        listed = (*facts, *facts.hints)
        lines = {f"fact {self.term(f.predicate)} by {f.discharge.name}" for f in listed}
        for line in sorted(lines):
            self.emit(line)

    def digest(self) -> str:
        """Return the SHA-256 of the tokens, in hexadecimal."""
        return hashlib.sha256("\n".join(self.tokens).encode()).hexdigest()


def _first(entry: tuple[str, Attribute]) -> str:
    return entry[0]


@dataclass(frozen=True, slots=True)
class Difference:
    """The first difference between two programs.

    ``left`` and ``right`` are the differing tokens; None if that program has no more tokens.
    """

    location: str
    left: str | None
    right: str | None

    def __str__(self) -> str:
        """Return one line of text."""
        left, right = (repr(t) if t is not None else "nothing" for t in (self.left, self.right))
        return f"{self.location or 'program'}: {left} != {right}"


def first_difference(write: Callable[[Canon, int], None]) -> Difference | None:
    """Compare two programs; ``write(canon, k)`` appends the tokens of program ``k`` (0 or 1)."""
    canons = Canon(explain=True), Canon(explain=True)
    for k, canon in enumerate(canons):
        write(canon, k)
    for position, pair in enumerate(zip_longest(canons[0].tokens, canons[1].tokens)):
        if pair[0] != pair[1]:
            return _difference(canons, position, pair)
    return None


def _difference(
    canons: Sequence[Canon], position: int, pair: tuple[str | None, str | None]
) -> Difference:
    locations = [c.locations[position] for c in canons if position < len(c.locations)]
    left, right = (
        None if token is None else canon.readable(token)
        for token, canon in zip(pair, canons, strict=True)
    )
    return Difference(max(locations, key=len), left, right)
