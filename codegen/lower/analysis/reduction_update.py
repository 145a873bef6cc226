"""Stores that update a reduction: the only code whose operations may be reassociated."""

from __future__ import annotations

from typing import Final

from ....ir.loop.builder import Combiner
from ....ir.loop.nodes import Binary, Load, Store
from ....ir.loop.visit import walk_element

COMMUTATIVE_OPS: Final = ("add", "mul", "min", "max", "and", "or", "xor")


def reduction_update_of(store: Store) -> tuple[Combiner, Binary] | None:
    """Return the operation of a store ``C = op(C, value)``, with ``value`` on the right."""
    value = store.value
    if not isinstance(value, Binary) or value.op not in COMMUTATIVE_OPS:
        return None
    own = Load(store.buffer, store.indices)
    if value.left == own:
        new = value.right
    elif value.right == own:
        new = value.left
    else:
        return None
    if any(isinstance(e, Load) and e.buffer is store.buffer for e in walk_element(new)):
        return None
    return value.op, Binary(value.op, own, new)
