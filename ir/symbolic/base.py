"""Base classes of terms: identity, order, operators, value ranges.

Terms are immutable and interned: two terms with the same normal form are the same object, so
``==`` is identity and hashing is cheap. Operators and the functions of `build` and `conditions`
create and simplify terms; the classes are for ``match``. Each integer term stores a constant
interval and a congruence that hold for all values of its symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

from .errors import OperandError, UndecidedConditionError

Order: TypeAlias = tuple[int, ...]
"""A sort key: a hash of the structure, then the serials of the symbols."""

ValueRange: TypeAlias = tuple[int | None, int | None, int, int]
"""Lower bound, upper bound, modulus, remainder: ``value % modulus == remainder``.

Modulus 1 means no congruence; modulus 0 means that the value *is* the remainder.
"""

_NO_SYMBOLS: frozenset[Var] = frozenset()
_SERIALS = count(1)
_COMPOUND_ORDER = 1 << 62
_ORDER_MASK = _COMPOUND_ORDER - 1


class Algebra:
    """Implementations of the operators of terms; set by `build`, `conditions` and `text`.

    The indirection breaks an import cycle: rules and constructors use operators, so the classes
    that define the operators cannot import the constructors.
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
    """Return the sort key of a compound term: greater than all symbols, equal in every run.

    The first number is a hash of all but the identity of the symbols: the class, ``numbers``
    (non-negative), the parts, and the positions of repeated symbols. The serials follow in order
    of first occurrence. So the order depends only on the order in which symbols were created, not
    on how many other symbols were created; a hash of the serials would not have this property.
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
    """Encode the sign in the lowest bit, because ``hash(-1) == hash(-2)``."""
    return 2 * number if number >= 0 else -2 * number - 1


def union_of_symbols(terms: tuple[Term, ...]) -> frozenset[Var]:
    """Return the symbols that occur in any of the terms."""
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
        """Store the sort key and the union of the children's symbols."""
        self.order = order
        self._free = union_of_symbols(children)

    @property
    def free(self) -> frozenset[Var]:
        """The symbols that occur."""
        return self._free

    @property
    def children(self) -> tuple[Term, ...]:
        """The direct subterms, left to right."""
        return ()

    def __repr__(self) -> str:
        return ALGEBRA.text(self)

    def __copy__(self) -> Term:
        return self

    def __deepcopy__(self, memo: object) -> Term:
        return self


_DIVISION: Final = "write // for the quotient rounded down, or ceildiv(a, b) rounded up"
_POWER: Final = "write a product, such as n * n"


def unsupported(term: Expr, other: object) -> Any:
    """Raise an error if an operand is a float or a text; let Python ask other operands."""
    if isinstance(other, float | complex | str | bytes | None):
        raise OperandError(
            f"expected an integer as the other operand of '{term}', got {other!r}",
            hint="pass an int or a symbolic expression",
        )
    return NotImplemented


class Expr(Term):
    """An integer term.

    ``has_sum_rules`` is true if rules for sums can match this term as a summand.
    """

    __slots__ = ("lower", "modulus", "remainder", "upper")
    has_sum_rules: bool = False
    lower: Final[int | None]
    upper: Final[int | None]
    modulus: Final[int]
    remainder: Final[int]

    def __init__(
        self, value_range: ValueRange, order: Order = (), children: tuple[Term, ...] = ()
    ) -> None:
        """Store the value range; a sum computes its order and symbols lazily."""
        self.lower, self.upper, self.modulus, self.remainder = value_range
        if order:  # like the base class, without the cost of a call
            self.order = order
            self._free = union_of_symbols(children)

    if TYPE_CHECKING:
        # Identity, inherited from object; a constant also equals the Python integer.
        def __eq__(self, other: object) -> bool: ...
        def __hash__(self) -> int: ...

    def __add__(self, other: SymInt) -> Expr:
        if not isinstance(other, OPERANDS):
            return unsupported(self, other)
        return ALGEBRA.add(self, other)

    def __radd__(self, other: int) -> Expr:
        if not isinstance(other, INTEGER):
            return unsupported(self, other)
        return ALGEBRA.add(self, other)

    def __sub__(self, other: SymInt) -> Expr:
        if not isinstance(other, OPERANDS):
            return unsupported(self, other)
        return ALGEBRA.subtract(self, other)

    def __rsub__(self, other: int) -> Expr:
        if not isinstance(other, INTEGER):
            return unsupported(self, other)
        return ALGEBRA.subtract(other, self)

    def __mul__(self, other: SymInt) -> Expr:
        if not isinstance(other, OPERANDS):
            return unsupported(self, other)
        return ALGEBRA.multiply(self, other)

    def __rmul__(self, other: int) -> Expr:
        if not isinstance(other, INTEGER):
            return unsupported(self, other)
        return ALGEBRA.multiply(self, other)

    def __floordiv__(self, other: SymInt) -> Expr:
        if not isinstance(other, OPERANDS):
            return unsupported(self, other)
        return ALGEBRA.floordiv(self, other)

    def __rfloordiv__(self, other: int) -> Expr:
        if not isinstance(other, INTEGER):
            return unsupported(self, other)
        return ALGEBRA.floordiv(other, self)

    def __mod__(self, other: SymInt) -> Expr:
        if not isinstance(other, OPERANDS):
            return unsupported(self, other)
        return ALGEBRA.modulo(self, other)

    def __rmod__(self, other: int) -> Expr:
        if not isinstance(other, INTEGER):
            return unsupported(self, other)
        return ALGEBRA.modulo(other, self)

    def __truediv__(self, other: object) -> NoReturn:
        raise OperandError(f"'{self} / {other}' is not an integer term", hint=_DIVISION)

    def __rtruediv__(self, other: object) -> NoReturn:
        raise OperandError(f"'{other} / {self}' is not an integer term", hint=_DIVISION)

    def __pow__(self, other: object) -> NoReturn:
        raise OperandError(f"'{self} ** {other}' is not an integer term", hint=_POWER)

    def __rpow__(self, other: object) -> NoReturn:
        raise OperandError(f"'{other} ** {self}' is not an integer term", hint=_POWER)

    def __neg__(self) -> Expr:
        return ALGEBRA.multiply(self, -1)

    def __pos__(self) -> Expr:
        return self

    def __lt__(self, other: SymInt) -> Bool:
        if not isinstance(other, OPERANDS):
            return unsupported(self, other)
        return ALGEBRA.less(self, other)

    def __le__(self, other: SymInt) -> Bool:
        if not isinstance(other, OPERANDS):
            return unsupported(self, other)
        return ALGEBRA.less_equal(self, other)

    def __gt__(self, other: SymInt) -> Bool:
        if not isinstance(other, OPERANDS):
            return unsupported(self, other)
        return ALGEBRA.less(other, self)

    def __ge__(self, other: SymInt) -> Bool:
        if not isinstance(other, OPERANDS):
            return unsupported(self, other)
        return ALGEBRA.less_equal(other, self)


class Var(Expr):
    """A symbol; symbols of equal name are different.

    ``lower`` and ``upper`` are the declared constant bounds (inclusive); ``multiple_of`` divides
    its value.
    """

    __slots__ = ("multiple_of", "name", "serial")
    __match_args__ = ("name", "lower", "upper", "multiple_of")
    name: Final[str]
    multiple_of: Final[int]
    serial: Final[int]

    def __init__(self, name: str, value_range: ValueRange) -> None:
        """Create a symbol; use `var`, which checks its parameters."""
        self.name = name
        self.multiple_of = value_range[2] or 1
        self.serial = next(_SERIALS)
        super().__init__(value_range, (0, self.serial), ())

    @property
    def free(self) -> frozenset[Var]:
        """The symbol itself; storing it would create a reference cycle."""
        return frozenset((self,))


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
            f"the value of '{self}' depends on its symbols, so it cannot be used as a Python bool",
            hint="call prove(condition, facts), or combine conditions with &, | and ~",
        )


# `isinstance` uses these tuples, because type checkers report explicit types as unnecessary.
# SymInt is an object rather than a string because fields of schedule steps are resolved at run
# time.
SymInt: TypeAlias = Expr | int
OPERANDS: tuple[type, ...] = (Expr, int)
INTEGER: tuple[type, ...] = (int,)
