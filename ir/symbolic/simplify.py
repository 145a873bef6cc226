"""Simplification of terms under facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import RLock

from ...locks import renew_in_children
from .base import Bool, Expr, Term, Var
from .build import product, total
from .conditions import choose, equality_of, negate, order_of
from .knowledge import FactKnowledge
from .predicates import Eq, Le, Lt, Ne
from .rule import Knowledge, Rule
from .rules.choices import MAXIMUM, MINIMUM
from .rules.division import DIVISION
from .rules.modulo import MODULO
from .rules.splits import divide_product, extract
from .search import GOAL_WORK
from .terms import Add, Const, FloorDiv, Max, Min, Mod, Mul, factors_of
from .traverse import Replacement, postorder, rebuild, substitute

_MEMORY = 20_000


class Simplifier:
    """Simplifies terms under one set of facts; caches results."""

    __slots__ = ("__weakref__", "_by", "_done", "_lock", "knowledge")

    def __init__(self, knowledge: FactKnowledge) -> None:
        """Use compiled facts."""
        self.knowledge = knowledge
        self._done: dict[Term, Term] = {}
        self._by = Replacement(self._done)
        self._lock = RLock()
        renew_in_children(self)

    def simplify(self, e: Expr | Bool) -> Expr | Bool:
        """Return the term simplified under the facts, or itself if that is not larger."""
        result = self.to_original(self.reduce(self.knowledge.to_refined(e)))
        return result if len(postorder(result)) <= len(postorder(e)) else e

    def reduce(self, e: Expr | Bool) -> Expr | Bool:
        """Simplify a term in refined symbols."""
        with self._lock:
            self.knowledge.search.budget = GOAL_WORK
            result = self._reduce(e)
            if self.knowledge.search.budget <= 0 or len(self._done) > _MEMORY:
                # Do not reuse results of a search that was aborted by the work limit.
                self._done.clear()
            return result

    def _reduce(self, e: Expr | Bool) -> Expr | Bool:
        for term in postorder(e, self._done.__contains__):
            if term not in self._done:
                built = rebuild(term, self._by)
                # Breaks cycles: a rule that leads back to this term finds it simplified.
                self._done[term] = built
                self._done[term] = self._apply_rules(built)
        return self._by.integer(e) if isinstance(e, Expr) else self._by.condition(e)

    def _apply_rules(self, term: Term) -> Term:
        """Apply the first rule that matches under the facts, and simplify the result."""
        found = self._rewrite_once(term)
        return term if found is None or found is term else self._reduce(found)

    def _rewrite_once(self, term: Term) -> Expr | Bool | None:
        match term:
            case FloorDiv(a, d):
                return _first(DIVISION, a, d, self.knowledge) if d != 0 else None
            case Mod(a, d):
                return _first(MODULO, a, d, self.knowledge) if d != 0 else None
            case Min(args):
                return choose(args, Min, MINIMUM, self.knowledge)
            case Max(args):
                return choose(args, Max, MAXIMUM, self.knowledge)
            case Le() | Lt():
                return order_of(term.delta, self.knowledge)
            case Eq():
                return equality_of(term.delta, self.knowledge)
            case Ne():
                return negate(equality_of(term.delta, self.knowledge))
            case _:
                return None

    def to_original(self, e: Expr | Bool) -> Expr | Bool:
        """Return a term of refined symbols in original symbols."""
        for symbol, (old, d, k) in reversed(self.knowledge.refinement.backward.items()):
            if symbol in e.free:
                e = substitute(e, {symbol: old}) if d == 1 else _undo(e, symbol, (old, d, k))
        return e


def _first(
    rules: Iterable[Rule[Callable[[Expr, Expr, Knowledge], Expr | None]]],
    a: Expr,
    d: Expr,
    knowledge: Knowledge,
) -> Expr | None:
    for rule in rules:
        found = rule.apply(a, d, knowledge)
        if found is not None:
            return found
    return None


def _undo(e: Expr | Bool, symbol: Var, origin: tuple[Expr, Expr, Expr]) -> Expr | Bool:
    """Replace ``q`` by ``(v - k) // d``, but ``d * q`` by ``v - k``."""
    by = Replacement({})
    for term in postorder(e, lambda t: symbol not in t.free):
        if symbol in term.free:
            by.built[term] = _undo_term(term, symbol, origin, by)
    return by.integer(e) if isinstance(e, Expr) else by.condition(e)


def _undo_term(
    term: Term, symbol: Var, origin: tuple[Expr, Expr, Expr], by: Replacement
) -> Expr | Bool:
    match term:
        case Var() | Mul() if symbol in factors_of(term):
            return _undo_product(term, 1, symbol, origin, by)
        case Add(terms, constant):
            parts = [_undo_product(part, c, symbol, origin, by) for part, c in terms]
            return total([*parts, constant])
        case _:
            return rebuild(term, by)


def _undo_product(
    term: Expr, c: int, symbol: Var, origin: tuple[Expr, Expr, Expr], by: Replacement
) -> Expr:
    """Return ``c * term`` with the symbol replaced; a factor ``d`` cancels the division."""
    if symbol not in factors_of(term):
        return c * by.integer(term)
    old, d, k = origin
    cofactor = divide_product(term, symbol) or Const(1)
    rest = c * product(map(by.integer, factors_of(cofactor)))
    found = extract(rest, d)
    if found is not None and found[1] == 0:
        return found[0] * (old - k)
    return rest * ((old - k) // d)
