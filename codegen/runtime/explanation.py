"""Explanations of executables: the operations, schedule and checks of each kernel."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from ...display import Cell, Table
from ...errors import Json
from ...ir.symbolic import Var, evaluate, parse_expr, var
from ..artifact import Artifact
from ..entry_names import public_name
from ..manifest import CheckSite, FunctionSpec, KernelFacts, to_json
from .memory_plan import (
    MemoryPlan,
    SymbolValueError,
    bytes_text,
    plan_of_call,
    symbol_values,
)

if TYPE_CHECKING:
    from .function import NativeFunction

MAX_TEXT: Final = 48
"""The number of characters of a cell of the summary; the explanation of a kernel shows all."""

MAX_WIDTH: Final = 80
"""The number of characters of a line of the explanation of one kernel."""

_SELECTION: Final = ("default_schedule", "schedule_kernel")
"""The composite steps that choose the default schedule of a kernel."""

VERSION_NOTE: Final = "a version runs instead of its kernel if its condition is true"

_ENTRY_CHECKS: Final = ("bound", "fact", "dimension", "stride", "alias")


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """The facts that the compiler recorded about kernels; ``print`` shows tables.

    Parameters
    ----------
    kernels : tuple of KernelFacts
        The facts about each kernel of each function.
    functions : tuple of FunctionSpec
        The functions that launch them.
    shapes : Mapping of str to int or None
        Values of the symbols for the counts of operations and bytes; None for symbolic counts.
    kernel : str
        The kernel to show with all of its facts; empty for one row per kernel.
    memory : tuple of MemoryPlan or SymbolValueError
        For each function with temporary tensors, its plan at ``shapes``, or why there is none.
    """

    kernels: tuple[KernelFacts, ...]
    functions: tuple[FunctionSpec, ...]
    shapes: Mapping[str, int] | None = None
    kernel: str = ""
    memory: tuple[MemoryPlan | SymbolValueError, ...] = ()

    def tables(self) -> tuple[Table, ...]:
        """Return the tables that ``print`` shows."""
        if self.kernel:
            return tuple(self._details(k) for k in self.kernels if k.kernel == self.kernel)
        checks = (t for f in self.functions if (t := _checks(f)) is not None)
        return (self._summary(), *self._memory(), *checks)

    def _memory(self) -> tuple[Table, ...]:
        if not self.memory:
            return ()
        columns = ("function", "exact plan", "peak of live bytes", "plan of the next call")
        rows = tuple(
            (str(plan.message), None, None, None)
            if isinstance(plan, SymbolValueError)
            else (plan.function, bytes_text(plan.arena), bytes_text(plan.peak), _used(plan))
            for plan in self.memory
        )
        note = "exe.memory(shapes) shows the storages"
        return (Table(columns, rows, f"memory of temporary tensors{_at(self.shapes)}", (note,)),)

    def _summary(self) -> Table:
        at = _at(self.shapes)
        columns = ("kernel", "launches", "computes", "scheduled by", "version", f"operations{at}",
                   f"bytes{at}")  # fmt: skip
        rows = tuple(
            (
                k.kernel,
                k.launches,
                _short(_operations(k)),
                _scheduled_by(k, _rule(k.groups)),
                f"if {k.guard}" if k.guard else None,
                self._count(k, k.operations),
                self._count(k, k.bytes),
            )
            for k in self.kernels
        )
        notes = (
            "operations: arithmetic operations on elements, summed over the launches",
            "bytes: of the arguments, a lower bound of the memory traffic",
        )
        if any(k.guard for k in self.kernels):
            notes += (VERSION_NOTE,)
        functions = dict.fromkeys(public_name(f.name) for f in self.functions)
        title = f"kernels of {', '.join(functions)}"
        if not rows:
            return Table(columns, rows, title, ("there are no kernels",))
        return Table(columns, rows, title, notes)

    def _details(self, kernel: KernelFacts) -> Table:
        at = _at(self.shapes)
        versions = [k for k in self.kernels_of(kernel.function) if k.version_of == kernel.kernel]
        rows: list[tuple[Cell, ...]] = [
            ("launches", kernel.launches),
            *_numbered("computes", _wrapped(kernel.computes)),
            ("scheduled by", _scheduled_by(kernel, kernel.groups)),
            *_numbered("steps", textwrap.wrap(_counted(kernel.steps), MAX_WIDTH)),
        ]
        if kernel.version_of:
            rows.append(("version of", f"{kernel.version_of}, runs if {kernel.guard}"))
        rows += [("has version", f"{v.kernel}, runs if {v.guard}") for v in versions]
        rows += [
            (f"operations{at}", self._count(kernel, kernel.operations)),
            (f"bytes of arguments{at}", self._count(kernel, kernel.bytes)),
        ]
        rows += [("relies on", f"{f.text} ({f.origin}; {f.discharge})") for f in kernel.facts]
        rows += [("index from memory", text) for text in kernel.indices]
        rows += [("32-bit indices if", text) for text in kernel.limits]
        rows += [("temporary", text) for text in kernel.temporaries]
        checked = "every access, because of debug=True" if kernel.debug else _index_checks(kernel)
        rows.append(("checks at run time", checked))
        title = f"kernel {kernel.kernel} of {kernel.function}"
        return Table(("property", "value"), tuple(rows), title)

    def kernels_of(self, function: str) -> tuple[KernelFacts, ...]:
        """Return the facts about the kernels of one function."""
        return tuple(k for k in self.kernels if k.function == function)

    def _count(self, kernel: KernelFacts, term: str) -> Cell:
        """Return a count: a number if the sizes are known, else a term."""
        spec = next((f for f in self.functions if public_name(f.name) == kernel.function), None)
        if not term or spec is None:
            return None
        if self.shapes is None:
            return term if self.kernel else _short(term)
        symbols: dict[str, Var] = {name: var(name) for name in spec.symbols}
        given = {name: self.shapes[name] for name in spec.symbols}
        values = {symbols[n]: v for n, v in symbol_values(spec, given).items()}
        parsed = parse_expr(term, symbols)
        return evaluate(parsed, values)

    def to_json(self) -> dict[str, Json]:
        """Return the facts as JSON data."""
        plans = [p.to_json() for p in self.memory if isinstance(p, MemoryPlan)]
        return {"kernels": [to_json(k) for k in self.kernels], "memory": [*plans]}

    def __str__(self) -> str:
        """Return the tables as text."""
        return "\n\n".join(str(table) for table in self.tables())

    def _repr_html_(self) -> str:
        """Return the tables as static HTML."""
        return "".join(table.to_html() for table in self.tables())

    def __repr__(self) -> str:
        """Return one line with the number of kernels."""
        count = len(self.kernels)
        return f"<Explanation of {count} kernel{'' if count == 1 else 's'}>"


def _used(plan: MemoryPlan) -> str:
    kind = {"exact": "exact", "larger": "of larger sizes", "growing": "new, with room for growth"}
    return f"{kind[plan.call.kind]}: {bytes_text(plan.call.total)}"


def explanation(
    artifact: Artifact,
    kernel: str | None,
    shapes: Mapping[str, int] | None,
    loaded: Mapping[str, NativeFunction],
) -> Explanation:
    """Return the facts about all kernels of an artifact, or about one kernel.

    ``loaded`` are the functions whose memory plans are known.

    Raises
    ------
    SymbolValueError
        If ``shapes`` is not a mapping of symbols of the functions to sizes.
    UnboundSymbolError
        If a symbol of a function that launches such a kernel has no value.
    """
    functions: dict[str, FunctionSpec] = {}
    for spec in artifact.functions:
        functions.setdefault(public_name(spec.name), spec)
    memory: tuple[MemoryPlan | SymbolValueError, ...] = ()
    if shapes is not None:
        shown = {k.function for k in artifact.facts if kernel in (None, k.kernel)}
        known = [spec for name, spec in functions.items() if name in shown]
        _check_shapes(known, shapes)
        if kernel is None:
            memory = tuple(_planned(spec, shapes, loaded) for spec in known if spec.storages)
    return Explanation(artifact.facts, tuple(functions.values()), shapes, kernel or "", memory)


def _planned(
    spec: FunctionSpec, shapes: Mapping[str, int], loaded: Mapping[str, NativeFunction]
) -> MemoryPlan | SymbolValueError:
    try:
        return plan_of_call(loaded, spec, {name: shapes[name] for name in spec.symbols})
    except SymbolValueError as error:  # the sizes are too large for a plan, not for counts
        return error


def _check_shapes(functions: Sequence[FunctionSpec], shapes: Mapping[str, int]) -> None:
    symbols = {name for spec in functions for name in spec.symbols}
    for spec in functions:
        given = cast("object", shapes)
        if isinstance(given, Mapping):
            given = {n: v for n, v in shapes.items() if n in spec.symbols or n not in symbols}
        symbol_values(spec, given)


def _checks(spec: FunctionSpec) -> Table | None:
    """Return the checks of a function's arguments as a table; None if there are none."""
    rows = dict.fromkeys(_check(spec, s) for s in spec.sites if s.kind in _ENTRY_CHECKS)
    if not rows:
        return None
    title = f"checks at the entry of {public_name(spec.name)}"
    return Table(("condition", "origin"), tuple(rows), title)


def _check(spec: FunctionSpec, site: CheckSite) -> tuple[Cell, ...]:
    name = spec.params[site.param].name if site.param >= 0 else ""
    match site.kind:
        case "fact":
            return site.text, site.origin
        case "bound":
            return site.text, "range of the symbol"
        case "alias":
            other = spec.params[site.other].name
            return f"{name} and {other} do not share memory", f"access mode of {name}"
        case "stride":
            return f"stride {site.dim} of {name} is {site.text}", f"annotation of {name}"
        case _ if site.dim == -1:
            return f"{name} has {site.text} dimensions", f"annotation of {name}"
        case _ if spec.params[site.param].form == "integer":
            return f"{name} is {site.text}", f"annotation of {name}"
        case _ if site.dim < -1:
            return f"{name}[{-2 - site.dim}] is {site.text}", f"annotation of {name}"
        case _:
            return f"dimension {site.dim} of {name} is {site.text}", f"annotation of {name}"


def _operations(kernel: KernelFacts) -> str:
    """Return the names of the computed operations, without their arguments."""
    names = [text.split(" = ", 1)[-1].split("(", 1)[0] for text in kernel.computes]
    return _counted(names) if names else ""


def _counted(names: Sequence[str]) -> str:
    counts = Counter(names)
    return ", ".join(n if c == 1 else f"{n} ({c})" for n, c in counts.items()) or "none"


def _scheduled_by(kernel: KernelFacts, groups: Sequence[str]) -> str:
    count = len(kernel.steps)
    if not count:
        return "the program" if kernel.scheduled else "no rule: loops of the program"
    default = "the program" if kernel.scheduled else "default schedule"
    return f"{' > '.join(groups) or default}, {count} step{'' if count == 1 else 's'}"


def _rule(groups: Sequence[str]) -> Sequence[str]:
    """Return the composite step that the default schedule chose for the kernel."""
    chosen = [name for name in groups if name not in _SELECTION]
    return chosen[:1] or groups[-1:]


def _numbered(label: str, texts: Sequence[str]) -> list[tuple[Cell, ...]]:
    return [(label if k == 0 else "", text) for k, text in enumerate(texts)]


def _wrapped(texts: Sequence[str]) -> list[str]:
    """Return texts in lines of limited width."""
    return [line for text in texts for line in textwrap.wrap(text, MAX_WIDTH)]


def _index_checks(kernel: KernelFacts) -> str:
    checked = sum(text.endswith(", checked") for text in kernel.indices)
    return f"{checked} index{'' if checked == 1 else 'es'} from memory" if checked else "none"


def _at(shapes: Mapping[str, int] | None) -> str:
    at = ", ".join(f"{name} = {value}" for name, value in (shapes or {}).items())
    return f" at {at}" if at else ""


def _short(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 4]} ..."
