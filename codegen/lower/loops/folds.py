"""Stores that fold a value into an element: the only code whose operations may be reordered."""

from __future__ import annotations

from typing import Final

from ....ir.loop.builder import Combiner
from ....ir.loop.nodes import Binary, Load, Store
from ....ir.loop.visit import walk_element

FOLDED: Final = ("add", "mul", "min", "max", "and", "or", "xor")


def fold_of(store: Store) -> tuple[Combiner, Binary] | None:
    """Give the operation of ``C = op(C, value)``, with ``value`` on the right."""
    value = store.value
    if not isinstance(value, Binary) or value.op not in FOLDED:
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
