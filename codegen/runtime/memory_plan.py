"""Memory plans of calls: the storages of the arena for given sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from ...display import Table
from ...errors import Json
from ...ir.symbolic import UnboundSymbolError, Var, evaluate, parse_expr, var
from ...nearest import listed
from ..entry_names import public_name
from ..manifest import FunctionSpec, UpdateSpec, to_json
from ..rtlib import layout
from .plan_query import CallPlan, PlanQuery, exact_plan
from .sizes import SIZE_LIMIT, SymbolValueError, bytes_text, symbol_value

if TYPE_CHECKING:
    from .function import NativeFunction

MAX_NAMES = 3
"""The number of tensors of a storage that the table lists."""


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
        The size of the arena of the exact plan in bytes.
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
    call : CallPlan
        The plan that the next call uses: the exact plan, one of larger sizes that a previous call
        computed, or one with room for growth.
    updates : tuple of UpdateSpec
        The tensors that kernels update, and the copies of last values to state parameters.
    """

    arena: int
    peak: int
    unshared: int
    storages: tuple[StorageAllocation, ...]
    function: str
    symbols: Mapping[str, int]
    call: CallPlan
    updates: tuple[UpdateSpec, ...] = ()

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
            self.call_text(),
            f"all tensors without sharing: {bytes_text(self.unshared)}, saved {saved:.0%}",
            "live ranges count operations of the program",
            "arguments, results and constants are not in the arena",
        )
        columns = ("storage", "size", "offset (bytes)", "live range", "tensors")
        return Table(columns, rows, title, notes)

    def update_table(self) -> Table:
        """Return the updates as a table: whether they are in place, or the reason of the copy."""
        rows = tuple(
            (u.value, u.kernel, u.memory, "in place" if u.in_place else "copied", u.reason)
            for u in self.updates
        )
        count = sum(u.in_place for u in self.updates)
        title = f"updates of {self.function!r}: {count} of {len(rows)} in place"
        return Table(("tensor", "kernel", "memory", "update", "reason"), rows, title)

    def _tables(self) -> tuple[Table, ...]:
        return (self.table(), self.update_table()) if self.updates else (self.table(),)

    def call_text(self) -> str:
        """Return a sentence about the plan that the next call uses."""
        size = bytes_text(self.call.total)
        above = self.call.total / self.arena - 1 if self.arena else 0.0
        match self.call.kind:
            case "exact":
                text = "the next call uses the exact plan"
            case "larger":
                text = f"the next call uses a plan of larger sizes: {size}, {above:.0%} more"
            case _:
                text = f"the next call makes a plan with room for growth: {size}, {above:.0%} more"
        return f"{text}; plans made by calls: {self.call.planned}"

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
            "call": {
                "plan": self.call.kind,
                "arena": self.call.total,
                "planned": self.call.planned,
                "reused": self.call.reused,
            },
            "storages": storages,
            "updates": [to_json(u) for u in self.updates],
        }

    def __str__(self) -> str:
        """Return a table of the storages, with totals, and one of the updates, if any."""
        return "\n\n".join(map(str, self._tables()))

    def _repr_html_(self) -> str:
        """Return the tables as static HTML."""
        return "".join(table.to_html() for table in self._tables())

    def __repr__(self) -> str:
        """Return one line with the totals."""
        return (
            f"<MemoryPlan of {self.function}: arena {bytes_text(self.arena)}, "
            f"{len(self.storages)} storage{'' if len(self.storages) == 1 else 's'}>"
        )


def memory_plan(
    spec: FunctionSpec, shapes: Mapping[str, int], query: PlanQuery | None = None
) -> MemoryPlan:
    """Plan the arena for values of the symbols, with the same planner as calls.

    Parameters
    ----------
    spec : FunctionSpec
        The function.
    shapes : Mapping of str to int
        The value of each symbol.
    query : PlanQuery, optional
        A function that returns the plan of the next call; default: there was no call, so the plan
        is exact.

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
    _check_total(sizes)
    total, peak, offsets = exact_plan(spec, sizes)
    call = CallPlan("exact", total, 0, 0)
    if query is not None:
        call = query(list(values.values()), sizes)
    storages = tuple(
        StorageAllocation(s.name, offset, size, s.first, s.last, tuple(t.name for t in s.tensors))
        for s, offset, size in zip(spec.storages, offsets, sizes, strict=True)
    )
    unshared = sum(
        sum(_aligned(_size(t.size, symbols, terms)) for t in s.tensors) or size
        for s, size in zip(spec.storages, sizes, strict=True)
    )
    name = public_name(spec.name)
    updates = spec.updates
    return MemoryPlan(total, peak, unshared, storages, name, values, call, updates)


def plan_of_call(
    functions: Mapping[str, NativeFunction], spec: FunctionSpec, shapes: Mapping[str, int]
) -> MemoryPlan:
    """Plan the arena for values of the symbols, with the plans of a function that is loaded."""
    loaded = functions.get(spec.name)
    return memory_plan(spec, shapes, None if loaded is None else loaded.query_plan)


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
    return {n: symbol_value(n, given[n], f"shapes[{n!r}]") for n in spec.symbols}


def _size(text: str, symbols: Mapping[str, Var], values: Mapping[Var, int]) -> int:
    size = int(evaluate(parse_expr(text, symbols), values))
    if not 0 <= size < SIZE_LIMIT:
        raise SymbolValueError(
            f"a storage of {text} = {size} bytes is not less than 2**62 bytes",
            hint="pass smaller values of the symbols",
        )
    return size


def _aligned(size: int) -> int:
    return (size + layout.ALIGNMENT - 1) // layout.ALIGNMENT * layout.ALIGNMENT


def _check_total(sizes: Sequence[int]) -> None:
    if sum(sizes) >= SIZE_LIMIT:
        raise SymbolValueError(
            f"all storages have {sum(sizes)} bytes, not less than 2**62 bytes",
            hint="pass smaller values of the symbols",
        )


def _names(tensors: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    more = len(tensors) - MAX_NAMES
    return ", ".join(tensors[:MAX_NAMES]) + (f", {more} more" if more > 0 else "")
