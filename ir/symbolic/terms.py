"""The kinds of symbolic term: integers (`Expr`) and conditions on them (`Bool`).

Terms are immutable and interned: two terms with the same normal form are the same object, so
``==`` is identity and hashing is free. They are built by operators and by the functions of
`build`, which simplify; the classes are for ``match``. Each integer term carries what is known of
it for all values of its symbols: a constant interval and a congruence.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from operator import index
from typing import ClassVar, Final, TypeAlias

from .errors import UndecidedConditionError
from .intern import InternTable

SymInt: TypeAlias = "Expr | int"

Known: TypeAlias = tuple[int | None, int | None, int, int]
"""Lower bound, upper bound, modulus, remainder: ``value % modulus == remainder``.

Modulus 1 says nothing; modulus 0 means that the value *is* the remainder.
"""

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
        "text",
    )

    add: Callable[[SymInt, SymInt], Expr]
    subtract: Callable[[SymInt, SymInt], Expr]
    multiply: Callable[[SymInt, SymInt], Expr]
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


def structural_order(tag: int, *parts: int) -> int:
    """Position of a compound term in every sorted listing: above all symbols, same in every run.

    It depends on the structure and the serials of symbols alone, never on names or addresses.
    """
    # hash(-1) == hash(-2), so signs are folded into the lowest bit.
    folded = tuple([2 * part if part >= 0 else -2 * part - 1 for part in parts])
    return _COMPOUND_ORDER | (hash((tag, *folded)) & _ORDER_MASK)


class Term:
    """An integer term or a condition."""

    __slots__ = ("__weakref__", "_free", "order")
    order: Final[int]

    def __init__(self, order: int, children: tuple[Term, ...]) -> None:
        """Keep the place in sorted listings and the union of the children's symbols."""
        self.order = order
        self._free: frozenset[Var] = (
            children[0].free
            if len(children) == 1
            else frozenset[Var]().union(*[child.free for child in children])
        )

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
    """An integer known only at run time."""

    __slots__ = ("lower", "modulus", "remainder", "upper")
    lower: Final[int | None]
    upper: Final[int | None]
    modulus: Final[int]
    remainder: Final[int]

    def __init__(self, known: Known, order: int, children: tuple[Term, ...]) -> None:
        """Keep what is known of the value."""
        self.lower, self.upper, self.modulus, self.remainder = known
        super().__init__(order, children)

    def __add__(self, other: SymInt) -> Expr:
        if not isinstance(other, (int, Expr)):
            return NotImplemented
        return ALGEBRA.add(self, other)

    def __radd__(self, other: int) -> Expr:
        if not isinstance(other, int):
            return NotImplemented
        return ALGEBRA.add(self, other)

    def __sub__(self, other: SymInt) -> Expr:
        if not isinstance(other, (int, Expr)):
            return NotImplemented
        return ALGEBRA.subtract(self, other)

    def __rsub__(self, other: int) -> Expr:
        if not isinstance(other, int):
            return NotImplemented
        return ALGEBRA.subtract(other, self)

    def __mul__(self, other: SymInt) -> Expr:
        if not isinstance(other, (int, Expr)):
            return NotImplemented
        return ALGEBRA.multiply(self, other)

    def __rmul__(self, other: int) -> Expr:
        if not isinstance(other, int):
            return NotImplemented
        return ALGEBRA.multiply(self, other)

    def __floordiv__(self, other: SymInt) -> Expr:
        if not isinstance(other, (int, Expr)):
            return NotImplemented
        return ALGEBRA.floordiv(self, other)

    def __rfloordiv__(self, other: int) -> Expr:
        if not isinstance(other, int):
            return NotImplemented
        return ALGEBRA.floordiv(other, self)

    def __mod__(self, other: SymInt) -> Expr:
        if not isinstance(other, (int, Expr)):
            return NotImplemented
        return ALGEBRA.modulo(self, other)

    def __rmod__(self, other: int) -> Expr:
        if not isinstance(other, int):
            return NotImplemented
        return ALGEBRA.modulo(other, self)

    def __neg__(self) -> Expr:
        return ALGEBRA.multiply(self, -1)

    def __pos__(self) -> Expr:
        return self

    def __lt__(self, other: SymInt) -> Bool:
        if not isinstance(other, (int, Expr)):
            return NotImplemented
        return ALGEBRA.less(self, other)

    def __le__(self, other: SymInt) -> Bool:
        if not isinstance(other, (int, Expr)):
            return NotImplemented
        return ALGEBRA.less_equal(self, other)

    def __gt__(self, other: SymInt) -> Bool:
        if not isinstance(other, (int, Expr)):
            return NotImplemented
        return ALGEBRA.less(other, self)

    def __ge__(self, other: SymInt) -> Bool:
        if not isinstance(other, (int, Expr)):
            return NotImplemented
        return ALGEBRA.less_equal(other, self)


class Const(Expr):
    """An integer constant. Equal to, and hashed as, the Python integer."""

    __slots__ = ("value",)
    __match_args__ = ("value",)
    value: int

    def __new__(cls, value: int) -> Const:
        """Return the one object for this value."""
        found = _SMALL.get(value) or _CONSTANTS.get(value)
        if found is not None:
            return found
        value = index(value)
        node = super().__new__(cls)
        Expr.__init__(node, (value, value, 0, value), structural_order(0, value), ())
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
        super().__init__(known, self.serial, ())

    @property
    def free(self) -> frozenset[Var]:
        """The symbol itself. (Stored, it would be a reference cycle.)"""
        return frozenset((self,))


class Add(Expr):
    """A sum of products: ``sum(coefficient * term) + constant``."""

    __slots__ = ("constant", "terms")
    __match_args__ = ("terms", "constant")
    terms: Final[tuple[tuple[Expr, int], ...]]
    constant: Final[int]

    def __init__(self, terms: tuple[tuple[Expr, int], ...], constant: int, known: Known) -> None:
        """Hold terms sorted by `order`, none of them constant or a sum, no coefficient zero."""
        self.terms = terms
        self.constant = constant
        parts = [part for term, coefficient in terms for part in (term.order, coefficient)]
        super().__init__(known, structural_order(1, constant, *parts), self.children)

    @property
    def children(self) -> tuple[Expr, ...]:
        """The products, without their coefficients."""
        return tuple([term for term, _ in self.terms])


class Mul(Expr):
    """A product of at least two factors that are not constants, a factor repeated for a power."""

    __slots__ = ("factors",)
    __match_args__ = ("factors",)
    factors: Final[tuple[Expr, ...]]

    def __init__(self, factors: tuple[Expr, ...], known: Known) -> None:
        """Hold factors sorted by `order`."""
        self.factors = factors
        super().__init__(known, structural_order(2, *[f.order for f in factors]), factors)

    @property
    def children(self) -> tuple[Expr, ...]:
        """The factors."""
        return self.factors


class FloorDiv(Expr):
    """Division rounded towards minus infinity, as Python's ``//``."""

    __slots__ = ("divisor", "numerator")
    __match_args__ = ("numerator", "divisor")
    numerator: Final[Expr]
    divisor: Final[Expr]

    def __init__(self, numerator: Expr, divisor: Expr, known: Known) -> None:
        """Hold a quotient that no rule simplifies."""
        self.numerator = numerator
        self.divisor = divisor
        order = structural_order(3, numerator.order, divisor.order)
        super().__init__(known, order, (numerator, divisor))

    @property
    def children(self) -> tuple[Expr, ...]:
        """Numerator and divisor."""
        return (self.numerator, self.divisor)


class Mod(Expr):
    """Remainder with the sign of the divisor, as Python's ``%``."""

    __slots__ = ("divisor", "numerator")
    __match_args__ = ("numerator", "divisor")
    numerator: Final[Expr]
    divisor: Final[Expr]

    def __init__(self, numerator: Expr, divisor: Expr, known: Known) -> None:
        """Hold a remainder that no rule simplifies."""
        self.numerator = numerator
        self.divisor = divisor
        order = structural_order(4, numerator.order, divisor.order)
        super().__init__(known, order, (numerator, divisor))

    @property
    def children(self) -> tuple[Expr, ...]:
        """Numerator and divisor."""
        return (self.numerator, self.divisor)


class Min(Expr):
    """The least of at least two terms."""

    __slots__ = ("args",)
    __match_args__ = ("args",)
    args: Final[tuple[Expr, ...]]

    def __init__(self, args: tuple[Expr, ...], known: Known) -> None:
        """Hold arguments sorted by `order`."""
        self.args = args
        super().__init__(known, structural_order(5, *[a.order for a in args]), args)

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
        super().__init__(known, structural_order(6, *[a.order for a in args]), args)

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
        order = structural_order(7, condition.order, then.order, otherwise.order)
        super().__init__(known, order, (condition, then, otherwise))

    @property
    def children(self) -> tuple[Term, ...]:
        """Condition and both values."""
        return (self.condition, self.then, self.otherwise)


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


class BoolConst(Bool):
    """A decided condition; the two are `TRUE` and `FALSE`."""

    __slots__ = ("value",)
    __match_args__ = ("value",)
    value: bool

    def __new__(cls, value: bool) -> BoolConst:  # noqa: FBT001 - the value itself
        """Return `TRUE` or `FALSE`."""
        found = _DECIDED.get(bool(value))
        if found is not None:
            return found
        node = super().__new__(cls)
        Bool.__init__(node, structural_order(8, int(value)), ())
        node.value = bool(value)
        return _DECIDED.setdefault(node.value, node)

    def __init__(self, value: bool) -> None:  # noqa: FBT001 - the value itself
        """Do nothing: `__new__` returns complete terms."""

    def __bool__(self) -> bool:
        return self.value


_DECIDED: dict[bool, BoolConst] = {}
TRUE: Final = BoolConst(True)
FALSE: Final = BoolConst(False)


class Cmp(Bool):
    """A comparison, kept as ``delta`` against zero.

    ``left`` and ``right`` are the same comparison with every coefficient positive.
    """

    __slots__ = ("_sides", "delta")
    __match_args__ = ("left", "right")
    delta: Final[Expr]
    tag: ClassVar[int]
    shift: ClassVar[int] = 0
    symbol: ClassVar[str]

    def __init__(self, delta: Expr) -> None:
        """Hold a difference that no rule simplifies."""
        self.delta = delta
        self._sides: tuple[Expr, Expr] | None = None
        super().__init__(structural_order(self.tag, delta.order), (delta,))

    @property
    def children(self) -> tuple[Expr, ...]:
        """The difference that is compared with zero."""
        return (self.delta,)

    @property
    def left(self) -> Expr:
        """What stands before the comparison sign."""
        return self.sides()[0]

    @property
    def right(self) -> Expr:
        """What stands after the comparison sign."""
        return self.sides()[1]

    def sides(self) -> tuple[Expr, Expr]:
        """Left and right, built when first asked for."""
        if self._sides is None:
            self._sides = _split(self.delta, self.shift)
        return self._sides


class Eq(Cmp):
    """``left == right``, that is ``delta == 0``."""

    __slots__ = ()
    tag = 9
    symbol = "=="


class Ne(Cmp):
    """``left != right``, that is ``delta != 0``."""

    __slots__ = ()
    tag = 10
    symbol = "!="


class Le(Cmp):
    """``left <= right``, that is ``delta <= 0``."""

    __slots__ = ()
    tag = 11
    symbol = "<="


class Lt(Cmp):
    """``left < right``, that is ``delta <= 0`` with ``delta = left - right + 1``."""

    __slots__ = ()
    tag = 12
    shift = 1
    symbol = "<"


class And(Bool):
    """All of at least two conditions."""

    __slots__ = ("args",)
    __match_args__ = ("args",)
    args: Final[tuple[Bool, ...]]

    def __init__(self, args: tuple[Bool, ...]) -> None:
        """Hold conditions sorted by `order`."""
        self.args = args
        super().__init__(structural_order(13, *[a.order for a in args]), args)

    @property
    def children(self) -> tuple[Bool, ...]:
        """The conditions."""
        return self.args


class Or(Bool):
    """Any of at least two conditions."""

    __slots__ = ("args",)
    __match_args__ = ("args",)
    args: Final[tuple[Bool, ...]]

    def __init__(self, args: tuple[Bool, ...]) -> None:
        """Hold conditions sorted by `order`."""
        self.args = args
        super().__init__(structural_order(14, *[a.order for a in args]), args)

    @property
    def children(self) -> tuple[Bool, ...]:
        """The conditions."""
        return self.args


def _split(delta: Expr, shift: int) -> tuple[Expr, Expr]:
    """Separate ``delta = left - right + shift`` into parts without negative coefficients."""
    terms, constant = linear_terms(delta)
    constant -= shift
    left: Expr = Const(max(constant, 0))
    right: Expr = Const(max(-constant, 0))
    for term, coefficient in terms:
        if coefficient > 0:
            left = left + coefficient * term
        else:
            right = right - coefficient * term
    return left, right


def linear_terms(e: Expr) -> tuple[tuple[tuple[Expr, int], ...], int]:
    """View any term as ``sum(coefficient * product) + constant``."""
    if isinstance(e, Add):
        return e.terms, e.constant
    if isinstance(e, Const):
        return (), e.value
    return ((e, 1),), 0


def factors_of(e: Expr) -> tuple[Expr, ...]:
    """View a product, or anything else but a constant, as its factors."""
    return e.factors if isinstance(e, Mul) else (e,)
