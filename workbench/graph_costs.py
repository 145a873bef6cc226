"""Costs of the operations of a graph, as terms over its symbols: operations, bytes, live memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from weakref import WeakKeyDictionary

from ..errors import TilewrightError
from ..ir.analysis.cost import flops, footprint, peak_bytes
from ..ir.graph.appends import APPEND
from ..ir.graph.call_conditions import argument_infos, symbol_values
from ..ir.graph.live_ranges import LiveRanges, tensor_bytes
from ..ir.graph.nodes import (
    Binding,
    Call,
    CallDPSLibrary,
    CallGraph,
    CallTIR,
    CopyTensor,
    GraphFunc,
    LaunchKernel,
    LaunchLibrary,
    Rhs,
    TensorInfo,
    Value,
    operand_info,
)
from ..ir.graph.operators import get_operator
from ..ir.graph.plan import plan_memory
from ..ir.graph.visit import all_bindings, inner_bindings, operands_of
from ..ir.loop.nodes import PrimFunc
from ..ir.module import Module
from ..ir.symbolic import Expr, as_expr, maximum, substitute, to_text, total
from ..schedules import State
from ..schedules.apply import apply
from ..schedules.handles import FunctionRef
from ..schedules.primitives.graph.legalize import Legalize
from .protocol_runs import CostKind, OperationCost
from .render import Samples, at_samples

Term: TypeAlias = "Expr | None"
"""A cost; None if it is unknown."""

_ZERO = as_expr(0)
_COMPUTING = (Call, CallTIR, CallDPSLibrary, CallGraph, LaunchKernel, LaunchLibrary, CopyTensor)
_ANALYSES: Mapping[CostKind, Callable[[PrimFunc], Expr]] = {
    "flops": flops,
    "bytes": footprint,
    "memory": peak_bytes,
}
_FOUND: Mapping[CostKind, WeakKeyDictionary[PrimFunc, Term]] = {
    kind: WeakKeyDictionary() for kind in _ANALYSES
}
"""The results of the analyses; a step keeps most functions of a program."""


@dataclass(frozen=True, slots=True)
class LoweredGraph:
    """A graph whose operators are calls of kernels and libraries, and its program."""

    module: Module
    graph: GraphFunc


def lowered_graph(state: State, name: str) -> LoweredGraph:
    """Return a graph in which each operator is lowered on its own, without fusion.

    A graph with operators that cannot be lowered is returned as it is.
    """
    module = state.module
    graph = module.graph(name)
    calls = (b.right for b in all_bindings(graph.bindings) if isinstance(b.right, Call))
    if graph.stage == "dataflow" and any(get_operator(call.op).needs_kernel for call in calls):
        try:
            module = apply(state, Legalize(FunctionRef(name))).state.module
        except TilewrightError:
            return LoweredGraph(state.module, graph)
    return LoweredGraph(module, module.graph(name))


def operation_costs(
    graph: GraphFunc, lowered: LoweredGraph, kind: CostKind, samples: Samples
) -> list[OperationCost]:
    """Return the costs of the operations of a graph, in program order.

    Parameters
    ----------
    graph : GraphFunc
        The displayed graph.
    lowered : LoweredGraph
        The result of :func:`lowered_graph`.
    kind : str
        ``flops``: the executed operations on elements. ``bytes``: the bytes of all arguments, a
        lower bound of the memory traffic. ``memory``: the bytes of the tensors that are allocated
        and live during the operation, and of the temporaries of its kernel.
    samples : Mapping of str to int
        The sample values of the symbols of the graph.

    Notes
    -----
    An operation without a known analysis, such as a call of a library, has no term. One whose term
    depends on other symbols than those of the arguments has no value. An operation that is
    lowered to several calls has the sum of their costs, or the maximum of their memory. Operations
    of a loop are counted once. Operations on weights alone are not a part of a call.
    """
    costs = _live_memory(lowered) if kind == "memory" else _call_costs(lowered, kind)
    join = _largest if kind == "memory" else _sum
    rights = {b.value.uid: b.right for b in all_bindings(graph.bindings)}
    found = _by_source(lowered.graph.bindings, costs, rights, join)
    return [_cost(uid, term, samples) for uid, term in found if _is_counted(rights[uid], kind)]


def _is_counted(right: Rhs, kind: CostKind) -> bool:
    """Return whether an operation has a cost: it computes from values, not from weights alone."""
    computes = isinstance(right, _COMPUTING) and not (kind == "memory" and _is_view(right))
    return computes and any(isinstance(x, Value) for x in operands_of(right))


def _is_view(right: Rhs) -> bool:
    return isinstance(right, Call) and get_operator(right.op).is_view


def _cost(uid: int, term: Term, samples: Samples) -> OperationCost:
    if term is None:
        return OperationCost(uid, "", None)
    return OperationCost(uid, to_text(term), at_samples(term, samples))


def _sum(terms: Sequence[Term]) -> Term:
    known = [term for term in terms if term is not None]
    return total(tuple(known)) if len(known) == len(terms) else None


def _largest(terms: Sequence[Term]) -> Term:
    known = [term for term in terms if term is not None]
    if len(known) < len(terms):
        return None
    sizes = [term for term in known if term is not _ZERO]
    return maximum(*sizes) if sizes else _ZERO


def _by_source(
    bindings: Iterable[Binding],
    costs: Mapping[Binding, Term],
    known: Collection[int],
    join: Callable[[Sequence[Term]], Term],
) -> Iterator[tuple[int, Term]]:
    """Yield the cost of each binding of the displayed graph.

    Bindings that lowering inserted belong to the next one that the displayed graph has.
    """
    inserted: list[Term] = []
    for binding in bindings:
        uid, inner = binding.value.uid, list(inner_bindings(binding.right))
        if uid not in known:
            inserted.append(None if inner else costs.get(binding))  # of unknown iterations
            continue
        for nested in inner:
            yield from _by_source(nested, costs, known, join)
        yield uid, join([*inserted, costs.get(binding)])
        inserted = []


def _call_costs(lowered: LoweredGraph, kind: CostKind) -> dict[Binding, Term]:
    """Return the costs of all bindings."""
    bindings = all_bindings(lowered.graph.bindings)
    return {b: _right_cost(lowered.module, b.right, kind) for b in bindings}


def _right_cost(module: Module, right: Rhs, kind: CostKind) -> Term:
    match right:
        case CallTIR() | LaunchKernel():
            return kernel_term(module, right, kind)
        case CopyTensor(target=target) if isinstance(info := operand_info(target), TensorInfo):
            return tensor_bytes(info) * 2 if kind == "bytes" else _ZERO
        case _:
            return _without_kernel(right)


def _without_kernel(right: Rhs) -> Term:
    """Return the cost of a binding that calls no kernel: 0 unless it computes."""
    return None if isinstance(right, _COMPUTING) and not _is_view(right) else _ZERO


def kernel_term(module: Module, call: CallTIR | LaunchKernel, kind: CostKind) -> Term:
    """Return the cost of the kernel of a call, in the symbols of the caller.

    The term is unknown if the shape of an argument is. If the call has versions, it is the cost of
    the general one.
    """
    function = module.prim(call.function)
    if isinstance(call, CallTIR):
        infos = [info for _, info in argument_infos(function, call)]
    else:
        infos = [operand_info(argument) for argument in call.args]
    shapes = [i.shape for i in infos if isinstance(i, TensorInfo) and i.shape is not None]
    buffers = function.buffer_params
    if [len(shape) for shape in shapes] != [len(buffer.shape) for buffer in buffers]:
        return None
    term = _analyzed(function, kind)
    values = symbol_values(function, shapes, call.scalars)
    return None if term is None else substitute(term, values)


def _analyzed(function: PrimFunc, kind: CostKind) -> Term:
    """Return the cost of a function; None if the analysis rejects it."""
    found = _FOUND[kind]
    if function not in found:
        try:
            found[function] = _ANALYSES[kind](function)
        except TilewrightError:
            found[function] = None
    return found[function]


def _live_memory(lowered: LoweredGraph) -> dict[Binding, Term]:
    """Return the live bytes during each binding; none is known if memory planning fails."""
    bindings = all_bindings(lowered.graph.bindings)
    found = {binding: _without_kernel(binding.right) for binding in bindings}
    try:
        planned = plan_memory(lowered.module, lowered.graph)
    except TilewrightError:
        return found
    calls = [b for b in found if _call_name(b.right)]
    launches = [b for b in all_bindings(planned.bindings) if _call_name(b.right)]
    if [_call_name(b.right) for b in calls] != [_call_name(b.right) for b in launches]:
        return found  # calls of graphs were inlined
    live = LiveRanges(planned)
    sizes = _live_bytes(live)
    for call, launch in zip(calls, launches, strict=True):
        own: Term = _ZERO
        if isinstance(call.right, CallTIR | LaunchKernel):
            own = kernel_term(lowered.module, call.right, "memory")
        found[call] = None if own is None else sizes[live.positions[launch]] + own
    return found


def _call_name(right: Rhs) -> str:
    """Return the name of the called function; empty without one, and for appended copies."""
    match right:
        case CallTIR(function=name) | LaunchKernel(function=name):
            return name
        case CallDPSLibrary(symbol=name) | LaunchLibrary(symbol=name):
            return "" if name == APPEND else f"library {name}"
        case _:
            return ""


def _live_bytes(live: LiveRanges) -> list[Expr]:
    """Return the bytes of all storages that are live at each position."""
    changes = [_ZERO] * (live.end + 2)
    for storage in live.ranges.values():
        changes[storage.first] += storage.size
        changes[storage.last + 1] -= storage.size
    sizes: list[Expr] = []
    for change in changes:
        sizes.append(sizes[-1] + change if sizes else change)
    return sizes
