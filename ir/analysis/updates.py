"""Updates in place, ``C[idx] = C[idx] op value``, by an operator whose operations may be reordered.

The operator is commutative and associative, so the updates of one element may run in any order, or
be combined in partial results: the only code whose floating-point operations are reassociated.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from ..loop.combiners import COMBINERS, Combiner, reducer_of
from ..loop.nodes import Binary, Bind, Block, Condition, Element, Load, Store, Where
from ..loop.reducers import Reducing, reducing
from ..loop.straight_line import last_of, single_store, statements_of, straight_line
from ..loop.visit import allocations, loads, stores, walk, walk_element
from ..symbolic import all_of, substitute


def update_of(store: Store) -> tuple[Combiner, Binary] | None:
    """Return the operator of a store ``C[idx] = C[idx] op value``, and its value.

    The value is returned with ``C[idx]`` on the left, where ``C[idx] = value op C[idx]`` has it on
    the right. Return None for any other store, such as one whose ``value`` reads ``C``.

    Examples
    --------
    >>> from ..script import parse
    >>> f = parse('''
    ... @prim_func
    ... def f(x: Buffer[(8,), f32], y: InOut[(8,), f32]):
    ...     for i in range(8):
    ...         with block("y"):
    ...             v = spatial(i)
    ...             y[v] = x[v] * 2.0 + y[v]
    ... ''').prim("f")
    >>> from ..loop.visit import stores
    >>> op, value = update_of(next(stores(f.body)))
    >>> op, value.left.buffer.name
    ('add', 'y')
    """
    update = operation_on_own(store)
    if update is None:
        return None
    op: Combiner = next(name for name in COMBINERS if name == update.op)
    parts = walk_element(update.right)
    again = any(isinstance(e, Load) and e.buffer is store.buffer for e in parts)
    return None if again else (op, update)


def operation_on_own(store: Store) -> Binary | None:
    """Return the value ``C[idx] op value`` of a store to ``C[idx]``, or None.

    The value has ``C[idx]`` on the left, as that of `update_of`, but may also read other elements
    of ``C``.
    """
    value, own = store.value, Load(store.buffer, store.indices)
    if not isinstance(value, Binary) or value.op not in COMBINERS:
        return None
    if value.left == own:
        return value
    return Binary(value.op, own, value.left) if value.right == own else None


def reduction_update(block: Block) -> tuple[Store, Binary] | None:
    """Return the update ``C[idx] = C[idx] op value`` of a reduction block and its value.

    The value has ``C[idx]`` on the left, as that of `update_of`. The body may bind values before
    the update. Return None for any other body, such as an update with a non-commutative operator.
    """
    store = single_store(block.body)
    found = None if store is None else update_of(store)
    if store is None or found is None:
        return None
    bound = (s.value for s in walk(block.body) if isinstance(s, Bind))
    parts = (e for value in bound for e in walk_element(value))
    if any(isinstance(e, Load) and e.buffer is store.buffer for e in parts):
        return None
    return store, found[1]


@lru_cache(maxsize=4096)
def reduction_of(block: Block) -> Reducing | None:
    """Return the reduction that a block declares by a reducer, or computes by a known operator.

    Examples
    --------
    >>> from ..script import parse
    >>> f = parse('''
    ... @prim_func
    ... def f(x: Buffer[(8,), f32], y: InOut[(), f32]):
    ...     for k in range(8):
    ...         with block("y"):
    ...             vk = reduce(k)
    ...             y[()] = x[vk] * 2.0 + y[()]
    ... ''').prim("f")
    >>> found = reduction_of(f.body.body)
    >>> found.reducer.name, found.terms
    ('add', (<Binary x[vk] * 2.0: f32>,))
    """
    if block.reducer is not None:
        return reducing(block)
    update = reduction_update(block)
    if update is None:
        return _with_scratch(block)
    store, value = update
    combiner = next(name for name in COMBINERS if name == value.op)
    prefix = tuple(s for s in statements_of(block.body) if isinstance(s, Bind))
    target = Load(store.buffer, store.indices)
    reducer = reducer_of(combiner, store.buffer.dtype)
    return Reducing(reducer, prefix, (target,), (value.right,), store.origins)


def reorders(block: Block) -> bool:
    """Return whether the terms of a reduction block may be combined in any order."""
    found = reduction_of(block)
    return found is not None and found.reducer.commutative


def starts_at_identity(block: Block) -> bool:
    """Return whether the init of a reduction block stores the identity of its operation."""
    update = reduction_of(block)
    start = None if block.init is None else straight_line(block.init)
    if update is None or start is None or start[0]:
        return False
    pairs = zip(start[1], update.targets, update.reducer.identities, strict=True)
    return all(s.buffer is t.buffer and str(s.value) == str(one) for s, t, one in pairs)


def excluding_identities(block: Block) -> Block:
    """Return a reduction block whose predicate excludes terms that are the identity.

    These are terms that a condition on indices selects: ``y[vi] += where(vk < m, x[vk], 0.0)``
    becomes ``y[vi] += x[vk]`` with the predicate ``vk < m``. The results differ in the sign of zero
    only, and are the same if the result starts at the identity. Other blocks are unchanged.

    Examples
    --------
    >>> from ..script import parse
    >>> f = parse('''
    ... @prim_func
    ... def f(m: Int, x: Buffer[(8,), f32], y: InOut[(), f32]):
    ...     for k in range(8):
    ...         with block("y"):
    ...             vk = reduce(k)
    ...             y[()] += where(vk < m, x[vk], 0.0)
    ... ''').prim("f")
    >>> changed = excluding_identities(f.body.body)
    >>> changed.predicate, reduction_of(changed).terms
    (k < m, (<Load x[vk]: f32>,))
    """
    update = reduction_of(block)
    if update is None or update.scratch is not None:
        return block
    pairs = zip(update.terms, update.reducer.identities, strict=True)
    chosen = [t for t, one in pairs if isinstance(t, Where) and t.otherwise == one]
    conditions = {t.condition for t in chosen}
    condition = next(iter(conditions), None)
    complete = len(chosen) == len(update.terms) and len(conditions) == 1
    if not complete or not isinstance(condition, Condition):
        return block
    prefix = tuple(replace(b, value=_selected(b.value, condition)) for b in update.prefix)
    changed = replace(update, prefix=prefix, terms=tuple(t.then for t in chosen))
    predicate = substitute(condition.value, {v.var: v.binding for v in block.iters})
    return replace(block, predicate=all_of(block.predicate, predicate), body=changed.body())


def _selected(value: Element, condition: Condition) -> Element:
    if isinstance(value, Where) and value.condition == condition:
        return value.then
    return value


def _with_scratch(block: Block) -> Reducing | None:
    """Return the reduction of a block that allocates temporaries to compute the value.

    The update is the last statement; the others write only temporaries of the block, and do not
    read the result.
    """
    store = last_of(block.body)
    own = {alloc.buffer for alloc in allocations(block.body)}
    update = update_of(store) if own and isinstance(store, Store) else None
    if update is None or not isinstance(store, Store) or store.buffer in own:
        return None
    if store.buffer.dtype.is_complex or any(isinstance(s, Block) for s in walk(block.body)):
        return None
    written = [s.buffer for s in stores(block.body) if s is not store]
    read = [x for x in loads(block.body) if x.buffer is store.buffer]
    if not own.issuperset(written) or len(read) != 1:
        return None
    op, value = update
    target = Load(store.buffer, store.indices)
    reducer = reducer_of(op, store.buffer.dtype)
    return Reducing(reducer, (), (target,), (value.right,), store.origins, block.body)
