"""Executed domains: the iterations of its domain that a block runs.

The domain of a block is the box of all values of its iteration variables: ``[0, extent)`` for each.
The loops, branches, predicates and variables read from memory around the block may run only a part
of it, such as a triangle or the first columns. A step that moves a block must run the same part.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Iterator, Set as AbstractSet
from dataclasses import dataclass, replace

from ..loop.decompose import (
    reduction_position,
    starts_before_reduction,
    without_variables,
)
from ..loop.nodes import Block, For, IterVar, Let, Stmt
from ..symbolic import (
    TRUE,
    Bool,
    Expr,
    Facts,
    Var,
    all_of,
    as_expr,
    conjuncts,
    const_value,
    eq,
    free_vars,
    is_proved,
    linear_form,
    simplify,
    substitute,
    var,
)
from .enclosing import Enclosing, Guard, enclosing, statements_around
from .facts_at import assuming
from .instances import Instances, instances
from .intervals import Interval, interval_of
from .inversion import Equation, Inverse, invert
from .tree import Tree


class Coverage(enum.Enum):
    """The part of its domain that a block runs."""

    EXACT = "exact"
    """Every iteration of the domain."""
    SUBSET = "subset"
    """The iterations that fulfill a condition."""
    UNKNOWN = "unknown"
    """A part that is not described."""


@dataclass(frozen=True, slots=True)
class Domain:
    """The iterations that a block runs.

    Parameters
    ----------
    coverage : Coverage
        How much of the domain the enclosing statements run.
    condition : Bool or None
        The iterations that run, over the iteration variables, symbols and variables bound outside
        of the considered statement: TRUE if all, None if they cannot be described.
    instances : Instances
        How often each iteration runs.
    reason : str
        Which loop, branch or predicate limits the iterations; empty if all run.
    """

    coverage: Coverage
    condition: Bool | None
    instances: Instances
    reason: str = ""

    @property
    def exact(self) -> bool:
        """Whether every iteration of the domain runs."""
        return self.coverage is Coverage.EXACT


def executed_domain(tree: Tree, block: Block, within: Stmt | None = None) -> Domain:
    """Return which iterations of its domain a block runs, and how often.

    Parameters
    ----------
    tree : Tree
        The index of the function.
    block : Block
        The block.
    within : Stmt or None
        Consider one execution of this statement, which may be a loop around the block; by default
        one execution of the enclosing block or function. For one iteration of a loop, pass the
        body of the loop.

    Returns
    -------
    Domain
        The domain; results are cached. The usual bindings, a loop per iteration variable, need no
        proof.

    Examples
    --------
    >>> from ..script import parse
    >>> from .tree import tree_of
    >>> tree = tree_of(
    ...     parse('''
    ... n = symbols("n", lower=1)
    ... @prim_func
    ... def f(x: Buffer[(n, n), f32], y: Out[(n, n), f32]):
    ...     for i in range(n):
    ...         for j in range(i + 1):
    ...             with block("lower"):
    ...                 vi, vj = spatial(n, i), spatial(n, j)
    ...                 y[vi, vj] = x[vi, vj]
    ... ''').prims[0]
    ... )
    >>> found = executed_domain(tree, tree.outermost_blocks()[0])
    >>> found.coverage.name, found.condition, found.instances.once
    ('SUBSET', vj <= vi, True)
    """
    key = ("domain", block, within)
    known = tree.memo.get(key)
    if not isinstance(known, Domain):
        known = tree.memo[key] = _domain(tree, block, within)
    return known


def loop_values(tree: Tree, block: Block) -> dict[Var, Expr]:
    """Return the loops around a block as terms over the iteration variables that determine them."""
    found = enclosing(tree, block)
    equations = [Equation(v.binding, v.var, v.extent) for v in found.iters]
    return dict(invert(equations, found.extents, tree.facts(block.body)).values)


def dependent_bindings(tree: Tree, block: Block) -> Bool | None:
    """Return the relation between iteration variables whose bindings are not independent.

    For ``spatial(16, i), spatial(32, 2 * i)``, the second variable is always twice the first, so
    most pairs of the domain do not run. Return None if the bindings are independent, as
    ``spatial(4, i // 4), spatial(4, i % 4)`` are. A relation that holds only because a loop has one
    iteration, as between ``spatial(4, i + r), reduce(4, r)`` for ``i in range(1)``, is none.
    """
    found = enclosing(tree, block)
    once = {v: as_expr(0) for v, extent in found.extents.items() if const_value(extent) == 1}
    repeated = {v: var(v.name, lower=0) for v in once}
    extents = {v: extent for v, extent in found.extents.items() if v not in once}
    bindings = [substitute(b, once) for b in found.bindings]
    used = [v for b in bindings for v in free_vars(b) & extents.keys()]
    if len(used) == len(set(used)):
        return None
    pairs = zip(bindings, found.iters, strict=True)
    equations = [Equation(binding, v.var, v.extent) for binding, v in pairs]
    facts = tree.facts(block.body)
    bound = {
        v.var: substitute(binding, repeated)
        for v, binding in zip(found.iters, found.bindings, strict=True)
    }
    for equation in invert(equations, extents, facts).dependent:
        relation = eq(equation.term, equation.value)
        related = not free_vars(equation.term).isdisjoint(bound)
        if related and (not once or is_proved(substitute(relation, bound), facts)):
            return relation
    return None


def results_domain(tree: Tree, block: Block, within: Stmt | None = None) -> Domain:
    """Return for which spatial iterations a block writes its results.

    The init of a reduction runs for every spatial iteration, whatever the reduction loops and the
    conditions on them are; its domain is that of the spatial iteration variables. For other blocks,
    this is `executed_domain`. The parameters are those of `executed_domain`.
    """
    if block.init is None or all(v.kind != "reduce" for v in block.iters):
        return executed_domain(tree, block, within)
    key = ("results", block, within)
    known = tree.memo.get(key)
    if not isinstance(known, Domain):
        known = tree.memo[key] = _domain(tree, block, within, results=True)
    return known


def _without_reduction(tree: Tree, block: Block, found: Enclosing) -> Enclosing:
    """Return the loops, variables and conditions that the init of a reduction depends on."""
    path = statements_around(tree, block)
    inner = path[reduction_position(path, block) :]
    iters = tuple(v for v in found.iters if v.kind != "reduce")
    used = frozenset[Var]().union(*(free_vars(v.binding) for v in iters))
    lost = {s.var for s in inner if isinstance(s, Let)}
    lost |= {s.var for s in inner if isinstance(s, For) and s.var not in used}
    return Enclosing(
        tuple(x for x in found.loops if x.var not in lost),
        {v: extent for v, extent in found.extents.items() if v not in lost},
        {v: loaded for v, loaded in found.lets.items() if v not in lost},
        tuple(_spatial_guards(found.guards, lost)),
        iters,
    )


def _spatial_guards(guards: Iterable[Guard], lost: Collection[Var]) -> Iterator[Guard]:
    """Yield the guards that the init of a reduction has, without the variables it does not use."""
    for guard in guards:
        condition = without_variables(guard.condition, lost)
        if condition is not None and condition.free.isdisjoint(lost):
            yield replace(guard, condition=condition)


def _domain(tree: Tree, block: Block, within: Stmt | None, *, results: bool = False) -> Domain:
    found = enclosing(tree, block, within)
    count = instances(tree, block, within)
    if results:
        if not starts_before_reduction(statements_around(tree, block), block):
            reason = f"the iterations of the init of block {block.name!r} depend on its reduction"
            return Domain(Coverage.UNKNOWN, None, count, reason)
        found = _without_reduction(tree, block, found)
    if _is_plain(found):
        return Domain(Coverage.EXACT, TRUE, count)
    around = statements_around(tree, block, within)
    outer = tree.facts(around[0] if around else block)
    try:
        kept = _Description(found, outer, tree.facts(block.body)).conditions()
    except _UnknownDomainError as error:
        return Domain(Coverage.UNKNOWN, None, count, str(error))
    if not kept:
        return Domain(Coverage.EXACT, TRUE, count)
    condition = all_of(*(guard.condition for guard in kept))
    reason = f"{kept[0].source} limits the iterations of block {block.name!r} to {condition}"
    return Domain(Coverage.SUBSET, condition, count, reason)


def _is_plain(found: Enclosing) -> bool:
    """Return whether there is exactly one loop for each iteration variable, and no condition."""
    if found.guards or len(found.loops) != len(found.iters):
        return False
    return found.extents == {v.binding: v.extent for v in found.iters}


class _UnknownDomainError(Exception):
    """The iterations have no description."""


class _Description:
    """The derivation of the conditions under which the iterations of a block run."""

    def __init__(self, found: Enclosing, outer: Facts, inner: Facts) -> None:
        self._found = found
        self._reject_loaded()
        equations = tuple(Equation(v.binding, v.var, v.extent) for v in found.iters)
        self._inverse: Inverse = invert(equations, found.extents, inner)
        self._values: dict[Var, Expr] = dict(self._inverse.values)
        self._ranged: list[Equation] = []
        source = "the binding of its iteration variables"
        self._claims: list[Guard] = [
            Guard(self._rewritten(c, source), source) for c in self._inverse.claims
        ]
        for equation in self._inverse.pending:
            self._claims += self._interval(equation, inner)
        box = [self._rewritten(c, "an extent") for v in found.iters for c in _within(v)]
        self._box = frozenset(box)
        self._facts = assuming(outer, *box)

    def conditions(self) -> tuple[Guard, ...]:
        """Return the conditions that do not follow from the domain."""
        claims = [*self._claims, *self._loop_claims()]
        claims += [
            Guard(self._rewritten(g.condition, g.source), g.source) for g in self._found.guards
        ]
        kept: dict[Bool, Guard] = {}
        for claim in claims:
            for part in conjuncts(claim.condition):
                if part is TRUE or part in self._box or part in kept:
                    continue
                if not is_proved(part, self._facts):
                    kept[part] = Guard(simplify(part, self._facts), claim.source)
        return tuple(kept.values())

    def _reject_loaded(self) -> None:
        found = self._found
        used: list[tuple[frozenset[Var], str]] = [
            *((free_vars(v.binding) | free_vars(v.extent), repr(v.var.name)) for v in found.iters),
            *((free_vars(e), f"loop {v.name!r}") for v, e in found.extents.items()),
            *((free_vars(g.condition), g.source) for g in found.guards),
        ]
        for variables, user in used:
            for variable in variables & found.lets.keys():
                raise _UnknownDomainError(
                    f"{user} depends on {variable.name!r}, which is read from memory"
                )

    def _interval(self, equation: Equation, facts: Facts) -> Iterator[Guard]:
        """Yield the conditions of an iteration variable whose loops are not determined."""
        term, value = equation.term, equation.value
        loops = free_vars(term) & self._found.extents.keys()
        names = ", ".join(sorted(repr(v.name) for v in loops))
        message = f"the iterations {term} of loops {names} have no description"
        extents = {v: substitute(self._found.extents[v], self._values) for v in loops}
        ranges = {v: Interval.full(extent) for v, extent in extents.items()}
        found = interval_of(term, ranges, facts)
        others = [free_vars(e.term) for e in self._inverse.pending if e is not equation]
        others += [free_vars(e) for e in self._found.extents.values()]
        if found is None or not found.exhaustive or any(loops & used for used in others):
            raise _UnknownDomainError(message)
        ends = free_vars(found.start) | free_vars(found.extent)
        if not ends.isdisjoint(self._found.extents):
            raise _UnknownDomainError(message)
        self._ranged.append(equation)
        source = f"the range of {term}"
        yield Guard((found.start <= value) & (value < found.stop), source)
        for loop in loops:
            yield Guard(extents[loop] >= 1, f"loop {loop.name!r}")

    def _loop_claims(self) -> Iterator[Guard]:
        """Yield the ranges of the loops, over the iteration variables."""
        ranged = frozenset[Var]().union(*(free_vars(e.term) for e in self._ranged))
        for loop in self._found.loops:
            variable = loop.var
            extent = self._found.extents[variable]
            source = f"loop {variable.name!r} with extent {extent}"
            if variable in self._values:
                value = self._values[variable]
                yield Guard(self._rewritten((value >= 0) & (value < extent), source), source)
            elif variable not in ranged:
                yield Guard(self._rewritten(extent >= 1, source), source)

    def _rewritten(self, claim: Bool, source: str) -> Bool:
        """Return a condition over the iteration variables instead of the loops."""
        open_vars = self._found.extents.keys()
        claim = substitute(claim, self._values)
        for equation in self._ranged:
            if free_vars(claim).isdisjoint(open_vars):
                break
            claim = _replaced(claim, equation, open_vars)
        lost = sorted(v.name for v in free_vars(claim) & open_vars)
        if lost:
            raise _UnknownDomainError(
                f"{source} depends on {', '.join(map(repr, lost))}, which the iteration variables "
                "do not determine"
            )
        return claim


def _within(item: IterVar) -> tuple[Bool, Bool]:
    return item.var >= 0, item.var < item.extent


def _replaced(claim: Bool, equation: Equation, loops: AbstractSet[Var]) -> Bool:
    """Return a condition with a term replaced by its value, if only the term contains loops."""
    form = linear_form(equation.term, loops)
    units = [] if form is None else [v for v, c in form.coefficients.items() if const_value(c) == 1]
    for variable in units:
        rest = equation.term - variable
        new = substitute(claim, {variable: equation.value - rest})
        if free_vars(new).isdisjoint(free_vars(equation.term)):
            return new
    return claim
