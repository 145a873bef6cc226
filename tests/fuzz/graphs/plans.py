"""Properties of memory plans that no step may violate, derived without the planner's analyses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.ir.graph.nodes import (
    AllocStorage,
    Check,
    GraphFunc,
    IfElse,
    Kill,
    LaunchKernel,
    LaunchLibrary,
    Value,
)
from tilewright.ir.graph.visit import inner_bindings, operands_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tilewright.ir.graph.nodes import Binding, Operand
    from tilewright.ir.module import Module


def problems(module: Module) -> list[str]:
    """Return the defects of the memory plans of a module."""
    planned = [f for f in module.graphs if f.stage == "memory"]
    return [f"{f.name}: {text}" for f in planned for text in _problems(f)]


def _problems(function: GraphFunc) -> Iterator[str]:
    """Yield uses after the end of a storage, repeated ends, and storages that never end."""
    memory: dict[Value, frozenset[Value]] = {}
    ended: set[Value] = set()
    own = [b.value for b in function.bindings if isinstance(b.right, AllocStorage)]
    for binding in function.bindings:
        right = binding.right
        if isinstance(right, Kill):
            if right.value in ended:
                yield f"{right.value.name!r} ends twice"
            ended.add(right.value)
            continue
        for name in _dead(_operands([binding]), memory, ended):
            yield f"binding {binding.value.name!r} uses {name!r} after its storage ended"
        _remember(binding, memory)
    for name in _dead(function.results, memory, ended):
        yield f"result {name!r} is in a storage that ended"
    kept = frozenset[Value]().union(
        *(memory.get(r, frozenset()) for r in _values(function.results))
    )
    yield from (f"{s.name!r} never ends" for s in own if s not in ended and s not in kept)


def _remember(binding: Binding, memory: dict[Value, frozenset[Value]]) -> None:
    """Note the storages that the value of a binding may be in."""
    right = binding.right
    if isinstance(right, AllocStorage):
        memory[binding.value] = frozenset({binding.value})
        return
    for inner in inner_bindings(right):
        for each in inner:
            _remember(each, memory)
    sources = list(operands_of(right))
    if isinstance(right, IfElse):
        sources = [*right.then.results, *right.otherwise.results]
    if isinstance(right, LaunchKernel | LaunchLibrary | Check):
        sources = []
    found = (memory.get(v, frozenset()) for v in _values(sources))
    memory[binding.value] = frozenset[Value]().union(*found)


def _values(operands: Sequence[Operand]) -> list[Value]:
    return [o for o in operands if isinstance(o, Value)]


def _operands(bindings: Sequence[Binding]) -> list[Operand]:
    """Return all operands of bindings, those of branches included."""
    found: list[Operand] = []
    for binding in bindings:
        found += operands_of(binding.right)
        for inner in inner_bindings(binding.right):
            found += _operands(inner)
        if isinstance(binding.right, IfElse):
            found += [*binding.right.then.results, *binding.right.otherwise.results]
    return found


def _dead(
    operands: Sequence[Operand], memory: dict[Value, frozenset[Value]], ended: set[Value]
) -> Iterator[str]:
    for value in _values(operands):
        if memory.get(value, frozenset()) & ended:
            yield value.name
