"""The storages of a memory-stage function: live ranges, sizes, and the slots of the arena."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from ....ir.graph.live_ranges import LiveRanges, tensor_bytes
from ....ir.graph.nodes import (
    DEFAULT_DEVICE,
    AllocStorage,
    Binding,
    GraphFunc,
    Loop,
    MatchCast,
    Value,
    ViewTensor,
)
from ....ir.graph.visit import all_bindings
from ....ir.symbolic import Const, Expr, Var, const_value, free_vars, to_text
from .context import HostKernel


@dataclass
class Storage:
    """A storage: its size in bytes, its live range, its provider, and the tensors in it."""

    name: str
    size: Expr
    first: int
    last: int
    tensors: tuple[tuple[str, Expr], ...] = ()
    result: int = -1
    late: int = -1
    slot: int = -1
    device: str = DEFAULT_DEVICE
    stream: int = 0


@dataclass
class Storages:
    """The storages of a function; positions in live ranges count bindings in program order."""

    by_value: dict[Value, Storage] = field(default_factory=dict[Value, Storage])
    scratch: dict[Value, Storage] = field(default_factory=dict[Value, Storage])
    arena: list[Storage] = field(default_factory=list[Storage])
    late: list[Storage] = field(default_factory=list[Storage])
    loops: dict[Value, list[Storage]] = field(default_factory=dict[Value, list[Storage]])
    moved: dict[tuple[Value, int], Storage] = field(
        default_factory=dict[tuple[Value, int], Storage]
    )
    """The storages that become the block of a carried value, by loop and position."""


def direct_results(func: GraphFunc, live_ranges: LiveRanges) -> dict[Value, int]:
    """Return the storages that become results without a copy, with the result position.

    These are storages outside of branches of which a result is a view of all bytes.
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
        size = live_ranges.ranges[storage].size if storage in live_ranges.ranges else None
        whole = size is not None and size == tensor_bytes(view.info)
        whole = whole and live_ranges.ranges[storage].device == DEFAULT_DEVICE
        if whole and storage in top and storage not in chosen:
            chosen[storage] = position
    return chosen


@dataclass(frozen=True, slots=True)
class ScratchSize:
    """The scratch of a launch: its size in bytes, its temporaries with their sizes, its kernel."""

    size: Expr
    temporaries: tuple[tuple[str, Expr], ...] = ()
    kernel: str = ""

    @property
    def name(self) -> str:
        """The name of the storage: the names of the first temporaries."""
        names = [name for name, _ in self.temporaries]
        more = len(names) - MOST_NAMES
        parts = (*names[:MOST_NAMES], *((f"{more}_more",) if more > 0 else ()), "scratch")
        return "_".join(parts)

    @property
    def tensors(self) -> tuple[tuple[str, Expr], ...]:
        """The temporaries with their sizes, named with their kernel."""
        return tuple((f"{name} (kernel {self.kernel})", size) for name, size in self.temporaries)


MOST_NAMES: Final = 3
"""The number of temporaries in the name of a scratch storage."""


def temporary_texts(kernels: Mapping[str, HostKernel]) -> Mapping[str, tuple[str, ...]]:
    """Return the temporaries in the scratch of each kernel that has one, as text."""
    return MappingProxyType(
        {
            name: tuple(
                f"{temporary}: {to_text(size)} bytes at {to_text(offset)}"
                for temporary, size, offset in kernel.temporaries
            )
            for name, kernel in kernels.items()
            if kernel.temporaries
        }
    )


def assign_storages(
    func: GraphFunc, entry: set[Var], scratch: Mapping[Binding, ScratchSize]
) -> Storages:
    """Assign each storage to a result of the caller, the arena, or the heap.

    Storages of the default device whose size is known at entry are in the arena; the others are
    allocated on the heap of their device.
    """
    live_ranges = LiveRanges(func)
    results, made, tensors = direct_results(func, live_ranges), Storages(), _tensors(func)
    for value, live in live_ranges.ranges.items():
        inside = tuple(tensors.get(value, ()))
        storage = Storage(value.name, live.size, live.first, live.last, inside)
        storage.device, storage.stream = live.device, live.stream
        storage.result = results.get(value, -1)
        made.by_value[value] = storage
        if storage.result == -1:
            _assign(made, storage, entry)
    for binding, needed in scratch.items():
        position = live_ranges.positions[binding]
        extra = Storage(needed.name, needed.size, position, position, needed.tensors)
        made.scratch[binding.value] = extra
        _assign(made, extra, entry)
    for binding in all_bindings(func.bindings):
        if isinstance(binding.right, Loop):
            made.loops[binding.value] = _blocks(made, binding.value, binding.right)
            for position, storage in _moved(binding.right, made, live_ranges):
                made.moved[binding.value, position] = storage
    return made


def _moved(loop: Loop, made: Storages, live_ranges: LiveRanges) -> Iterator[tuple[int, Storage]]:
    """Yield the carried values whose next value need not be copied, with its storage.

    The body allocates this storage on the heap in each iteration, the next value is at its start,
    and no other next value is in it.
    """
    inside = {b.value: b.right for b in loop.body.bindings}
    for position, operand in enumerate(loop.next_values):
        value = operand
        while isinstance(value, Value):
            match inside.get(value):
                case ViewTensor(storage=source, offset=offset) if const_value(offset) == 0:
                    value = source
                case MatchCast(value=source):
                    value = source
                case _:
                    break
        if not isinstance(value, Value) or not isinstance(inside.get(value), AllocStorage):
            continue
        storage = made.by_value[value]
        others = (o for k, o in enumerate(loop.next_values) if k != position)
        shared = value in live_ranges.roots_of(tuple(others))
        if storage.late >= 0 and storage.device == DEFAULT_DEVICE and not shared:
            yield position, storage


def _blocks(made: Storages, value: Value, loop: Loop) -> list[Storage]:
    """Return the blocks of each result of a loop: of the last iteration, and of the next one."""
    count = 2 * len(loop.body.results)
    blocks = [Storage(f"{value.name}_block", Const(0), 0, 0, late=len(made.late) + k)
              for k in range(count)]  # fmt: skip
    made.late += blocks
    return blocks


def _tensors(func: GraphFunc) -> dict[Value, list[tuple[str, Expr]]]:
    """Return the names and sizes of the tensors that are views of each storage."""
    found: dict[Value, list[tuple[str, Expr]]] = {}
    for binding in all_bindings(func.bindings):
        match binding.right:
            case ViewTensor(storage=storage, info=info):
                found.setdefault(storage, []).append((binding.value.name, tensor_bytes(info)))
            case _:
                pass
    return found


def _assign(made: Storages, storage: Storage, entry: set[Var]) -> None:
    if free_vars(storage.size) <= entry and storage.device == DEFAULT_DEVICE:
        storage.slot = len(made.arena)
        made.arena.append(storage)
    else:
        storage.late = len(made.late)
        made.late.append(storage)
