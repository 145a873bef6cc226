"""Scans: blocks that compute every partial result of an associative operation, in order.

A scan has one ordered iteration variable and a reducer. Its body is ordinary code, so that the
interpreter, analyses and lowering need not know scans: it binds the results of the previous
iteration and the new values, then stores the results. ::

    a = where(j >= 1, y[i, j - 1], 0.0)  # the left operand
    b = x[i, j]  # the right operand
    y[i, j] = a + b
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from ..identity import NO_ORIGIN, Origins
from ..symbolic import Bool, Var, const_value, linear_form, substitute
from .nodes import (
    Bind,
    Block,
    Condition,
    Element,
    Index,
    Load,
    Local,
    Number,
    Reducer,
    Stmt,
    Where,
)
from .reducers import (
    operands_of,
    reads_any,
    reducer_problems,
    update_statements,
    updating,
    without_lets,
)
from .straight_line import joined
from .visit import walk, walk_element


@dataclass(frozen=True, slots=True)
class Scanning:
    """The parts of the body of a scan.

    Parameters
    ----------
    reducer : Reducer
        The operation.
    prefix : tuple of Bind
        The values that the terms use.
    targets : tuple of Load
        The elements of the results.
    previous : tuple of Load
        The elements of the previous results.
    follows : Bool
        The condition under which there are previous results.
    starts : tuple of Element
        The left operands of the first iteration.
    terms : tuple of Element
        The values that one iteration combines with the previous results.
    origins : Origins
        The origins of the stores.
    """

    reducer: Reducer
    prefix: tuple[Bind, ...]
    targets: tuple[Load, ...]
    previous: tuple[Load, ...]
    follows: Bool
    starts: tuple[Element, ...]
    terms: tuple[Element, ...]
    origins: Origins = NO_ORIGIN

    @property
    def starts_at_identity(self) -> bool:
        """True if the first result is the first term combined with the identities."""
        known = tuple((str(n.value), n.dtype) for n in self.reducer.identities)
        numbers = (n for n in self.starts if isinstance(n, Number))
        return known == tuple((str(n.value), n.dtype) for n in numbers)  # 0.0 is not -0.0

    def body(self) -> Stmt:
        """Return the body of the block."""
        pairs = zip(self.previous, self.starts, strict=True)
        left = [Where(Condition(self.follows), before, start) for before, start in pairs]
        made = update_statements(self.reducer, self.targets, left, self.terms, self.origins)
        return joined((*self.prefix, *made))


def scan_of(
    reducer: Reducer,
    targets: tuple[Load, ...],
    variable: Var,
    terms: tuple[Element, ...],
    *,
    starts: tuple[Element, ...] | None = None,
    origins: Origins = NO_ORIGIN,
    prefix: tuple[Bind, ...] = (),
) -> Scanning:
    """Return a scan along an iteration variable.

    Parameters
    ----------
    reducer : Reducer
        The operation.
    targets : tuple of Load
        The elements of the results, which the variable indexes.
    variable : Var
        The ordered iteration variable.
    terms : tuple of Element
        The values of an iteration.
    starts : tuple of Element, optional
        The left operands of the first iteration, by default the identities.
    origins : Origins
        The origins of the stores.
    prefix : tuple of Bind
        The values that the terms use.
    """
    previous = tuple(
        Load(t.buffer, tuple(substitute(i, {variable: variable - 1}) for i in t.indices))
        for t in targets
    )
    first = reducer.identities if starts is None else starts
    return Scanning(reducer, prefix, targets, previous, variable >= 1, first, terms, origins)


@lru_cache(maxsize=4096)
def scanning(block: Block) -> Scanning | None:
    """Return the parts of the body of a scan; None if the block is not one.

    The iteration variables may be replaced by their bindings, as lowering does.

    Examples
    --------
    >>> from ..script import parse
    >>> f = parse('''
    ... @prim_func
    ... def f(x: Buffer[(8,), f32], y: Out[(8,), f32]):
    ...     for i in range(8):
    ...         with block("sums"):
    ...             vi = ordered(i)
    ...             y[vi] = scan(add, x[vi])
    ... ''').prim("f")
    >>> found = scanning(f.body.body)
    >>> found.previous, found.terms
    ((<Load y[vi - 1]: f32>,), (<Load x[vi]: f32>,))
    """
    found = updating(block)
    if found is None or block.reducer is None:
        return None
    sides = [e for e in found.left if isinstance(e, Where)]
    claims = {e.condition.value for e in sides if isinstance(e.condition, Condition)}
    before = tuple(e.then for e in sides if isinstance(e.then, Load))
    if len(claims) != 1 or not len(sides) == len(before) == len(found.left):
        return None
    if any(a.buffer is not b.buffer for a, b in zip(before, found.targets, strict=True)):
        return None
    starts = tuple(e.otherwise for e in sides)
    if reads_any(starts, {t.buffer for t in found.targets}):
        return None
    return Scanning(
        block.reducer,
        found.prefix,
        found.targets,
        before,
        claims.pop(),
        starts,
        found.right,
        found.origins,
    )


def scan_variable(block: Block) -> Var | None:
    """Return the ordered iteration variable of a scan; None if the block is not a scan."""
    found = scanning(block)
    ordered = [v.var for v in block.iters if v.kind == "ordered"]
    if found is None or len(ordered) != 1:
        return None
    return None if any(_problems(block, found, ordered[0])) else ordered[0]


def declaration_problems(block: Block) -> Iterator[str]:
    """Yield the violations of a block by its reducer, of which it is a reduction or a scan."""
    found = scanning(block)
    body = without_lets(block.body)
    if found is None and body is not block.body and scanning(replace(block, body=body)):
        yield (
            "a scan does not use integers that its block loads: store the terms that it combines "
            "in a temporary, in a block before"
        )
        return
    if found is None:
        yield from reducer_problems(block)
        return
    ordered = [v.var for v in block.iters if v.kind == "ordered"]
    if len(ordered) != 1:
        yield (
            f"a scan by {found.reducer.name!r} has one ordered iteration variable, but block "
            f"{block.name!r} has {len(ordered)}"
        )
        return
    yield from _problems(block, found, ordered[0])


def _problems(block: Block, found: Scanning, variable: Var) -> Iterator[str]:
    expected = scan_of(found.reducer, found.targets, variable, found.terms)
    if any(v.kind == "reduce" for v in block.iters) or block.init is not None:
        yield f"a scan by {found.reducer.name!r} has no init and no reduction iteration variable"
    for target in found.targets:
        if _step(target, variable) is None:
            yield (
                f"a scan stores one element of {target.buffer.name!r} for each value of "
                f"{variable.name!r}, but no index is a constant multiple of it plus other terms"
            )
    if (found.previous, found.follows) != (expected.previous, expected.follows):
        yield f"the left operand is not the result for {variable.name} - 1"
    if any(variable in free_variables(start) for start in found.starts):
        yield f"the start of a scan does not depend on {variable.name!r}"


def _step(target: Load, variable: Var) -> int | None:
    """Return the distance of adjacent elements of a scan in a dimension; None if there is none."""
    for index in target.indices:
        form = linear_form(index, (variable,)) if variable in index.free else None
        step = None if form is None else const_value(form.coefficients[variable])
        if step:
            return step
    return None


def free_variables(element: Element) -> frozenset[Var]:
    """Return the integers that the value of an element depends on."""
    found = frozenset[Var]()
    for part in walk_element(element):
        match part:
            case Load(indices=indices):
                found = found.union(*(i.free for i in indices))
            case Index(value=term):
                found |= term.free
            case Condition(value=claim):
                found |= claim.free
            case _:
                pass
    return found


def hidden_locals(block: Block) -> set[Local]:
    """Return the locals of a block whose names do not occur in its text."""
    found = scanning(block)
    if found is None:
        return operands_of(block)
    kept = {bind.local for bind in found.prefix}
    return {s.local for s in walk(block.body) if isinstance(s, Bind)} - kept
