"""Dead-code elimination in imported functions."""

from __future__ import annotations

from dataclasses import replace

from ..graph.nodes import Binding, CallTIR, ConstantRef, GraphFunc, MatchCast, Value
from ..graph.visit import all_bindings, used_operands, used_values


def _checks(binding: Binding) -> bool:
    """Return whether a binding, or one inside of it, is a run-time check."""
    return any(isinstance(b.right, MatchCast) for b in all_bindings((binding,)))


def without_dead_code(function: GraphFunc) -> GraphFunc:
    """Remove unused bindings; run-time checks are kept because facts depend on them."""
    needed = {r for r in function.returned if isinstance(r, Value)}
    kept: list[Binding] = []
    for binding in reversed(function.bindings):
        if binding.value in needed or _checks(binding):
            kept.append(binding)
            needed.update(used_values((binding,)))
    return replace(function, bindings=tuple(reversed(kept)))


def constants_of(function: GraphFunc) -> set[str]:
    """Return the keys of the constants that a function uses."""
    used = used_operands(function.bindings)
    initial = [p.initial for p in function.params if p.initial is not None]
    operands = (*used, *function.returned, *initial)
    return {o.key for o in operands if isinstance(o, ConstantRef)}


def called_functions(function: GraphFunc) -> set[str]:
    """Return the names of the loop-level functions that a function calls."""
    rights = (b.right for b in all_bindings(function.bindings))
    return {r.function for r in rights if isinstance(r, CallTIR)}
