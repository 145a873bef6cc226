"""View of the symbols: facts about them, and their sample values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..errors import TilewrightError
from ..ir.analysis import tree_of
from ..ir.analysis.bounds import displayed_accesses, status_counts
from ..ir.graph.call_conditions import argument_infos
from ..ir.graph.nodes import (
    CallTIR,
    GraphFunc,
    LaunchKernel,
    TensorInfo,
    TupleInfo,
    operand_info,
)
from ..ir.graph.visit import all_bindings
from ..ir.loop.nodes import PrimFunc
from ..ir.module import Function, Module
from ..ir.symbolic import TRUE, Discharge, Expr, Facts, Var, const_value, free_vars, to_text
from .protocol import Derived, FactRow, FactStatus, SymbolRow, Symbols
from .render import Samples, at_samples
from .selection import buffer_bytes, bytes_text

DEFAULT_SAMPLE = 16
"""The sample value of a symbol without hints."""

_MAX_DERIVED = 14
_STATUS: Mapping[Discharge, FactStatus] = {
    Discharge.ENTRY_CHECK: "checked",
    Discharge.MATCH_CAST: "checked",
    Discharge.PROOF: "proved",
    Discharge.CALLER: "assumed",
    Discharge.ASSUMED_HINT: "likely",
}


class SampleError(TilewrightError):
    """A sample value that the symbol's range or divisibility rules out."""

    title = "Invalid sample value"


def symbols_of(function: Function) -> tuple[Var, ...]:
    """Return the symbols of a function's parameters in order of appearance."""
    found: dict[Var, None] = {}
    for dim in _dimensions(function):
        found.update(dict.fromkeys(sorted(free_vars(dim), key=lambda v: v.serial)))
    if isinstance(function, PrimFunc):
        found.update(dict.fromkeys(function.scalar_params))
    return tuple(found)


def _dimensions(function: Function) -> Iterator[Expr]:
    if isinstance(function, PrimFunc):
        for buffer in function.buffer_params:
            yield from buffer.shape
        return
    for param in function.params:
        infos = param.value.info
        for info in infos.fields if isinstance(infos, TupleInfo) else (infos,):
            if isinstance(info, TensorInfo):
                yield from info.shape or ()


def samples_of(
    module: Module, function: Function, chosen: Mapping[tuple[str, str], int]
) -> Samples:
    """Return the samples of a function.

    A chosen sample has precedence over the argument of the first caller, which has precedence
    over a likely value and the default.
    """
    from_caller: Samples = {}
    if isinstance(function, PrimFunc):
        from_caller = _from_caller(module, function, chosen)
    likely = dict(function.hints) if isinstance(function, GraphFunc) else {}
    samples: dict[str, int] = {}
    for symbol in symbols_of(function):
        hint = next(iter(likely.get(symbol.name, ())), DEFAULT_SAMPLE)
        default = from_caller.get(symbol.name, hint)
        samples[symbol.name] = chosen.get((function.name, symbol.name), legal(symbol, default))
    return samples


def _from_caller(
    module: Module, function: PrimFunc, chosen: Mapping[tuple[str, str], int]
) -> Samples:
    """Return the values of a kernel's symbols at its first call, at the caller's samples."""
    for graph in module.graphs:
        for binding in all_bindings(graph.bindings):
            right = binding.right
            if isinstance(right, CallTIR | LaunchKernel) and function.name in _callees(right):
                return _bound(function, right, samples_of(module, graph, chosen))
    return {}


def _callees(call: CallTIR | LaunchKernel) -> tuple[str, ...]:
    return (call.function, *(version.function for version in call.versions))


def _bound(function: PrimFunc, call: CallTIR | LaunchKernel, samples: Samples) -> Samples:
    found: dict[str, int] = {}
    infos = (
        argument_infos(function, call)
        if isinstance(call, CallTIR)
        else zip(function.buffer_params, map(operand_info, call.args), strict=False)
    )
    for buffer, info in infos:
        if not isinstance(info, TensorInfo) or info.shape is None:
            continue
        for inner, outer in zip(buffer.shape, info.shape, strict=False):
            value = at_samples(outer, samples)
            if isinstance(inner, Var) and value is not None:
                found.setdefault(inner.name, value)
    for symbol, outer in zip(function.scalar_params, call.scalars, strict=False):
        value = at_samples(outer, samples)
        if value is not None:
            found.setdefault(symbol.name, value)
    return found


def legal(symbol: Var, value: int) -> int:
    """Return the nearest value that the symbol's range and divisibility allow."""
    step = symbol.multiple_of
    low = symbol.lower if symbol.lower is not None else value
    value = max(value, low)
    if symbol.upper is not None:
        value = min(value, symbol.upper)
    rounded = value // step * step
    return rounded if rounded >= low else rounded + step


def checked_sample(function: Function, name: str, value: int) -> int:
    """Return a sample value after checking it.

    Raises
    ------
    SampleError
        If the symbol does not exist, or if its range or divisibility rules out the value.
    """
    symbol = next((s for s in symbols_of(function) if s.name == name), None)
    if symbol is None:
        raise SampleError(f"no symbol {name!r} in function {function.name!r}")
    nearest = legal(symbol, value)
    if nearest != value:
        raise SampleError(
            f"{name} = {value} violates the range or divisibility of symbol {name!r}",
            hint=f"the nearest allowed value is {nearest}",
            details={"symbol": name, "value": value, "nearest": nearest},
        )
    return value


def symbols_view(function: Function, samples: Samples) -> Symbols:
    """Return the symbols, facts and derived expressions of a function."""
    facts = [*_facts(function.facts), *_guards(function), *_accesses(function)]
    derived = list(_derived(function, samples))[:_MAX_DERIVED]
    return Symbols(symbol_rows(function, samples), facts, derived)


def symbol_rows(function: Function, samples: Samples) -> list[SymbolRow]:
    """Return the symbols of a function with their ranges and sample values."""
    likely = dict(function.hints) if isinstance(function, GraphFunc) else {}
    return [
        SymbolRow(
            s.name, s.lower, s.upper, s.multiple_of, samples[s.name], list(likely.get(s.name, ()))
        )
        for s in symbols_of(function)
    ]


def _facts(facts: Facts) -> Iterable[FactRow]:
    for fact in (*facts, *facts.hints):
        yield FactRow(to_text(fact.predicate), _STATUS[fact.discharge], str(fact.origin))


def _guards(function: Function) -> Iterable[FactRow]:
    """Yield the predicates of blocks, which could not be proved."""
    if isinstance(function, PrimFunc):
        for block in tree_of(function).blocks.values():
            if block.predicate != TRUE:
                text = to_text(block.predicate)
                yield FactRow(text, "unknown", f"guard of block {block.name}")


def _accesses(function: Function) -> Iterable[FactRow]:
    """Yield the number of accesses per status, and the accesses that are not proved."""
    if not isinstance(function, PrimFunc):
        return
    found = displayed_accesses(function)
    for label, count in status_counts(found).items():
        noun = "access" if count == 1 else "accesses"
        if label == "proved":
            yield FactRow(f"{count} {noun} in bounds", "proved", "ranges of the indices")
        else:
            yield FactRow(f"{count} {noun} {label}", _access_status(label), "bounds of the indices")
    for access in found:
        if access.status != "proved":
            status = _access_status(access.label)
            yield FactRow(
                f"{access.text} in bounds", status, f"{access.label}: {access.range_text}"
            )


def _access_status(label: str) -> FactStatus:
    return "checked" if label.startswith("checked") else "unknown"


def _derived(function: Function, samples: Samples) -> Iterator[Derived]:
    if not isinstance(function, PrimFunc):
        yield from _tensors(function, samples)
        return
    tree = tree_of(function)
    for loop in tree.loops.values():
        value = at_samples(loop.extent, samples)
        if const_value(loop.extent) is None and value is not None:
            yield Derived(f"loop {loop.var.name}", to_text(loop.extent), str(value))
    for buffer in tree.buffers.values():
        size = buffer_bytes(buffer, samples)
        if size is not None:
            shape = ", ".join(map(to_text, buffer.shape))
            yield Derived(f"buffer {buffer.name}", f"({shape}) {buffer.dtype}", bytes_text(size))


def _tensors(function: GraphFunc, samples: Samples) -> Iterator[Derived]:
    for param in function.params:
        info = param.value.info
        if isinstance(info, TensorInfo) and info.shape is not None:
            values = [at_samples(d, samples) for d in info.shape]
            shape = ", ".join(map(to_text, info.shape))
            shown = "?" if None in values else " × ".join(map(str, values))
            yield Derived(f"parameter {param.value.name}", f"({shape}) {info.dtype}", shown)
