"""Lowering of a graph function to two host functions: the entry, and its body in a workspace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ....errors import MalformedProgramError
from ....ir.analysis.allocations import temporary_shapes
from ....ir.analysis.widths import wide_terms
from ....ir.graph.call_conditions import symbol_values
from ....ir.graph.live_ranges import tensor_bytes
from ....ir.graph.nodes import (
    Binding,
    GraphFunc,
    LaunchKernel,
    MakeTuple,
    Operand,
    TensorInfo,
    TupleItem,
    Value,
)
from ....ir.graph.update_report import updates_of
from ....ir.graph.visit import all_bindings, denoted_operand
from ....ir.host import nodes as host
from ....ir.identity import fresh_name
from ....ir.loop.nodes import PrimFunc
from ....ir.module import Module
from ....ir.sizes import shape_bytes
from ....ir.symbolic import (
    TRUE,
    Bool,
    Expr,
    Var,
    free_vars,
    maximum,
    substitute,
    to_text,
    var,
)
from ....ir.thread import runtime_table
from ....target.target import Target
from ...entry_names import entry_symbol, public_name
from ...manifest import FunctionSpec, StorageSpec, SymbolSpec, TensorSpec, UpdateSpec
from ...rtlib import layout
from ...rtlib.plan_table import PlanLayout, plan_table
from .bindings import NO_MEMORY, Bindings, kernel_symbols
from .context import (
    CALL,
    INSTANCE,
    KEYS,
    LATE,
    OWN,
    SINK,
    SLOT,
    VIEWS,
    HostContext,
    HostKernel,
    integer,
)
from .devices import check_ends
from .entry import EntryChecks, param_spec, view_of
from .results import Results, has_flag, names_of_results
from .sizes import Sizes, check_static_size
from .storage import ScratchSize, Storage, Storages, assign_storages
from .streams import stream_count

__all__ = ["FlowFunctions", "HostKernel", "lower_to_host"]

_PLAN = host.Local("plan", "ptr")
_ARENA = host.Local("arena", "ptr")
_STORAGES = host.Local("storages", "ptr")


@dataclass(frozen=True, slots=True)
class FlowFunctions:
    """A lowered graph function: its host functions, and their description for the caller."""

    functions: tuple[host.HostFunc, ...]
    spec: FunctionSpec
    storage_sizes: tuple[Expr, ...]


@dataclass
class _MemoryLayout:
    """The entry symbols in the order of the keys, the storages, and the number of threads.

    ``threads`` is the symbol of the number in the runtime table, which is not a key: the number
    does not change between the calls of an instance.
    """

    symbols: tuple[Var, ...]
    storages: Storages
    threads: tuple[Var, ...] = ()

    @property
    def records(self) -> PlanLayout:
        return PlanLayout(len(self.symbols), len(self.storages.arena))

    @property
    def table(self) -> tuple[int, ...]:
        return plan_table(len(self.symbols), [(s.first, s.last) for s in self.storages.arena])

    @staticmethod
    def offset_of(slot: int) -> host.Value:
        return integer(layout.PLAN_OFFSETS + 8 * slot)


def lower_to_host(
    module: Module,
    func: GraphFunc,
    kernels: Mapping[str, HostKernel],
    threads: int,
    target: Target | None = None,
) -> FlowFunctions:
    """Lower a memory-stage graph function to host IR.

    Parameters
    ----------
    module : Module
        The module with the kernels that the function launches.
    func : GraphFunc
        A function in memory stage.
    kernels : Mapping of str to HostKernel
        The symbols and scratch of each kernel.
    threads : int
        The number of workers to reserve scratch for; 0: the number in the runtime table.
    target : Target, optional
        The target of the kernels; default: the host.

    Raises
    ------
    MalformedProgramError
        If the value of a symbol is not determined, or a tensor has no storage.
    """
    if func.stage != "memory":
        raise MalformedProgramError(
            f"function {func.name!r} is in stage {func.stage!r}; lowering requires stage 'memory'",
            hint="apply plan_memory first",
        )
    context = HostContext(module, func, kernels, target or Target())
    check_ends(context)
    checks, symbols = _entry_checks(context)
    workers = threads or var("threads", lower=1)
    scratch = {
        b: size
        for b in all_bindings(func.bindings)
        if isinstance(b.right, LaunchKernel)
        and (size := _scratch(context, b.right, workers)) is not None
    }
    counted = (workers,) if isinstance(workers, Var) and scratch else ()
    storages = assign_storages(func, {*symbols, *counted}, scratch)
    memory = _MemoryLayout(symbols, storages, counted)
    results, body, first = _body(context, memory)
    sites = (first, len(context.sites) - 1)
    entry = _entry(context, memory, checks)
    spec = _spec(context, memory, results, sites)
    sizes = tuple(s.size for s in storages.arena)
    return FlowFunctions((body, entry), spec, sizes)


def _entry_checks(context: HostContext) -> tuple[host.Body, tuple[Var, ...]]:
    with context.nested() as body:
        EntryChecks(context).run()
        symbols = tuple(sorted(context.bound, key=lambda v: v.serial))
        pending = context.pending
    context.pending = pending
    return tuple(body), symbols


def _scratch(context: HostContext, launch: LaunchKernel, threads: Var | int) -> ScratchSize | None:
    """Return the scratch of a launch, of which one version runs."""
    sizes: list[Expr] = []
    temporaries: tuple[tuple[str, Expr], ...] = ()
    dims = [context.dims(a) for a in launch.args]
    versions = [(v.function, v.scalars) for v in launch.versions]
    for name, scalars in [(launch.function, launch.scalars), *versions]:
        kernel = context.kernels[name]
        if kernel.scratch is None:
            continue
        values = kernel_symbols(context.module.prim(name), kernel.symbols, dims, scalars)
        known: dict[Var, Expr | int] = dict(zip(kernel.symbols, values, strict=True))
        if kernel.threads is not None:
            known[kernel.threads] = threads
        sizes.append(substitute(kernel.scratch, known))
        if not temporaries:
            temporaries = tuple((n, substitute(s, known)) for n, s, _ in kernel.temporaries)
    return ScratchSize(maximum(*sizes), temporaries, launch.function) if sizes else None


def _body(context: HostContext, memory: _MemoryLayout) -> tuple[Results, host.HostFunc, int]:
    """Return the results, the body, and the first check after which arguments may be written."""
    func = context.function
    with context.nested() as body:
        _open_body(context, memory)
        sizes = Sizes(context)
        results = Results(context, sizes, _aliases(func.bindings))
        _plan(context, memory, sizes, results)
        offsets = {
            s.slot: context.assign(
                s.name,
                host.Moved(_ARENA, host.Read("i64", _PLAN, memory.offset_of(s.slot))),
                "ptr",
            )
            for s in memory.storages.arena
        }
        first = len(context.sites)
        views = {p.value: k for k, p in enumerate(func.params)}
        bindings = Bindings(context, memory.storages, results, offsets, views)
        bindings.streams.begin()
        bindings.run(func.bindings)
        bindings.streams.finish()
        results.finish()
        context.emit(host.Return(integer(0)))
    params = (INSTANCE, CALL, OWN, SLOT, KEYS, LATE, VIEWS)
    return results, host.HostFunc(f"{func.name}__run", params, tuple(body), "code"), first


def _aliases(bindings: tuple[Binding, ...]) -> dict[Value, Operand]:
    found: dict[Value, Operand] = {}
    tuples: dict[Value, tuple[Operand, ...]] = {}
    for binding in bindings:
        match binding.right:
            case MakeTuple(fields=fields):
                tuples[binding.value] = fields
            case TupleItem(tuple_=whole, index=index) if whole in tuples:
                found[binding.value] = tuples[whole][index]
            case right if (operand := denoted_operand(right)) is not None:
                found[binding.value] = operand
            case _:
                pass
    return found


def _open_body(context: HostContext, memory: _MemoryLayout) -> None:
    for k, symbol in enumerate(memory.symbols):
        context.emit(host.BindSymbol(symbol, host.Read("i64", KEYS, integer(8 * k))))
        context.bound.add(symbol)
    for threads in memory.threads:
        number = host.Read("i64", OWN, integer(runtime_table.THREADS))
        context.emit(host.BindSymbol(threads, number))
        context.bound.add(threads)
    context.emit(host.Assign(SINK, host.Read("ptr", CALL, integer(layout.CALL_SINK))))
    for k, param in enumerate(context.function.params):
        if isinstance(param.value.info, TensorInfo):
            data = host.Read("ptr", view_of(k), integer(layout.VIEW_DATA))
            context.pointers[param.value] = context.assign(param.value.name, data, "ptr")


def _plan(context: HostContext, memory: _MemoryLayout, sizes: Sizes, results: Results) -> None:
    arena = memory.storages.arena
    storages = host.Static(f"{context.function.name}__storages", memory.table)
    context.emit(host.Assign(_STORAGES, storages))
    context.emit(host.Invoke("tw_find_plan", (SLOT, KEYS, _STORAGES), _PLAN))
    held = set[Bool]()
    with context.nested() as miss:
        entry = [s.size for s in arena]
        for operand in context.function.results:
            shape = context.tensor(operand).shape or ()
            held.update(d >= 0 for d in shape if d.free <= context.bound)
            entry += (*shape, tensor_bytes(context.tensor(operand)))
        _check_static_sizes(context, memory)
        entry += _temporaries(context)
        known = [e for e in entry if e.free <= context.bound]
        sizes.check(known)
        sizes.fit(e for e in _indices(context) if e.free <= context.bound)
        _make_plan(context, memory)
    sizes.checked.update(known)
    context.held |= held - {TRUE}
    context.emit(host.When(host.Comparison("eq", _PLAN, host.NullPointer()), tuple(miss)))
    total = context.assign("total", host.Read("i64", _PLAN, integer(layout.PLAN_TOTAL)))
    mode = context.assign("mode", host.Read("i64", CALL, integer(layout.CALL_MODE)))
    results.compare_given(mode)
    context.emit(host.Invoke("tw_arena_of", (CALL, SLOT, total), _ARENA))
    context.emit(host.When(has_flag(mode, layout.QUERY), (host.Return(integer(0)),)))
    context.guard(host.Comparison("ne", _ARENA, host.NullPointer()), NO_MEMORY, total)


def _check_static_sizes(context: HostContext, memory: _MemoryLayout) -> None:
    func, name = context.function, public_name(context.function.name)
    for label, operand in zip(names_of_results(func), func.results, strict=True):
        check_static_size(tensor_bytes(context.tensor(operand)), f"result {label!r}", name)
    for storage in memory.storages.arena:
        tensors = ", ".join(repr(tensor) for tensor, _ in storage.tensors[:3])
        label = f"storage of {tensors}" if tensors else f"storage {storage.name!r}"
        check_static_size(storage.size, label, name)


def _launched(context: HostContext) -> Iterator[tuple[PrimFunc, Mapping[Var, Expr]]]:
    """Yield all kernels, with their symbols in terms of the symbols of the caller."""
    for binding in all_bindings(context.function.bindings):
        launch = binding.right
        if not isinstance(launch, LaunchKernel):
            continue
        dims = [context.dims(a) for a in launch.args]
        versions = [(v.function, v.scalars) for v in launch.versions]
        for name, scalars in [(launch.function, launch.scalars), *versions]:
            func = context.module.prim(name)
            yield func, symbol_values(func, dims, scalars)


def _temporaries(context: HostContext) -> Iterator[Expr]:
    """Yield the sizes in bytes of the temporaries of all kernels."""
    for func, values in _launched(context):
        for buffer, dims in temporary_shapes(func):
            yield shape_bytes([substitute(dim, values) for dim in dims], buffer.dtype)


def _indices(context: HostContext) -> Iterator[Expr]:
    """Yield the terms of kernels that may overflow for some integer arguments."""
    for func, values in _launched(context):
        yield from (substitute(term, values) for term in wide_terms(func))


def _make_plan(context: HostContext, memory: _MemoryLayout) -> None:
    sizes = host.Moved(SLOT, integer(memory.records.sizes))
    block = context.assign("sizes", sizes, "ptr")
    for storage in memory.storages.arena:
        size = context.ready(storage.size, f"storage {storage.name}")
        up = host.Arithmetic("add", size, integer(context.unit - 1))
        rounded = host.Arithmetic("and", up, integer(-context.unit))
        context.emit(host.Write("i64", block, integer(8 * storage.slot), rounded))
    context.emit(host.Invoke("tw_make_plan", (CALL, SLOT, KEYS, _STORAGES), _PLAN))
    needed = host.Read("i64", SLOT, integer(layout.SLOT_NEEDED))
    context.guard(host.Comparison("ne", _PLAN, host.NullPointer()), NO_MEMORY, needed)


def _entry(context: HostContext, memory: _MemoryLayout, checks: host.Body) -> host.HostFunc:
    func, late = context.function, len(memory.storages.late)
    first = 2 * len(func.params)
    with context.nested() as body:
        context.emit(host.Invoke("tw_open_call", (CALL,), OWN))
        context.emit(host.Reserve(VIEWS, max(layout.VIEW_BYTES * len(func.params), 8)))
        context.emit(host.Reserve(KEYS, max(8 * len(memory.symbols), 8)))
        context.emit(host.Reserve(LATE, max(8 * late, 8)))
        context.emit(*checks)
        for k, symbol in enumerate(memory.symbols):
            context.emit(host.Write("i64", KEYS, integer(8 * k), host.Term(symbol)))
        for k in range(late):
            context.emit(host.Write("ptr", LATE, integer(8 * k), host.NullPointer()))
        slot_bytes = integer(memory.records.slot_bytes)
        taken = (CALL, INSTANCE, slot_bytes, integer(memory.records.reserved_bytes))
        context.emit(host.Invoke("tw_take_workspace", taken, SLOT))
        context.guard(host.Comparison("ne", SLOT, host.NullPointer()), NO_MEMORY, slot_bytes)
        code = context.local("code", "code")
        args = (INSTANCE, CALL, OWN, SLOT, KEYS, LATE, VIEWS)
        context.emit(host.Invoke(f"{func.name}__run", args, code))
        streams = stream_count(func.bindings) if context.remote else 1
        if streams > 1:
            context.emit(host.Invoke("tw_join_streams", (CALL, integer(streams))))
        numbers = _numbers(context, memory)
        context.emit(host.Invoke("tw_free_later", (CALL, LATE, numbers, integer(late))))
        context.emit(host.Invoke("tw_return_workspace", (CALL, SLOT)))
        drop = host.Invoke("tw_drop_results", (CALL, integer(first), integer(len(func.results))))
        context.emit(host.When(host.Comparison("ne", code, integer(0)), (drop,)))
        context.emit(host.Return(code))
    return host.HostFunc(
        entry_symbol(func.name), (INSTANCE, CALL), tuple(body), "code", exported=True
    )


def _numbers(context: HostContext, memory: _MemoryLayout) -> host.Value:
    """Return the address of the devices of the storages on the heap."""
    found = [context.number(storage.device) for storage in memory.storages.late]
    words = tuple(n.value for n in found if isinstance(n, host.Integer)) or (0,)
    return host.Static(f"{context.function.name}__devices", words)


def _spec(
    context: HostContext, memory: _MemoryLayout, results: Results, body: tuple[int, int]
) -> FunctionSpec:
    func, names = context.function, dict[Var, str]()
    computed = tuple(s for s in results.symbols() if s not in memory.symbols)
    for symbol in (*memory.symbols, *computed, *memory.threads):
        names[symbol] = fresh_name(symbol.name, names.values())
    return FunctionSpec(
        name=func.name,
        params=tuple(param_spec(func, p, names) for p in func.params),
        results=results.specs(names),
        sites=tuple(context.sites),
        launches=tuple(context.launches),
        constants=tuple(context.constants),
        libraries=tuple(context.libraries),
        symbols=tuple(names[symbol] for symbol in memory.symbols),
        storages=tuple(
            StorageSpec(s.name, to_text(s.size, names), s.first, s.last, _tensors(s, names))
            for s in memory.storages.arena
        ),
        slot=memory.records.slot_bytes,
        plan=memory.records.plan_bytes,
        prepares=str(dict(func.attributes).get("prepare_for", "")),
        kernels=tuple(context.handles),
        device=context.target.kind if context.remote else "cpu",
        devices=tuple(context.devices),
        streams=stream_count(func.bindings),
        updates=tuple(
            UpdateSpec(u.value, u.kernel, u.memory, u.in_place, u.reason)
            for u in updates_of(context.module, func)
        ),
        body=body,
        late=len(memory.storages.late),
        ranges=tuple(
            SymbolSpec(names[s], s.lower, s.upper, s.multiple_of, s in memory.symbols)
            for s in (*memory.symbols, *computed)
        ),
    )


def _tensors(storage: Storage, names: Mapping[Var, str]) -> tuple[TensorSpec, ...]:
    """Return the tensors in a storage whose size is a term over the symbols of the function."""
    return tuple(
        TensorSpec(name, to_text(size, names))
        for name, size in storage.tensors
        if free_vars(size) <= names.keys()
    )
