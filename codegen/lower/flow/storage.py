"""Where every tensor of a memory-stage function lives: lives, sizes, and the plan of the arena."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ....ir.graph.lives import Lives, tensor_bytes
from ....ir.graph.memory import ViewTensor
from ....ir.graph.nodes import Binding, GraphFunc, Value
from ....ir.graph.visit import inner_bindings
from ....ir.symbolic import Expr, Var, const_value, free_vars


@dataclass
class Storage:
    """One storage: its size in bytes, the moments it lives, and how it is provided."""

    name: str
    size: Expr
    first: int
    last: int
    result: int = -1
    late: int = -1
    slot: int = -1


@dataclass
class Storages:
    """All storages of a function; moments count bindings in program order."""

    by_value: dict[Value, Storage] = field(default_factory=dict[Value, Storage])
    scratch: dict[Value, Storage] = field(default_factory=dict[Value, Storage])
    arena: list[Storage] = field(default_factory=list[Storage])
    late: list[Storage] = field(default_factory=list[Storage])


def all_bindings(bindings: Sequence[Binding]) -> Iterator[Binding]:
    """Iterate bindings in program order, with those inside branches."""
    for binding in bindings:
        yield binding
        for inner in inner_bindings(binding.right):
            yield from all_bindings(inner)


def direct_results(func: GraphFunc, lives: Lives) -> dict[Value, int]:
    """Choose the storages that are handed to the caller as they are, by result position.

    A storage is, where one result alone is its whole first tensor and nothing nests its making.
    """
    top = {b.value: b.right for b in func.bindings}
    chosen: dict[Value, int] = {}
    for position, result in enumerate(func.results):
        view = top.get(result) if isinstance(result, Value) else None
        if not isinstance(view, ViewTensor) or const_value(view.offset) != 0:
            continue
        storage = view.storage
        while isinstance(inner := top.get(storage), ViewTensor) and const_value(inner.offset) == 0:
            storage = inner.storage
        size = lives.lives[storage].size if storage in lives.lives else None
        whole = size is not None and size == tensor_bytes(view.info)
        if whole and storage in top and storage not in chosen:
            chosen[storage] = position
    return chosen


def assign_storages(func: GraphFunc, entry: set[Var], scratch: dict[Binding, Expr]) -> Storages:
    """Decide for every storage who provides it: the caller's result, the arena, or the heap.

    The arena takes those whose size is known at entry; the others are allocated on the way.
    """
    lives = Lives(func)
    results, made = direct_results(func, lives), Storages()
    for value, life in lives.lives.items():
        storage = Storage(value.name, life.size, life.first, life.last)
        storage.result = results.get(value, -1)
        made.by_value[value] = storage
        if storage.result == -1:
            _place(made, storage, entry)
    for binding, size in scratch.items():
        moment = lives.moments[binding]
        extra = Storage(f"scratch_{binding.value.name}", size, moment, moment)
        made.scratch[binding.value] = extra
        _place(made, extra, entry)
    return made


def _place(made: Storages, storage: Storage, entry: set[Var]) -> None:
    if free_vars(storage.size) <= entry:
        storage.slot = len(made.arena)
        made.arena.append(storage)
    else:
        storage.late = len(made.late)
        made.late.append(storage)
