"""The kinds of integer term."""

from __future__ import annotations

from itertools import count
from operator import index
from typing import Final

from .base import Bool, Expr, Known, Term, structural_order, union_of_symbols, unsigned
from .intern import InternTable


class Const(Expr):
    """An integer constant. Equal to, and hashed as, the Python integer."""

    __slots__ = ("value",)
    __match_args__ = ("value",)
    value: int

    def __new__(cls, value: int) -> Const:  # noqa: PYI034 - one object for each value
        """Return the one object for this value."""
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
        """Do nothing: `__new__` returns complete terms."""

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, int) and self.value == other)

    def __hash__(self) -> int:
        return hash(self.value)


_SMALL_LIMIT = 4096
_SMALL: dict[int, Const] = {}
_CONSTANTS: InternTable[Const] = InternTable()
_SERIALS = count(1)


class Var(Expr):
    """A symbol. Each has its own identity, whatever its name.

    ``lower`` and ``upper`` are its declared constant bounds (inclusive), ``multiple_of`` divides
    every value it takes.
    """

    __slots__ = ("multiple_of", "name", "serial")
    __match_args__ = ("name", "lower", "upper", "multiple_of")
    name: Final[str]
    multiple_of: Final[int]
    serial: Final[int]

    def __init__(self, name: str, known: Known) -> None:
        """Mint a fresh symbol; use `var`, which checks its parameters."""
        self.name = name
        self.multiple_of = known[2] or 1
        self.serial = next(_SERIALS)
        super().__init__(known, (0, self.serial), ())

    @property
    def free(self) -> frozenset[Var]:
        """The symbol itself; stored, it would be a reference cycle."""
        return frozenset((self,))


class Add(Expr):
    """A sum of products: ``sum(coefficient * term) + constant``."""

    __slots__ = ("constant", "terms")
    __match_args__ = ("terms", "constant")
    terms: Final[tuple[tuple[Expr, int], ...]]
    constant: Final[int]

    def __init__(self, terms: tuple[tuple[Expr, int], ...], constant: int, known: Known) -> None:
        """Hold terms sorted by `order`, none of them constant or a sum, no coefficient zero."""
        # Sums are by far the most frequent terms and few are ever sorted or searched, so order
        # and symbols wait until `__getattr__` is asked for them.
        self.terms = terms
        self.constant = constant
        super().__init__(known)

    def __getattr__(self, name: str) -> object:
        """Compute ``order`` and ``_free`` when they are first read."""
        if name == "order":
            numbers = [unsigned(c) for _, c in self.terms]
            places = [term.order for term, _ in self.terms]
            self.order = structural_order(places, 1, unsigned(self.constant), *numbers)
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
    """A product of at least two factors that are not constants, a factor repeated for a power."""

    __slots__ = ("factors", "joins")
    __match_args__ = ("factors",)
    factors: Final[tuple[Expr, ...]]
    joins: bool

    def __init__(self, factors: tuple[Expr, ...], known: Known) -> None:
        """Hold factors sorted by `order`."""
        self.factors = factors
        self.joins = True in [factor.joins for factor in factors]
        super().__init__(known, structural_order([f.order for f in factors], 2), factors)

    @property
    def children(self) -> tuple[Expr, ...]:
        """The factors."""
        return self.factors


class FloorDiv(Expr):
    """Division rounded towards minus infinity, as Python's ``//``."""

    __slots__ = ("divisor", "numerator")
    joins = True
    __match_args__ = ("numerator", "divisor")
    numerator: Final[Expr]
    divisor: Final[Expr]

    def __init__(self, numerator: Expr, divisor: Expr, known: Known) -> None:
        """Hold a quotient that no rule simplifies."""
        self.numerator = numerator
        self.divisor = divisor
        order = structural_order((numerator.order, divisor.order), 3)
        super().__init__(known, order, (numerator, divisor))

    @property
    def children(self) -> tuple[Expr, ...]:
        """Numerator and divisor."""
        return (self.numerator, self.divisor)


class Mod(Expr):
    """Remainder with the sign of the divisor, as Python's ``%``."""

    __slots__ = ("divisor", "numerator")
    joins = True
    __match_args__ = ("numerator", "divisor")
    numerator: Final[Expr]
    divisor: Final[Expr]

    def __init__(self, numerator: Expr, divisor: Expr, known: Known) -> None:
        """Hold a remainder that no rule simplifies."""
        self.numerator = numerator
        self.divisor = divisor
        order = structural_order((numerator.order, divisor.order), 4)
        super().__init__(known, order, (numerator, divisor))

    @property
    def children(self) -> tuple[Expr, ...]:
        """Numerator and divisor."""
        return (self.numerator, self.divisor)


class Min(Expr):
    """The least of at least two terms."""

    __slots__ = ("args",)
    joins = True
    __match_args__ = ("args",)
    args: Final[tuple[Expr, ...]]

    def __init__(self, args: tuple[Expr, ...], known: Known) -> None:
        """Hold arguments sorted by `order`."""
        self.args = args
        super().__init__(known, structural_order([a.order for a in args], 5), args)

    @property
    def children(self) -> tuple[Expr, ...]:
        """The arguments."""
        return self.args


class Max(Expr):
    """The greatest of at least two terms."""

    __slots__ = ("args",)
    __match_args__ = ("args",)
    args: Final[tuple[Expr, ...]]

    def __init__(self, args: tuple[Expr, ...], known: Known) -> None:
        """Hold arguments sorted by `order`."""
        self.args = args
        super().__init__(known, structural_order([a.order for a in args], 6), args)

    @property
    def children(self) -> tuple[Expr, ...]:
        """The arguments."""
        return self.args


class Select(Expr):
    """``then`` where the condition holds, else ``otherwise``; only the chosen one is evaluated."""

    __slots__ = ("condition", "otherwise", "then")
    __match_args__ = ("condition", "then", "otherwise")
    condition: Final[Bool]
    then: Final[Expr]
    otherwise: Final[Expr]

    def __init__(self, condition: Bool, then: Expr, otherwise: Expr, known: Known) -> None:
        """Hold a choice whose condition is not decided."""
        self.condition = condition
        self.then = then
        self.otherwise = otherwise
        order = structural_order((condition.order, then.order, otherwise.order), 7)
        super().__init__(known, order, (condition, then, otherwise))

    @property
    def children(self) -> tuple[Term, ...]:
        """Condition and both values."""
        return (self.condition, self.then, self.otherwise)


def linear_terms(e: Expr) -> tuple[tuple[tuple[Expr, int], ...], int]:
    """View any term as ``sum(coefficient * product) + constant``."""
    if type(e) is Add:  # neither class has subclasses, and no question is asked more often
        return e.terms, e.constant
    if type(e) is Const:
        return (), e.value
    return ((e, 1),), 0


def factors_of(e: Expr) -> tuple[Expr, ...]:
    """View a product, or anything else but a constant, as its factors."""
    return e.factors if type(e) is Mul else (e,)
