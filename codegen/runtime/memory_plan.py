"""Memory plans of calls: the storages of the arena for given sizes."""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ...display import Table
from ...errors import Json, TilewrightError
from ...ir.symbolic import UnboundSymbolError, Var, evaluate, parse_expr, var
from ...nearest import listed
from ..build.rtlib_object import rtlib_address
from ..lower.host.entry_wrappers import public_name
from ..manifest import FunctionSpec
from ..rtlib import layout, planner

_PACK = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, *([ctypes.c_void_p] * 4))

MAX_NAMES = 3
"""The number of tensors of a storage that the table lists."""

_LIMIT = 1 << 62
"""Sizes must be less than this number of bytes."""


class SymbolValueError(TilewrightError):
    """A value of a symbol that is not a size, or a value for an unknown symbol."""

    title = "Invalid value of a symbol"


@dataclass(frozen=True, slots=True)
class StorageAllocation:
    """A storage in the arena for given sizes, with its live range from ``first`` to ``last``.

    Offset and size are in bytes; the live range is in positions of the program. ``tensors`` are the
    names of the tensors that the storage contains, one after the other.
    """

    name: str
    offset: int
    bytes: int
    first: int
    last: int
    tensors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class MemoryPlan:
    """The arena of a function for given sizes.

    Parameters
    ----------
    arena : int
        The size of the arena in bytes.
    peak : int
        The maximum of live bytes at any position of the program, a lower bound of every plan.
    unshared : int
        The size of all tensors in bytes, as if none shared memory.
    storages : tuple of StorageAllocation
        The storages.
    function : str
        The name of the function.
    symbols : Mapping[str, int]
        The values of the symbols.
    """

    arena: int
    peak: int
    unshared: int
    storages: tuple[StorageAllocation, ...]
    function: str
    symbols: Mapping[str, int]

    def table(self) -> Table:
        """Return the storages as a table, in the order of the program."""
        rows = tuple(
            (s.name, bytes_text(s.bytes), s.offset, f"{s.first} to {s.last}", _names(s.tensors))
            for s in sorted(self.storages, key=lambda s: (s.first, s.last))
        )
        at = ", ".join(f"{name} = {value}" for name, value in self.symbols.items())
        title = f"memory of {self.function!r}{' at ' if at else ''}{at}: {bytes_text(self.arena)}"
        saved = 1 - self.arena / self.unshared if self.unshared else 0.0
        notes = (
            f"peak of live bytes: {bytes_text(self.peak)}",
            f"all tensors without sharing: {bytes_text(self.unshared)}, saved {saved:.0%}",
            "live ranges count operations of the program",
            "arguments, results and constants are not in the arena",
        )
        columns = ("storage", "size", "offset (bytes)", "live range", "tensors")
        return Table(columns, rows, title, notes)

    def to_json(self) -> dict[str, Json]:
        """Return the plan as JSON data; sizes and offsets are in bytes."""
        storages: list[Json] = [
            {
                "name": s.name,
                "offset": s.offset,
                "bytes": s.bytes,
                "first": s.first,
                "last": s.last,
                "tensors": list(s.tensors),
            }
            for s in self.storages
        ]
        return {
            "function": self.function,
            "symbols": {**self.symbols},
            "arena": self.arena,
            "peak": self.peak,
            "unshared": self.unshared,
            "storages": storages,
        }

    def __str__(self) -> str:
        """Return a table of the storages, with totals."""
        return str(self.table())

    def _repr_html_(self) -> str:
        """Return the table as static HTML."""
        return self.table().to_html()

    def __repr__(self) -> str:
        """Return one line with the totals."""
        return (
            f"<MemoryPlan of {self.function}: arena {bytes_text(self.arena)}, "
            f"{len(self.storages)} storage{'' if len(self.storages) == 1 else 's'}>"
        )


def memory_plan(spec: FunctionSpec, shapes: Mapping[str, int]) -> MemoryPlan:
    """Plan the arena for values of the symbols, with the same planner as calls.

    Raises
    ------
    UnboundSymbolError
        If ``shapes`` lacks a symbol; the hint lists the symbols of the function.
    SymbolValueError
        If a value is not a size, or a name is not a symbol of the function.
    """
    values = symbol_values(spec, shapes)
    symbols: dict[str, Var] = {name: var(name) for name in spec.symbols}
    terms = {symbols[name]: value for name, value in values.items()}
    sizes = [_aligned(_size(s.size, symbols, terms)) for s in spec.storages]
    total, offsets = _pack(spec, sizes)
    storages = tuple(
        StorageAllocation(s.name, offset, size, s.first, s.last, tuple(t.name for t in s.tensors))
        for s, offset, size in zip(spec.storages, offsets, sizes, strict=True)
    )
    moments = {m for s in spec.storages for m in (s.first, s.last)}
    live = (sum(s.bytes for s in storages if s.first <= m <= s.last) for m in moments)
    unshared = sum(
        sum(_aligned(_size(t.size, symbols, terms)) for t in s.tensors) or size
        for s, size in zip(spec.storages, sizes, strict=True)
    )
    name = public_name(spec.name)
    return MemoryPlan(total, max(live, default=0), unshared, storages, name, values)


def symbol_values(spec: FunctionSpec, shapes: object) -> dict[str, int]:
    """Return the value of each symbol of the function, in order.

    Raises
    ------
    UnboundSymbolError
        If a symbol has no value.
    SymbolValueError
        If a value is not a size, or a name is not a symbol of the function.
    """
    function = public_name(spec.name)
    hint = f"symbols of {function!r} are {', '.join(map(repr, spec.symbols)) or 'none'}"
    if not isinstance(shapes, Mapping):
        raise SymbolValueError(
            f"expected a mapping of symbols to sizes, got {type(shapes).__name__}", hint=hint
        )
    given = cast("Mapping[Any, Any]", shapes)
    unknown = [name for name in given if name not in spec.symbols]
    if unknown:
        known = listed(str(unknown[0]), list(spec.symbols)) if spec.symbols else "none"
        raise SymbolValueError(
            f"no symbol {unknown[0]!r}; symbols of {function!r} are {known}",
            where=f"shapes of function {function!r}",
            hint=hint,
            details={"symbol": str(unknown[0]), "symbols": list(spec.symbols)},
        )
    missing = [name for name in spec.symbols if name not in given]
    if missing:
        raise UnboundSymbolError(f"no value for symbol {', '.join(map(repr, missing))}", hint=hint)
    return {name: _symbol_value(name, given[name]) for name in spec.symbols}


def _symbol_value(name: str, value: object) -> int:
    try:
        size = operator.index(cast("Any", value))
    except TypeError:
        size = -1
    if not 0 <= size < _LIMIT or isinstance(value, bool):
        raise SymbolValueError(
            f"the value of symbol {name!r} must be an integer of at least 0 and less than 2**62, "
            f"got {value!r}",
            where=f"shapes[{name!r}]",
            hint="pass the number of elements of the dimension",
            details={"symbol": name, "value": str(value)},
        )
    return size


def _size(text: str, symbols: Mapping[str, Var], values: Mapping[Var, int]) -> int:
    size = int(evaluate(parse_expr(text, symbols), values))
    if not 0 <= size < _LIMIT:
        raise SymbolValueError(
            f"a storage of {text} = {size} bytes is not less than 2**62 bytes",
            hint="pass smaller values of the symbols",
        )
    return size


def _aligned(size: int) -> int:
    return (size + layout.ALIGNMENT - 1) // layout.ALIGNMENT * layout.ALIGNMENT


def _pack(spec: FunctionSpec, sizes: Sequence[int]) -> tuple[int, list[int]]:
    if sum(sizes) >= _LIMIT:
        raise SymbolValueError(
            f"all storages have {sum(sizes)} bytes, not less than 2**62 bytes",
            hint="pass smaller values of the symbols",
        )
    count = len(sizes)
    words = ctypes.c_int64 * max(count, 1)
    live_ranges = (ctypes.c_int64 * max(2 * count, 1))(
        *(m for s in spec.storages for m in (s.first, s.last))
    )
    offsets, scratch = words(), (ctypes.c_int64 * max(2 * count, 1))()
    pack = _PACK(rtlib_address(planner.pack))
    total = pack(count, words(*sizes), live_ranges, offsets, scratch)
    return total, list(offsets)[:count]


def _names(tensors: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    more = len(tensors) - MAX_NAMES
    return ", ".join(tensors[:MAX_NAMES]) + (f", {more} more" if more > 0 else "")


def bytes_text(count: int) -> str:
    """Return a number of bytes with a unit."""
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.4g} {unit}"
    return f"{count} bytes"
