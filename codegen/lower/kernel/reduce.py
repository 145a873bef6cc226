"""Reductions across the lanes of a vector: the declared operation may be reassociated."""

from __future__ import annotations

from ....ir.loop import nodes as loop
from ....ir.loop.builder import identity_of
from ....ir.thread.nodes import Const, Reduce, Select, Value
from ....ir.thread.types import VectorType
from ..loops.folds import fold_of
from ..math import binary_function
from .context import Context
from .elements import Elements, lanes_of, widen


def is_fold(store: loop.Store, context: Context) -> bool:
    """Whether the store combines an element with one value a lane, by a reduction's operation."""
    return context.lanes is not None and fold_of(store) is not None


def fold_lanes(store: loop.Store, elements: Elements) -> Value:
    """Combine all lanes, then the element."""
    found = fold_of(store)
    if found is None:
        return elements.value(store.value)
    op, step = found
    lanes = elements.context.count
    new = widen(elements.value(step.right), lanes)
    mask = elements.mask()
    if mask is not None:
        neutral = identity_of(op, store.buffer.dtype)
        new = Select(mask, new, Const(neutral.value, VectorType(store.buffer.dtype, lanes)))
    old = elements.value(loop.Load(store.buffer, store.indices))
    folded = Reduce(op, new)
    if lanes_of(folded) != 1:
        return old
    return binary_function(op, old, folded)
