"""Reductions across the lanes of a vector, which reassociate the declared operation."""

from __future__ import annotations

from ....ir.analysis import update_of
from ....ir.loop import nodes as loop
from ....ir.loop.combiners import identity_of
from ....ir.thread.nodes import Const, Reduce, Select, Value
from ....ir.thread.types import VectorType
from ..math import combined
from .context import LoweringContext
from .element_values import Elements, lanes_of, widen


def is_lane_reduction(store: loop.Store, context: LoweringContext) -> bool:
    """Return whether a store reduces one value per lane into an element."""
    machine = store.buffer.dtype.is_machine
    return context.lanes is not None and machine and update_of(store) is not None


def reduce_lanes(store: loop.Store, elements: Elements) -> Value:
    """Combine the values of all lanes, then combine the result with the element."""
    found = update_of(store)
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
    return combined(op, old, folded)
