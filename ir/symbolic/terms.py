"""Classes of integer terms."""

from __future__ import annotations

from operator import index
from typing import Final

from .base import Bool, Expr, Term, ValueRange, structural_order, union_of_symbols, unsigned
from .intern import InternTable


class Const(Expr):
    """An integer constant; it equals the Python integer and has the same hash."""

    __slots__ = ("value",)
    __match_args__ = ("value",)
    value: int

    def __new__(cls, value: int) -> Const:  # noqa: PYI034 - one object for each value
        """Return the unique object for this value."""
        found = _SMALL.get(value) or _CONSTANTS.get(value)
        if found is not None:
            return found
        value = index(value)
        node = super().__new__(cls)
        Expr.__init__(node, (value, value, 0, value), structural_order((), 0, unsigned(value)), ())
        node.value = value
        if -_SMALL_LIMIT <= value <= _SMALL_LIMIT:
            return _SMALL.setdefault(value, node)
        return _CONSTANTS.add(value, node)

    def __init__(self, value: int) -> None:
        """Do nothing; `__new__` returns initialized terms."""

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, int) and self.value == other)

    def __hash__(self) -> int:
        return hash(self.value)


_SMALL_LIMIT = 4096
_SMALL: dict[int, Const] = {}
_CONSTANTS: InternTable[Const] = InternTable()


class Add(Expr):
    """A sum of products: ``sum(coefficient * term) + constant``."""

    __slots__ = ("constant", "terms")
    __match_args__ = ("terms", "constant")
    terms: Final[tuple[tuple[Expr, int], ...]]
    constant: Final[int]

    def __init__(
        self, terms: tuple[tuple[Expr, int], ...], constant: int, value_range: ValueRange
    ) -> None:
        """Store terms sorted by `order`; no constants, no sums, no zero coefficients."""
        # Sums are by far the most frequent terms and few are ever sorted or searched, so
        # `__getattr__` computes order and symbols lazily.
        self.terms = terms
        self.constant = constant
        super().__init__(value_range)

    def __getattr__(self, name: str) -> object:
        """Compute ``order`` and ``_free`` on first access."""
        if name == "order":
            numbers = [unsigned(c) for _, c in self.terms]
            positions = [term.order for term, _ in self.terms]
            self.order = structural_order(positions, 1, unsigned(self.constant), *numbers)
            return self.order
        if name == "_free":
            self._free = union_of_symbols(self.children)
            return self._free
        raise AttributeError(name, name=name, obj=self)

    @property
    def children(self) -> tuple[Expr, ...]:
        """The products, without their coefficients."""
        return tuple([term for term, _ in self.terms])


class Mul(Expr):
    """A product of at least two non-constant factors; powers are repeated factors."""

    __slots__ = ("factors", "has_sum_rules")
    __match_args__ = ("factors",)
    factors: Final[tuple[Expr, ...]]
    has_sum_rules: bool

    def __init__(self, factors: tuple[Expr, ...], value_range: ValueRange) -> None:
        """Store factors sorted by `order`."""
        self.factors = factors
        self.has_sum_rules = True in [factor.has_sum_rules for factor in factors]
        super().__init__(value_range, structural_order([f.order for f in factors], 2), factors)

    @property
    def children(self) -> tuple[Expr, ...]:
        """The factors."""
        return self.factors


class FloorDiv(Expr):
    """A quotient rounded toward minus infinity, as Python's ``//``."""

    __slots__ = ("divisor", "numerator")
    has_sum_rules = True
    __match_args__ = ("numerator", "divisor")
    numerator: Final[Expr]
    divisor: Final[Expr]

    def __init__(self, numerator: Expr, divisor: Expr, value_range: ValueRange) -> None:
        """Store a quotient that no rule simplifies."""
        self.numerator = numerator
        self.divisor = divisor
        order = structural_order((numerator.order, divisor.order), 3)
        super().__init__(value_range, order, (numerator, divisor))

    @property
    def children(self) -> tuple[Expr, ...]:
        """Numerator and divisor."""
        return (self.numerator, self.divisor)


class Mod(Expr):
    """A remainder with the sign of the divisor, as Python's ``%``."""

    __slots__ = ("divisor", "numerator")
    has_sum_rules = True
    __match_args__ = ("numerator", "divisor")
    numerator: Final[Expr]
    divisor: Final[Expr]

    def __init__(self, numerator: Expr, divisor: Expr, value_range: ValueRange) -> None:
        """Store a remainder that no rule simplifies."""
        self.numerator = numerator
        self.divisor = divisor
        order = structural_order((numerator.order, divisor.order), 4)
        super().__init__(value_range, order, (numerator, divisor))

    @property
    def children(self) -> tuple[Expr, ...]:
        """Numerator and divisor."""
        return (self.numerator, self.divisor)


class Min(Expr):
    """The minimum of at least two terms."""

    __slots__ = ("args",)
    has_sum_rules = True
    __match_args__ = ("args",)
    args: Final[tuple[Expr, ...]]

    def __init__(self, args: tuple[Expr, ...], value_range: ValueRange) -> None:
        """Store arguments sorted by `order`."""
        self.args = args
        super().__init__(value_range, structural_order([a.order for a in args], 5), args)

    @property
    def children(self) -> tuple[Expr, ...]:
        """The arguments."""
        return self.args


class Max(Expr):
    """The maximum of at least two terms."""

    __slots__ = ("args",)
    __match_args__ = ("args",)
    args: Final[tuple[Expr, ...]]

    def __init__(self, args: tuple[Expr, ...], value_range: ValueRange) -> None:
        """Store arguments sorted by `order`."""
        self.args = args
        super().__init__(value_range, structural_order([a.order for a in args], 6), args)

    @property
    def children(self) -> tuple[Expr, ...]:
        """The arguments."""
        return self.args


class Select(Expr):
    """``then`` if the condition holds, else ``otherwise``; only the chosen one is evaluated."""

    __slots__ = ("condition", "otherwise", "then")
    __match_args__ = ("condition", "then", "otherwise")
    condition: Final[Bool]
    then: Final[Expr]
    otherwise: Final[Expr]

    def __init__(
        self, condition: Bool, then: Expr, otherwise: Expr, value_range: ValueRange
    ) -> None:
        """Store a choice whose condition is not constant."""
        self.condition = condition
        self.then = then
        self.otherwise = otherwise
        order = structural_order((condition.order, then.order, otherwise.order), 7)
        super().__init__(value_range, order, (condition, then, otherwise))

    @property
    def children(self) -> tuple[Term, ...]:
        """Condition and both values."""
        return (self.condition, self.then, self.otherwise)


def linear_terms(e: Expr) -> tuple[tuple[tuple[Expr, int], ...], int]:
    """Return any term as ``sum(coefficient * product) + constant``."""
    if type(e) is Add:  # hot path; neither class has subclasses
        return e.terms, e.constant
    if type(e) is Const:
        return (), e.value
    return ((e, 1),), 0


def factors_of(e: Expr) -> tuple[Expr, ...]:
    """Return the factors of a product, or the term itself as the only factor."""
    return e.factors if type(e) is Mul else (e,)
