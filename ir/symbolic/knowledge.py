"""Facts made ready for use.

Facts are compiled once per set. Equalities and divisibilities become substitutions into a
*refined* world: ``t`` with ``b * s == t`` becomes ``b * s``, ``n`` with ``n % 4 == 0`` becomes
``4 * q``, a symbol with a tighter range becomes a symbol declared with that range. There the
constructors simplify by themselves; what remains are inequalities, which `FactKnowledge` uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from .base import Bool, Expr, SymInt
from .build import var
from .conditions import equality_of
from .errors import InvalidSymbolError
from .predicates import FALSE, TRUE, And, Cmp, Eq, Le, Lt
from .rule import Knowledge
from .search import Search
from .terms import Const, Mod, Var, linear_terms
from .traverse import substitute

_ROUNDS = 4


@dataclass(slots=True)
class Refinement:
    """The substitutions into the refined world and back, and what remains of the facts there."""

    forward: dict[Var, Expr] = field(default_factory=dict[Var, Expr])
    backward: dict[Var, tuple[Expr, Expr, Expr]] = field(
        default_factory=dict[Var, tuple[Expr, Expr, Expr]]
    )
    """Each new symbol ``q`` as ``(v, d, k)`` with ``v == d * q + k`` in older symbols."""
    remaining: list[Bool] = field(default_factory=list[Bool])
    contradictory: bool = False

    def replace(self, symbol: Var, value: Expr) -> None:
        """Compose one more substitution."""
        step = {symbol: value}
        for key, old in self.forward.items():
            self.forward[key] = substitute(old, step)
        self.forward[symbol] = value
        self.remaining = [substitute(p, step) for p in self.remaining]


def refine(predicates: Iterable[Bool]) -> Refinement:
    """Compile a set of conditions."""
    world = Refinement(remaining=sorted(predicates, key=lambda p: p.order))
    for _ in range(_ROUNDS):
        changed = _solve_equalities(world) | _tighten(world)
        world.remaining = list(dict.fromkeys(_flat(world.remaining)))
        if FALSE in world.remaining:
            world.contradictory = True
        if world.contradictory or not changed:
            break
    return world


def _flat(predicates: Iterable[Bool]) -> Iterator[Bool]:
    for p in predicates:
        if isinstance(p, And):
            yield from p.args
        elif p is not TRUE:
            yield p


def _solve_equalities(world: Refinement) -> bool:
    """Use every equality that determines a symbol, each time with what earlier ones gave."""
    changed, again = False, True
    while again:
        again = False
        for p in world.remaining:
            if isinstance(p, Eq) and _solve(world, p):
                changed = again = True
                break
    return changed


def _solve(world: Refinement, p: Eq) -> bool:
    solution = _determined(p.delta)
    if solution is not None:
        symbol, value = solution
        world.remaining.remove(p)
        declared = _declared(symbol, value)
        world.replace(symbol, value)
        world.remaining.extend(declared)
        return True
    return _divisible(world, p)


def _determined(delta: Expr) -> tuple[Var, Expr] | None:
    """A symbol that an equality gives in terms of others; the youngest, if several."""
    terms, _ = linear_terms(delta)
    candidates = [(t, c) for t, c in terms if isinstance(t, Var) and abs(c) == 1]
    for symbol, c in sorted(candidates, key=lambda item: -item[0].serial):
        rest = delta - c * symbol
        if symbol not in rest.free:
            return symbol, -c * rest
    return None


def _declared(symbol: Var, value: Expr) -> list[Bool]:
    """What the declaration of a symbol says of the term that replaces it."""
    conditions: list[Bool] = []
    if symbol.lower is not None:
        conditions.append(symbol.lower <= value)
    if symbol.upper is not None:
        conditions.append(value <= symbol.upper)
    if symbol.multiple_of > 1:
        conditions.append(equality_of(value % symbol.multiple_of))
    return conditions


def _divisible(world: Refinement, p: Eq) -> bool:
    """Turn ``(c * v + r) % d == k`` into ``v = d * q + ...`` with a fresh ``q``."""
    terms, constant = linear_terms(p.delta)
    if len(terms) != 1 or abs(terms[0][1]) != 1:
        return False
    remainder, sign = terms[0]
    if not isinstance(remainder, Mod):
        return False
    k, d = -sign * constant, remainder.divisor
    found = _determined(remainder.numerator)
    if found is None or found[0] in d.free or (k and not isinstance(d, Const)):
        return False
    symbol = found[0]
    coefficient = dict(linear_terms(remainder.numerator)[0])[symbol]
    offset = k - (remainder.numerator - coefficient * symbol)
    world.remaining.remove(p)
    quotient = _quotient_symbol(symbol, d, coefficient * offset)
    world.backward[quotient] = (symbol, d, coefficient * offset)
    value = d * quotient + coefficient * offset
    declared = _declared(symbol, value)
    world.replace(symbol, value)
    world.remaining.extend(declared)
    return True


def _quotient_symbol(symbol: Var, d: Expr, offset: Expr) -> Var:
    """A symbol for ``(symbol - offset) // d`` with the bounds that follow."""
    bounds = (symbol - offset) // d
    return var(f"{symbol.name}_by", lower=bounds.lower, upper=bounds.upper)


def _tighten(world: Refinement) -> bool:
    """Give symbols the constant bounds that follow from the inequalities."""
    limits: dict[Var, list[int | None]] = {}
    for _ in range(_ROUNDS):
        grew = False
        for p in world.remaining:
            if isinstance(p, (Le, Lt, Eq)):
                grew |= _bound_terms(p.delta, limits)
                if isinstance(p, Eq):
                    grew |= _bound_terms(-p.delta, limits)
        if not grew:
            break
    return _redeclare(world, limits)


def _bound_terms(delta: Expr, limits: dict[Var, list[int | None]]) -> bool:
    """Use ``delta <= 0`` to bound each symbol that stands alone in a term."""
    terms, constant = linear_terms(delta)
    lows = [_least(t, c, limits) for t, c in terms]
    grew = False
    for i, (symbol, c) in enumerate(terms):
        others = lows[:i] + lows[i + 1 :]
        if not isinstance(symbol, Var) or None in others:
            continue
        # c * symbol <= -(constant + least value of the others)
        room = -constant - sum(low for low in others if low is not None)
        limit = limits.setdefault(symbol, [symbol.lower, symbol.upper])
        side, bound = (1, room // c) if c > 0 else (0, -(room // -c))
        current = limit[side]
        if current is None or (bound < current if side else bound > current):
            limit[side] = bound
            grew = True
    return grew


def _least(term: Expr, c: int, limits: dict[Var, list[int | None]]) -> int | None:
    lower, upper = (
        limits.get(term, (term.lower, term.upper))
        if isinstance(term, Var)
        else (
            term.lower,
            term.upper,
        )
    )
    end = lower if c > 0 else upper
    return None if end is None else c * end


def _redeclare(world: Refinement, limits: dict[Var, list[int | None]]) -> bool:
    changed = False
    for symbol, (lower, upper) in limits.items():
        if (lower, upper) == (symbol.lower, symbol.upper):
            continue
        try:
            tighter = var(symbol.name, lower=lower, upper=upper, multiple_of=symbol.multiple_of)
        except InvalidSymbolError:
            world.contradictory = True
            return False
        world.backward[tighter] = (symbol, Const(1), Const(0))
        world.replace(symbol, tighter)
        changed = True
    return changed


class FactKnowledge(Knowledge):
    """What facts say of terms of the refined world."""

    __slots__ = ("search", "world")

    def __init__(self, predicates: Iterable[Bool]) -> None:
        """Compile the facts."""
        self.world = refine(predicates)
        self.search = Search(p for p in self.world.remaining if isinstance(p, Cmp))

    def at_least(self, e: Expr, bound: int) -> bool:
        """Whether ``e >= bound`` follows."""
        return self.search.non_negative(e - bound)

    def at_most(self, e: Expr, bound: int) -> bool:
        """Whether ``e <= bound`` follows."""
        return self.search.non_negative(bound - e)

    def below(self, a: Expr, b: Expr) -> bool:
        """Whether ``a < b`` follows."""
        return self.search.non_negative(b - a - 1)

    def not_above(self, a: Expr, b: Expr) -> bool:
        """Whether ``a <= b`` follows."""
        return self.search.non_negative(b - a)

    def enter(self, e: Expr | Bool) -> Expr | Bool:
        """Write a term in the symbols of the refined world."""
        return substitute(e, dict[Var, SymInt](self.world.forward))
