"""Dead-code elimination in imported functions."""

from __future__ import annotations

from dataclasses import replace

from ..graph.nodes import (
    Binding,
    Call,
    ConstantRef,
    GraphFunc,
    MatchCast,
    Operand,
    TupleItem,
    Value,
)


def operands_of(binding: Binding) -> tuple[Operand, ...]:
    """Return the operands of a binding of an imported function."""
    match binding.right:
        case Call(args=args):
            return args
        case TupleItem(tuple_=source):
            return (source,)
        case MatchCast(value=value):
            return (value,)
        case _:
            return ()


def without_dead_code(function: GraphFunc) -> GraphFunc:
    """Remove unused bindings; run-time checks are kept because facts depend on them."""
    needed = {r for r in function.returned if isinstance(r, Value)}
    kept: list[Binding] = []
    for binding in reversed(function.bindings):
        if binding.value in needed or isinstance(binding.right, MatchCast):
            kept.append(binding)
            needed.update(a for a in operands_of(binding) if isinstance(a, Value))
    return replace(function, bindings=tuple(reversed(kept)))


def constants_of(function: GraphFunc) -> set[str]:
    """Return the keys of the constants that a function uses."""
    used = [a for b in function.bindings for a in operands_of(b)]
    initial = [p.initial for p in function.params if p.initial is not None]
    operands = (*used, *function.returned, *initial)
    return {o.key for o in operands if isinstance(o, ConstantRef)}
