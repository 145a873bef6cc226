"""Reductions across the lanes of a vector: the declared operation may be reassociated."""

from __future__ import annotations

from typing import cast

from ....ir.loop import nodes as loop
from ....ir.loop.builder import Combiner, identity_of
from ....ir.loop.visit import walk_element
from ....ir.thread.nodes import Const, Reduce, Select, Value, VectorType
from ..math import binary_function
from .context import Context
from .elements import Elements, lanes_of, widen

_FOLDED = ("add", "mul", "min", "max", "and", "or")


def _step(store: loop.Store) -> loop.Element | None:
    """Give the value that ``C = op(C, value)`` folds in."""
    value = store.value
    if not isinstance(value, loop.Binary) or value.op not in _FOLDED:
        return None
    own = loop.Load(store.buffer, store.indices)
    new = value.right if value.left == own else value.left if value.right == own else None
    if new is None or any(isinstance(e, loop.Load) and e == own for e in walk_element(new)):
        return None
    return new


def is_fold(store: loop.Store, context: Context) -> bool:
    """Whether the store combines an element with one value a lane, by a reduction's operation."""
    return context.lanes is not None and _step(store) is not None


def fold_lanes(store: loop.Store, elements: Elements) -> Value:
    """Combine all lanes, then the element."""
    step = _step(store)
    if step is None or not isinstance(store.value, loop.Binary):
        return elements.value(store.value)
    op = cast("Combiner", store.value.op)
    lanes = elements.context.count
    new = widen(elements.value(step), lanes)
    mask = elements.mask()
    if mask is not None:
        neutral = identity_of(op, store.buffer.dtype)
        new = Select(mask, new, Const(neutral.value, VectorType(store.buffer.dtype, lanes)))
    old = elements.value(loop.Load(store.buffer, store.indices))
    folded = Reduce(op, new)
    if lanes_of(folded) != 1:
        return old
    return binary_function(op, old, folded)
