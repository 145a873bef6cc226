"""Compilation of facts for simplification and proofs.

Each set of facts is compiled once. Equalities and divisibilities become substitutions by *refined*
symbols: ``t`` with ``b * s == t`` becomes ``b * s``, ``n`` with ``n % 4 == 0`` becomes ``4 * q``,
a symbol with a tighter range becomes a symbol declared with that range. Constructors then simplify
terms of refined symbols without further rules; `FactKnowledge` uses the remaining inequalities.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from .base import Bool, Expr, SymInt, Var
from .build import var
from .conditions import equality_of
from .errors import InvalidSymbolError
from .predicates import FALSE, TRUE, And, Cmp, Eq, Le, Lt
from .rule import Knowledge
from .search import Search, deltas_of
from .terms import Const, Mod, linear_terms
from .traverse import substitute

_ROUNDS = 4


@dataclass(slots=True)
class Refinement:
    """Substitutions to refined symbols and back, and the remaining facts."""

    forward: dict[Var, Expr] = field(default_factory=dict[Var, Expr])
    backward: dict[Var, tuple[Expr, Expr, Expr]] = field(
        default_factory=dict[Var, tuple[Expr, Expr, Expr]]
    )
    """Maps each new symbol ``q`` to ``(v, d, k)`` with ``v == d * q + k`` in older symbols."""
    remaining: list[Bool] = field(default_factory=list[Bool])
    contradictory: bool = False

    def replace(self, step: Mapping[Var, Expr]) -> None:
        """Compose the forward substitution with simultaneous replacements."""
        for key, old in self.forward.items():
            self.forward[key] = substitute(old, step)
        self.forward.update(step)
        self.remaining = [substitute(p, step) for p in self.remaining]


def refine(predicates: Iterable[Bool]) -> Refinement:
    """Compile a set of conditions to a refinement."""
    refinement = Refinement(remaining=sorted(predicates, key=lambda p: p.order))
    for _ in range(_ROUNDS):
        changed = _solve_equalities(refinement) | _tighten(refinement)
        refinement.remaining = list(dict.fromkeys(_flat(refinement.remaining)))
        if FALSE in refinement.remaining or _exclude_each_other(refinement.remaining):
            refinement.contradictory = True
        if refinement.contradictory or not changed:
            break
    return refinement


def _flat(predicates: Iterable[Bool]) -> Iterator[Bool]:
    for p in predicates:
        if isinstance(p, And):
            yield from p.args
        elif p is not TRUE:
            yield p


def _exclude_each_other(predicates: Iterable[Bool]) -> bool:
    """Return whether two comparisons have no common solution, such as ``a <= b`` and ``a > b``."""
    constants: dict[frozenset[tuple[Expr, int]], int] = {}
    for p in predicates:
        for delta in deltas_of(p):
            terms, constant = linear_terms(delta)
            opposite = constants.get(frozenset([(term, -c) for term, c in terms]))
            if opposite is not None and opposite + constant > 0:
                return True
            key = frozenset(terms)
            constants[key] = max(constant, constants.get(key, constant))
    return False


def _solve_equalities(refinement: Refinement) -> bool:
    """Substitute symbols by equalities that determine them; return whether anything changed."""
    changed, again = False, True
    while again:
        again = False
        for p in refinement.remaining:
            if isinstance(p, Eq) and _solve(refinement, p):
                changed = again = True
                break
    return changed


def _solve(refinement: Refinement, p: Eq) -> bool:
    solution = _solution(p.delta)
    if solution is not None:
        symbol, value = solution
        refinement.remaining.remove(p)
        declared = _declared_conditions(symbol, value)
        refinement.replace({symbol: value})
        refinement.remaining.extend(declared)
        return True
    return _solve_divisibility(refinement, p)


def _solution(delta: Expr) -> tuple[Var, Expr] | None:
    """Return a symbol and its value from ``delta == 0``; the newest symbol if there are several."""
    terms, _ = linear_terms(delta)
    candidates = [(t, c) for t, c in terms if isinstance(t, Var) and abs(c) == 1]
    for symbol, c in sorted(candidates, key=lambda item: -item[0].serial):
        rest = delta - c * symbol
        if symbol not in rest.free:
            return symbol, -c * rest
    return None


def _declared_conditions(symbol: Var, value: Expr) -> list[Bool]:
    """Return the declared range of a symbol as conditions on the term that replaces it."""
    conditions: list[Bool] = []
    if symbol.lower is not None:
        conditions.append(symbol.lower <= value)
    if symbol.upper is not None:
        conditions.append(value <= symbol.upper)
    if symbol.multiple_of > 1:
        conditions.append(equality_of(value % symbol.multiple_of))
    return conditions


def _solve_divisibility(refinement: Refinement, p: Eq) -> bool:
    """Use ``(c * v + r) % d == k`` to substitute ``v`` by ``d * q + ...`` with a new ``q``."""
    terms, constant = linear_terms(p.delta)
    if len(terms) != 1 or abs(terms[0][1]) != 1:
        return False
    remainder, sign = terms[0]
    if not isinstance(remainder, Mod):
        return False
    k, d = -sign * constant, remainder.divisor
    found = _solution(remainder.numerator)
    if found is None or found[0] in d.free or (k and not isinstance(d, Const)):
        return False
    symbol = found[0]
    coefficient = dict(linear_terms(remainder.numerator)[0])[symbol]
    offset = k - (remainder.numerator - coefficient * symbol)
    refinement.remaining.remove(p)
    quotient = _quotient_symbol(symbol, d, coefficient * offset)
    refinement.backward[quotient] = (symbol, d, coefficient * offset)
    value = d * quotient + coefficient * offset
    declared = _declared_conditions(symbol, value)
    refinement.replace({symbol: value})
    refinement.remaining.extend(declared)
    return True


def _quotient_symbol(symbol: Var, d: Expr, offset: Expr) -> Var:
    """Return a new symbol for ``(symbol - offset) // d`` with its bounds."""
    bounds = (symbol - offset) // d
    return var(f"{symbol.name}_by", lower=bounds.lower, upper=bounds.upper)


def _tighten(refinement: Refinement) -> bool:
    """Tighten constant bounds of symbols by the inequalities; return whether any changed."""
    limits: dict[Var, list[int | None]] = {}
    for _ in range(_ROUNDS):
        grew = False
        for p in refinement.remaining:
            if isinstance(p, (Le, Lt, Eq)):
                grew |= _bound_terms(p.delta, limits)
                if isinstance(p, Eq):
                    grew |= _bound_terms(-p.delta, limits)
        if not grew:
            break
    return _redeclare(refinement, limits)


def _bound_terms(delta: Expr, limits: dict[Var, list[int | None]]) -> bool:
    """Tighten the bounds of each symbol that is a term of ``delta <= 0``."""
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


def _redeclare(refinement: Refinement, limits: dict[Var, list[int | None]]) -> bool:
    step: dict[Var, Expr] = {}
    for symbol, (lower, upper) in limits.items():
        if (lower, upper) == (symbol.lower, symbol.upper):
            continue
        try:
            tighter = var(symbol.name, lower=lower, upper=upper, multiple_of=symbol.multiple_of)
        except InvalidSymbolError:
            refinement.contradictory = True
            return False
        refinement.backward[tighter] = (symbol, Const(1), Const(0))
        step[symbol] = tighter
    if step:
        refinement.replace(step)
    return bool(step)


class FactKnowledge(Knowledge):
    """Bounds and order of terms of refined symbols, from facts."""

    __slots__ = ("refinement", "search")

    def __init__(self, predicates: Iterable[Bool]) -> None:
        """Compile the facts."""
        self.refinement = refine(predicates)
        self.search = Search(p for p in self.refinement.remaining if isinstance(p, Cmp))

    def at_least(self, e: Expr, bound: int) -> bool:
        """Return whether ``e >= bound`` is proved."""
        return self.search.non_negative(e - bound)

    def at_most(self, e: Expr, bound: int) -> bool:
        """Return whether ``e <= bound`` is proved."""
        return self.search.non_negative(bound - e)

    def below(self, a: Expr, b: Expr) -> bool:
        """Return whether ``a < b`` is proved."""
        return self.search.non_negative(b - a - 1)

    def not_above(self, a: Expr, b: Expr) -> bool:
        """Return whether ``a <= b`` is proved."""
        return self.search.non_negative(b - a)

    def to_refined(self, e: Expr | Bool) -> Expr | Bool:
        """Return a term in refined symbols."""
        return substitute(e, dict[Var, SymInt](self.refinement.forward))
