"""Updates in place, ``C[idx] = C[idx] op value``, by an operator whose operations may be reordered.

The operator is commutative and associative, so the updates of one element may run in any order, or
be combined in partial results: the only code whose floating-point operations are reassociated.
"""

from __future__ import annotations

from ..loop.builder import COMBINERS, Combiner
from ..loop.nodes import Binary, Block, Load, Store
from ..loop.visit import walk_element


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
    value = store.value
    if not isinstance(value, Binary):
        return None
    op = value.op
    if op not in COMBINERS:
        return None
    own = Load(store.buffer, store.indices)
    if value.left == own:
        update = value
    elif value.right == own:
        update = Binary(op, own, value.left)
    else:
        return None
    parts = walk_element(update.right)
    again = any(isinstance(e, Load) and e.buffer is store.buffer for e in parts)
    return None if again else (op, update)


def reduction_update(block: Block) -> tuple[Store, Binary] | None:
    """Return the update ``C[idx] = C[idx] op value`` of a reduction block and its value.

    Return None for any other body, such as an update with a non-commutative operator.
    """
    body = block.body
    found = update_of(body) if isinstance(body, Store) else None
    if found is None or not isinstance(body, Store) or found[1] is not body.value:
        return None
    return body, found[1]
