"""Reductions by a declared reducer: the body of their blocks, and the parts of such a body.

The body is ordinary code, so that the interpreter, analyses and lowering need not know reducers:
it binds the elements of the results and the new values, then stores the results. ::

    a = m[i]  # the left operand
    b = p[i]
    c = x[i, k]  # the right operand
    d = i64(k)
    take = a > c  # the values that several results use
    m[i] = where(take, a, c)
    p[i] = where(take, b, d)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from ..identity import NO_ORIGIN, Origins
from ..symbolic import const_value
from .combiners import COMBINERS, reducer_of
from .nodes import (
    Binary,
    Bind,
    Block,
    Buffer,
    Element,
    Let,
    Load,
    Local,
    Reducer,
    Seq,
    Stmt,
    Store,
)
from .straight_line import joined, statements_of, with_last
from .visit import Rebuilder, loads, seq, stores, walk, walk_element

_NOTHING = Seq(())


@dataclass(frozen=True, slots=True)
class Reducing:
    """The parts of the body of a block that reduces by a declared reducer.

    Parameters
    ----------
    reducer : Reducer
        The operation.
    prefix : tuple of Bind
        The values that the terms use.
    targets : tuple of Load
        The elements of the results.
    terms : tuple of Element
        The values that one iteration combines with the results.
    origins : Origins
        The origins of the stores.
    scratch : Stmt or None
        A body that allocates temporaries to compute the term, and whose last statement is an update
        ``C = C op value``. None if there are no temporaries.
    """

    reducer: Reducer
    prefix: tuple[Bind, ...]
    targets: tuple[Load, ...]
    terms: tuple[Element, ...]
    origins: Origins = NO_ORIGIN
    scratch: Stmt | None = None

    @property
    def declared(self) -> Reducer | None:
        """The reducer of the block; None for an update ``C = C op value``, which needs none."""
        single = self.reducer.name in COMBINERS and len(self.reducer.left) == 1
        of = self.reducer.left[0].dtype
        known = single and reducer_of(self.reducer.name, of) is self.reducer
        return None if known else self.reducer

    def body(self) -> Stmt:
        """Return the body of the block."""
        if self.declared is not None:
            made = update_statements(
                self.reducer, self.targets, self.targets, self.terms, self.origins
            )
            return joined((*self.prefix, *made))
        ((target, term),) = zip(self.targets, self.terms, strict=True)
        value = Binary(self.reducer.name, target, term)
        update = Store(target.buffer, target.indices, value, self.origins)
        made = joined((*self.prefix, update))
        return made if self.scratch is None else with_last(self.scratch, made)

    def starts(self) -> Stmt:
        """Return the stores of the identities."""
        pairs = zip(self.targets, self.reducer.identities, strict=True)
        return seq(*(Store(t.buffer, t.indices, one, self.origins) for t, one in pairs))


class _Renaming(Rebuilder):
    """A substitution of elements for locals."""

    def __init__(self, values: dict[Local, Element]) -> None:
        self._values = values

    def element(self, element: Element) -> Element:
        if isinstance(element, Local):
            return self._values.get(element, element)
        return super().element(element)


def same_operation(first: Reducer, second: Reducer) -> bool:
    """Return whether two reducers differ at most in their names and in those of their values."""
    if first == second:
        return True
    if (
        first.identities != second.identities
        or first.commutative != second.commutative
        or len(first.binds) != len(second.binds)
    ):
        return False
    values: dict[Local, Element] = dict(zip(first.left, second.left, strict=True))
    values |= dict(zip(first.right, second.right, strict=True))
    for (local, value), (other, expected) in zip(first.binds, second.binds, strict=True):
        if _Renaming(values).element(value) != expected:
            return False
        values[local] = other
    return tuple(map(_Renaming(values).element, first.results)) == second.results


def combined(
    reducer: Reducer, left: Sequence[Element], right: Sequence[Element]
) -> tuple[Element, ...]:
    """Return the results of a reducer as elements, with copies of the values they share."""
    values: dict[Local, Element] = dict(zip(reducer.left, left, strict=True))
    values |= dict(zip(reducer.right, right, strict=True))
    for local, value in reducer.binds:
        values[local] = _Renaming(values).element(value)
    return tuple(_Renaming(values).element(result) for result in reducer.results)


def update_statements(
    reducer: Reducer,
    targets: Sequence[Load],
    left: Sequence[Element],
    right: Sequence[Element],
    origins: Origins,
) -> tuple[Stmt, ...]:
    """Return the statements that store the results of a reducer for two operands."""
    operands = zip((*reducer.left, *reducer.right), (*left, *right), strict=True)
    binds = [Bind(local, value, _NOTHING) for local, value in (*operands, *reducer.binds)]
    made = (
        Store(target.buffer, target.indices, value, origins)
        for target, value in zip(targets, reducer.results, strict=True)
    )
    return (*binds, *made)


@dataclass(frozen=True, slots=True)
class Updating:
    """The parts of a body that stores the results of the reducer of its block.

    Parameters
    ----------
    prefix : tuple of Bind
        The values that the operands use.
    targets : tuple of Load
        The elements of the results.
    left, right : tuple of Element
        The values of the two operands.
    origins : Origins
        The origins of the stores.
    """

    prefix: tuple[Bind, ...]
    targets: tuple[Load, ...]
    left: tuple[Element, ...]
    right: tuple[Element, ...]
    origins: Origins


def updating(block: Block) -> Updating | None:
    """Return the parts of a body that stores results of a reducer; None for another body."""
    reducer = block.reducer
    if reducer is None:
        return None
    parts = statements_of(block.body)
    count = len(reducer.left)
    length = 3 * count + len(reducer.binds)
    prefix, own = parts[: len(parts) - length], parts[len(parts) - length :]
    if len(parts) < length or not all(isinstance(s, Bind) for s in prefix):
        return None
    last = [s for s in own[-count:] if isinstance(s, Store)]
    binds = [s for s in own[:-count] if isinstance(s, Bind)]
    if len(last) + len(binds) < length:
        return None
    names: dict[Local, Element] = {}
    expected = (*reducer.left, *reducer.right, *(local for local, _ in reducer.binds))
    names.update(zip(expected, (b.local for b in binds), strict=True))
    renaming = _Renaming(names)
    values = [renaming.element(value) for _, value in reducer.binds]
    results = [renaming.element(value) for value in reducer.results]
    if values != [b.value for b in binds[2 * count :]] or results != [s.value for s in last]:
        return None
    before = tuple(s for s in prefix if isinstance(s, Bind))
    left, right = (tuple(b.value for b in binds[k : k + count]) for k in (0, count))
    targets = tuple(Load(s.buffer, s.indices) for s in last)
    written = {target.buffer for target in targets}
    if not _distinct(targets) or reads_any((*(b.value for b in before), *right), written):
        return None
    return Updating(before, targets, left, right, last[0].origins)


def first_of_update(block: Block) -> Stmt | None:
    """Return the first statement of an update by the reducer of a block, None for another body.

    All values that the block binds for the operands are bound before it.
    """
    body = without_lets(block.body)
    found = updating(block if body is block.body else replace(block, body=body))
    return None if found is None else statements_of(body)[len(found.prefix)]


@lru_cache(maxsize=4096)
def reducing(block: Block) -> Reducing | None:
    """Return the parts of the body of a block with a reducer; None if it has another form."""
    found = updating(block)
    if found is None or block.reducer is None or found.left != found.targets:
        return None
    return Reducing(block.reducer, found.prefix, found.targets, found.right, found.origins)


@lru_cache(maxsize=4096)
def scattering(block: Block) -> Reducing | None:
    """Return the parts of a body whose targets may depend on loaded integers.

    The body is that of a reduction by a reducer, inside of statements that load integers, or
    without them. Such an update is not a reduction of its block: its iterations run in order.

    Examples
    --------
    >>> from ..script import parse
    >>> f = parse('''
    ... @prim_func
    ... def f(at: Buffer[(8,), i32], x: Buffer[(8,), f32], m: InOut[(4,), f32],
    ...       p: InOut[(4,), i64]):
    ...     for k in range(8):
    ...         with block("m"):
    ...             vk = reduce(k)
    ...             with checked(at[vk], 0, 4) as i:
    ...                 m[i], p[i] = argmax(x[vk], vk)
    ... ''').prim("f")
    >>> block = f.body.body
    >>> reducing(block), [str(target.buffer.name) for target in scattering(block).targets]
    (None, ['m', 'p'])
    """
    body = without_lets(block.body)
    return reducing(block if body is block.body else replace(block, body=body))


def without_lets(statement: Stmt) -> Stmt:
    """Return the statement in the scope of the integers that a statement loads first."""
    while isinstance(statement, Let):
        statement = statement.body
    return statement


def _distinct(targets: Sequence[Load]) -> bool:
    """Return whether no two results are one element: their buffers or last indices differ."""
    seen: dict[Buffer, set[int | None]] = {}
    for target in targets:
        last = const_value(target.indices[-1]) if target.indices else None
        others = seen.setdefault(target.buffer, set())
        if others and (last is None or last in others or None in others):
            return False
        others.add(last)
    return True


def reads_any(values: Sequence[Element], buffers: set[Buffer]) -> bool:
    """Return whether a value loads an element of a buffer."""
    return any(isinstance(e, Load) and e.buffer in buffers for v in values for e in walk_element(v))


def reducer_problem(block: Block) -> str:
    """Return why the body of a block is not a reduction by its reducer; empty if it is."""
    if block.reducer is None:
        return ""
    made = list(stores(block.body))
    if len({s.buffer for s in made}) == len(made) and scattering(block) is not None:
        return ""
    written = {s.buffer for s in made}
    results = len(block.reducer.left)
    if len(made) != results or len(written) < results:
        return f"it has {len(made)} stores, and the reducer has {results} results"
    read = {x.buffer for x in loads(block.body)} & written
    if len({s.indices for s in made}) > 1 and len({s.buffer.rank for s in made}) == 1:
        return "its stores have different indices"
    names = ", ".join(sorted(b.name for b in read))
    return f"its stores do not combine the elements of {names} with new values"


def reducer_problems(block: Block) -> Iterator[str]:
    """Yield the violations of a block by its reducer."""
    if block.reducer is None:
        return
    problem = reducer_problem(block)
    if problem:
        yield f"the body is not a reduction by {block.reducer.name!r}: {problem}"
        return
    extents = {v.var: v.extent for v in block.iters}
    targets = {s.buffer: s.indices for s in stores(block.body)}
    used = {
        b: {v for index in at for v in index.free if extents.get(v, 1) != 1}
        for b, at in targets.items()
    }
    first, *rest = used
    for buffer in rest:
        if used[buffer] != used[first]:
            names = sorted(v.name for v in used[buffer] ^ used[first])
            yield (
                f"{first.name!r} and {buffer.name!r} are stored at different iterations: only "
                f"one of them is indexed by {', '.join(map(repr, names))}"
            )
    for store in () if block.init is None else stores(block.init):
        if store.buffer in targets and store.indices != targets[store.buffer]:
            yield f"the init stores another element of {store.buffer.name!r} than the body"


def operands_of(block: Block) -> set[Local]:
    """Return the locals of a reduction by a reducer, whose names do not occur in its text."""
    if block.reducer is None:
        return set()
    bound = {s.local for s in walk(block.body) if isinstance(s, Bind)}
    found = scattering(block)
    if found is not None:
        return bound - {bind.local for bind in found.prefix}
    reducer = block.reducer  # the body is not a reduction by it; names of it are not in the text
    own = {x.name for x in (*reducer.left, *reducer.right, *(bind for bind, _ in reducer.binds))}
    return {local for local in bound if local.name in own}
