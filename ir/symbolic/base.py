"""What all terms share: identity, order, operators, and what is known of a value.

Terms are immutable and interned: two terms with the same normal form are the same object, so
``==`` is identity and hashing is free. They are built by operators and by the functions of
`build` and `conditions`, which simplify; the classes are for ``match``. Each integer term carries
what is known of it for all values of its symbols: a constant interval and a congruence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from .errors import UndecidedConditionError

if TYPE_CHECKING:
    from .terms import Var

Order: TypeAlias = tuple[int, ...]
"""Place in sorted listings: a number of the structure, then the serials of its symbols."""

Known: TypeAlias = tuple[int | None, int | None, int, int]
"""Lower bound, upper bound, modulus, remainder: ``value % modulus == remainder``.

Modulus 1 says nothing; modulus 0 means that the value *is* the remainder.
"""

_NO_SYMBOLS: frozenset[Var] = frozenset()
_COMPOUND_ORDER = 1 << 62
_ORDER_MASK = _COMPOUND_ORDER - 1


class Algebra:
    """What the operators of terms call; `build` and `text` fill it in when they are imported.

    It turns the dependency round: rules and builders use operators, so the classes that have the
    operators cannot import them.
    """

    __slots__ = (
        "add",
        "both",
        "either",
        "floordiv",
        "greatest",
        "least",
        "less",
        "less_equal",
        "modulo",
        "multiply",
        "negate",
        "select",
        "subtract",
        "sum",
        "text",
    )

    add: Callable[[SymInt, SymInt], Expr]
    subtract: Callable[[SymInt, SymInt], Expr]
    multiply: Callable[[SymInt, SymInt], Expr]
    sum: Callable[[Mapping[Expr, int], int], Expr]
    floordiv: Callable[[SymInt, SymInt], Expr]
    modulo: Callable[[SymInt, SymInt], Expr]
    least: Callable[[SymInt, SymInt], Expr]
    greatest: Callable[[SymInt, SymInt], Expr]
    select: Callable[[Bool, SymInt, SymInt], Expr]
    less: Callable[[SymInt, SymInt], Bool]
    less_equal: Callable[[SymInt, SymInt], Bool]
    both: Callable[[Bool, Bool], Bool]
    either: Callable[[Bool, Bool], Bool]
    negate: Callable[[Bool], Bool]
    text: Callable[[Term], str]


ALGEBRA: Final = Algebra()


def structural_order(parts: Iterable[Order], *numbers: int) -> Order:
    """Place of a compound term in every sorted listing: above all symbols, same in every run.

    The number stands for everything but which symbols occur: the kind, ``numbers`` (none
    negative), the parts, and where one symbol occurs several times. The serials follow in order of
    first occurrence. So places compare alike wherever symbols were made in the same order, however
    many others were made before or between; a number of the serials themselves would not.
    """
    symbols: Order = ()
    for part in parts:
        numbers += part[:1]
        symbols += part[1:]
    if len(symbols) > 1:
        distinct = tuple(dict.fromkeys(symbols))
        if len(distinct) < len(symbols):
            numbers += (len(distinct), *map(distinct.index, symbols))
            symbols = distinct
    return (_COMPOUND_ORDER | hash(numbers) & _ORDER_MASK, *symbols)


def unsigned(number: int) -> int:
    """Fold the sign into the lowest bit: ``hash(-1) == hash(-2)`` must not tie two orders."""
    return 2 * number if number >= 0 else -2 * number - 1


def union_of_symbols(terms: tuple[Term, ...]) -> frozenset[Var]:
    """The symbols that occur in any of the terms."""
    union = _NO_SYMBOLS
    for term in terms:
        symbols = term.free
        if symbols:
            union = union | symbols if union else symbols
    return union


class Term:
    """An integer term or a condition."""

    __slots__ = ("__weakref__", "_free", "order")
    order: Order
    _free: frozenset[Var]

    def __init__(self, order: Order, children: tuple[Term, ...]) -> None:
        """Keep the place in sorted listings and the union of the children's symbols."""
        self.order = order
        self._free = union_of_symbols(children)

    @property
    def free(self) -> frozenset[Var]:
        """The symbols that occur."""
        return self._free

    @property
    def children(self) -> tuple[Term, ...]:
        """The terms this one is built from, left to right."""
        return ()

    def __repr__(self) -> str:
        return ALGEBRA.text(self)

    def __copy__(self) -> Term:
        return self

    def __deepcopy__(self, memo: object) -> Term:
        return self


class Expr(Term):
    """An integer known only at run time.

    ``joins`` tells that a rule for sums may have something to say where the term is a summand.
    """

    __slots__ = ("lower", "modulus", "remainder", "upper")
    joins: bool = False
    lower: Final[int | None]
    upper: Final[int | None]
    modulus: Final[int]
    remainder: Final[int]

    def __init__(self, known: Known, order: Order = (), children: tuple[Term, ...] = ()) -> None:
        """Keep what is known of the value; a sum finds its order and symbols later by itself."""
        self.lower, self.upper, self.modulus, self.remainder = known
        if order:  # as the base class does; terms are made too often for one call more
            self.order = order
            self._free = union_of_symbols(children)

    if TYPE_CHECKING:
        # Identity, inherited from object, but a constant also equals the Python integer.
        def __eq__(self, other: object) -> bool: ...
        def __hash__(self) -> int: ...

    def __add__(self, other: SymInt) -> Expr:
        if not isinstance(other, OPERANDS):
            return NotImplemented
        return ALGEBRA.add(self, other)

    def __radd__(self, other: int) -> Expr:
        if not isinstance(other, INTEGER):
            return NotImplemented
        return ALGEBRA.add(self, other)

    def __sub__(self, other: SymInt) -> Expr:
        if not isinstance(other, OPERANDS):
            return NotImplemented
        return ALGEBRA.subtract(self, other)

    def __rsub__(self, other: int) -> Expr:
        if not isinstance(other, INTEGER):
            return NotImplemented
        return ALGEBRA.subtract(other, self)

    def __mul__(self, other: SymInt) -> Expr:
        if not isinstance(other, OPERANDS):
            return NotImplemented
        return ALGEBRA.multiply(self, other)

    def __rmul__(self, other: int) -> Expr:
        if not isinstance(other, INTEGER):
            return NotImplemented
        return ALGEBRA.multiply(self, other)

    def __floordiv__(self, other: SymInt) -> Expr:
        if not isinstance(other, OPERANDS):
            return NotImplemented
        return ALGEBRA.floordiv(self, other)

    def __rfloordiv__(self, other: int) -> Expr:
        if not isinstance(other, INTEGER):
            return NotImplemented
        return ALGEBRA.floordiv(other, self)

    def __mod__(self, other: SymInt) -> Expr:
        if not isinstance(other, OPERANDS):
            return NotImplemented
        return ALGEBRA.modulo(self, other)

    def __rmod__(self, other: int) -> Expr:
        if not isinstance(other, INTEGER):
            return NotImplemented
        return ALGEBRA.modulo(other, self)

    def __neg__(self) -> Expr:
        return ALGEBRA.multiply(self, -1)

    def __pos__(self) -> Expr:
        return self

    def __lt__(self, other: SymInt) -> Bool:
        if not isinstance(other, OPERANDS):
            return NotImplemented
        return ALGEBRA.less(self, other)

    def __le__(self, other: SymInt) -> Bool:
        if not isinstance(other, OPERANDS):
            return NotImplemented
        return ALGEBRA.less_equal(self, other)

    def __gt__(self, other: SymInt) -> Bool:
        if not isinstance(other, OPERANDS):
            return NotImplemented
        return ALGEBRA.less(other, self)

    def __ge__(self, other: SymInt) -> Bool:
        if not isinstance(other, OPERANDS):
            return NotImplemented
        return ALGEBRA.less_equal(other, self)


class Bool(Term):
    """A condition on symbolic integers."""

    __slots__ = ()

    def __and__(self, other: Bool) -> Bool:
        return ALGEBRA.both(self, other)

    def __or__(self, other: Bool) -> Bool:
        return ALGEBRA.either(self, other)

    def __invert__(self) -> Bool:
        return ALGEBRA.negate(self)

    def __bool__(self) -> bool:
        raise UndecidedConditionError(
            f"'{self}' is true for some values of its symbols and may be false for others",
            hint="ask prove(condition, facts), or build a new condition with &, | and ~",
        )


# Not spelled out at the uses: a type checker knows that callers obey, the interpreter does not.
# An object, not text: the fields of schedule steps are read at run time.
SymInt: TypeAlias = Expr | int
OPERANDS: tuple[type, ...] = (Expr, int)
INTEGER: tuple[type, ...] = (int,)
