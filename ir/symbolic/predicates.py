"""Classes of conditions on integers."""

from __future__ import annotations

from typing import ClassVar, Final

from .base import Bool, Expr, structural_order
from .terms import Const, linear_terms


class BoolConst(Bool):
    """A constant condition, `TRUE` or `FALSE`."""

    __slots__ = ("value",)
    __match_args__ = ("value",)
    value: bool

    def __new__(cls, value: bool) -> BoolConst:  # noqa: FBT001, PYI034 - one object per value
        """Return `TRUE` or `FALSE`."""
        found = _DECIDED.get(bool(value))
        if found is not None:
            return found
        node = super().__new__(cls)
        Bool.__init__(node, structural_order((), 8, int(value)), ())
        node.value = bool(value)
        return _DECIDED.setdefault(node.value, node)

    def __init__(self, value: bool) -> None:  # noqa: FBT001 - the value itself
        """Do nothing; `__new__` returns initialized terms."""

    def __bool__(self) -> bool:
        return self.value


_DECIDED: dict[bool, BoolConst] = {}
TRUE: Final = BoolConst(True)
FALSE: Final = BoolConst(False)


class Cmp(Bool):
    """A comparison, stored as a comparison of ``delta`` with zero.

    ``left`` and ``right`` express the same comparison with positive coefficients.
    """

    __slots__ = ("_sides", "delta")
    __match_args__ = ("left", "right")
    delta: Final[Expr]
    tag: ClassVar[int]
    shift: ClassVar[int] = 0
    symbol: ClassVar[str]

    def __init__(self, delta: Expr) -> None:
        """Store a difference that no rule simplifies."""
        self.delta = delta
        self._sides: tuple[Expr, Expr] | None = None
        super().__init__(structural_order((delta.order,), self.tag), (delta,))

    @property
    def children(self) -> tuple[Expr, ...]:
        """The difference that is compared with zero."""
        return (self.delta,)

    @property
    def left(self) -> Expr:
        """The left side."""
        return self.sides()[0]

    @property
    def right(self) -> Expr:
        """The right side."""
        return self.sides()[1]

    def sides(self) -> tuple[Expr, Expr]:
        """Return the left and right side; computed on first use."""
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
    """A conjunction of at least two conditions."""

    __slots__ = ("args",)
    __match_args__ = ("args",)
    args: Final[tuple[Bool, ...]]

    def __init__(self, args: tuple[Bool, ...]) -> None:
        """Store conditions sorted by `order`."""
        self.args = args
        super().__init__(structural_order([a.order for a in args], 13), args)

    @property
    def children(self) -> tuple[Bool, ...]:
        """The conditions."""
        return self.args


class Or(Bool):
    """A disjunction of at least two conditions."""

    __slots__ = ("args",)
    __match_args__ = ("args",)
    args: Final[tuple[Bool, ...]]

    def __init__(self, args: tuple[Bool, ...]) -> None:
        """Store conditions sorted by `order`."""
        self.args = args
        super().__init__(structural_order([a.order for a in args], 14), args)

    @property
    def children(self) -> tuple[Bool, ...]:
        """The conditions."""
        return self.args


def _split(delta: Expr, shift: int) -> tuple[Expr, Expr]:
    """Split ``delta = left - right + shift`` into sides without negative coefficients."""
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


def conjuncts(predicate: Bool) -> tuple[Bool, ...]:
    """Return the parts of a conjunction; the predicate itself if it is not one; none of TRUE.

    Examples
    --------
    >>> from tilewright.ir.symbolic import all_of, var
    >>> m, n = var("m"), var("n")
    >>> conjuncts(all_of(m < 8, n < 16))
    (m < 8, n < 16)
    """
    if predicate is TRUE:
        return ()
    return predicate.args if isinstance(predicate, And) else (predicate,)
