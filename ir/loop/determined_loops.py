"""Loops whose values the spatial iteration variables of a block determine."""

from __future__ import annotations

from collections.abc import Mapping, Set as AbstractSet

from ..symbolic import Bool, Expr, FloorDiv, Le, Lt, Var, conjuncts, const_value, free_vars
from ..symbolic.terms import linear_terms
from .nodes import Block, For, Let, Stmt


def determined_loops(path: tuple[Stmt, ...], block: Block) -> frozenset[Var]:
    """Return the loop variables whose values the spatial iteration variables determine.

    They are bound in sums ``a * 8 + b`` with ``b < 8``, or in pairs ``a // 8`` and ``a % 8``.
    """
    extents = {s.var: s.extent for s in path if isinstance(s, For)}
    varying = {s.var for s in path if isinstance(s, For | Let)}
    bindings = [v.binding for v in block.iters if v.kind != "reduce"]
    limits = _largest(extents, block.predicate)
    found: set[Var] = set()
    for binding in bindings:
        match binding:
            case FloorDiv(numerator=Var() as whole, divisor=divisor):
                fixed = free_vars(divisor).isdisjoint(varying)
                if fixed and whole in extents and whole % divisor in bindings:
                    found.add(whole)
            case _:
                found |= _digits(binding, limits, varying)
    return frozenset(found)


def _largest(extents: Mapping[Var, Expr], predicate: Bool) -> dict[Var, int | None]:
    """Return the largest values of loop variables where a predicate holds; None if unknown.

    A limit of a sum is one of each of its terms, if none of them is negative.
    """
    sizes = {variable: const_value(extent) for variable, extent in extents.items()}
    found = {v: None if size is None else max(size - 1, 0) for v, size in sizes.items()}
    for claim in conjuncts(predicate):
        if not isinstance(claim, Le | Lt):
            continue
        terms, constant = linear_terms(claim.delta)
        scales = {term: scale for term, scale in terms if isinstance(term, Var) and term in found}
        if len(scales) < len(terms) or min(scales.values()) < 0:
            continue
        for variable, scale in scales.items():
            known, limit = found[variable], max(-constant // scale, 0)
            found[variable] = limit if known is None else min(known, limit)
    return found


def _digits(
    binding: Expr, limits: Mapping[Var, int | None], varying: AbstractSet[Var]
) -> frozenset[Var]:
    """Return the loop variables in a sum, if its value determines all of them."""
    reach: int | None = 1
    found: set[Var] = set()
    for term, scale in sorted(linear_terms(binding)[0], key=lambda pair: abs(pair[1])):
        if free_vars(term).isdisjoint(varying):
            continue
        if not isinstance(term, Var) or term not in limits:
            return frozenset()
        most = limits[term]
        if most != 0:
            if reach is None or abs(scale) < reach:
                return frozenset()
            reach = None if most is None else reach + abs(scale) * most
        found.add(term)
    return frozenset(found)
