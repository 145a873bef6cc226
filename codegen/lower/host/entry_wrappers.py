"""Graph functions that make loop-level functions without callers callable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....ir.dtype import i64
from ....ir.graph.nodes import (
    Binding,
    CallTIR,
    GraphFunc,
    GraphParam,
    LaunchKernel,
    ObjectInfo,
    PrimInfo,
    TensorInfo,
    TupleInfo,
    TupleItem,
    Update,
    Value,
    ViewTensor,
)
from ....ir.graph.visit import inner_bindings
from ....ir.identity import Origins, UidSource
from ....ir.loop.nodes import Buffer, BufferParam, PrimFunc, ScalarParam
from ....ir.module import Module
from ....ir.symbolic import Expr, Var
from ...entry_names import CALL, INTO


def launched(func: GraphFunc) -> set[str]:
    """Return the kernels that a graph function calls or launches, including all versions."""
    found: set[str] = set()
    pending = list(func.bindings)
    while pending:
        right = pending.pop().right
        if isinstance(right, LaunchKernel | CallTIR):
            found |= {right.function, *(v.function for v in right.versions)}
        for inner in inner_bindings(right):
            pending.extend(inner)
    return found


def with_entries(module: Module) -> Module:
    """Add entry functions for the kernels that no graph function calls.

    They are in dataflow stage, so steps that create versions of a kernel add them here, too. A
    kernel whose inputs do not determine the shapes of its outputs gets the function that takes all
    buffers.
    """
    wrapped = [wrap_functional(f) or wrap_into(f) for f in _uncalled(module)]
    return module.with_functions(*wrapped) if wrapped else module


def with_in_place(before: Module, after: Module) -> Module:
    """Add entry functions that take all buffers, with the kernel versions of the other entries.

    ``before`` is the module of the user, ``after`` the module after :func:`with_entries` and
    planning. A kernel whose shapes changed has no such function.
    """
    made: list[GraphFunc] = []
    for func in _uncalled(before):
        if func.name + INTO in after.functions:
            continue
        planned = after.functions.get(func.name + CALL)
        if len(after.prim(func.name).params) != len(func.params):
            divided = isinstance(planned, GraphFunc) and _divided_into(func, planned)
            made += [divided] if divided else []
            continue
        if _shapes(after.prim(func.name)) != _shapes(func):
            continue  # graphs that share the kernel changed its shapes
        bindings = planned.bindings if isinstance(planned, GraphFunc) else ()
        launches = [b.right for b in bindings if isinstance(b.right, LaunchKernel)]
        made.append(wrap_into(func, launches[0] if len(launches) == 1 else None))
    return after.with_functions(*made) if made else after


def _divided_into(func: PrimFunc, planned: GraphFunc) -> GraphFunc | None:
    """Return the function that takes all buffers of a kernel that its rule divided into several.

    The results of ``planned`` are its parameters instead. Returns None if it updates a parameter,
    or a result is not the only view of a storage.
    """
    results = [r for r in planned.results if isinstance(r, Value)]
    views = {b.value: b.right for b in planned.bindings if isinstance(b.right, ViewTensor)}
    storages = {views[r].storage for r in results if r in views}
    own = [value for value, view in views.items() if view.storage in storages]
    if planned.updates or {*own} != {*planned.results}:
        return None
    given, made = iter(planned.params), iter(results)
    params = tuple(GraphParam(next(made), "out") if _made(p) else next(given) for p in func.params)
    bindings = tuple(b for b in planned.bindings if b.value not in {*own, *storages})
    return GraphFunc(func.name + INTO, params, bindings, (), func.facts, stage="memory")


def _shapes(func: PrimFunc) -> list[tuple[Expr, ...]]:
    return [buffer.shape for buffer in func.buffer_params]


def _uncalled(module: Module) -> list[PrimFunc]:
    used = {name for f in module.graphs for name in launched(f)}
    return [f for f in module.prims if f.name not in used]


def _param(mint: UidSource, param: BufferParam | ScalarParam) -> GraphParam:
    match param:
        case BufferParam(buffer=buffer, access=access):
            return GraphParam(Value(mint(), buffer.name, _info(buffer)), access)
        case ScalarParam(var=symbol):
            return GraphParam(Value(mint(), symbol.name, PrimInfo(i64, symbol)))


def _info(buffer: Buffer) -> TensorInfo:
    return TensorInfo(buffer.shape, buffer.dtype)


def wrap_into(func: PrimFunc, like: LaunchKernel | None = None) -> GraphFunc:
    """Return a function that takes all parameters in order and writes in place.

    ``like`` is a launch of the same kernel with the same symbols, whose versions are copied.
    """
    mint = UidSource()
    params = tuple(_param(mint, p) for p in func.params)
    args = tuple(p.value for p in params if isinstance(p.value.info, TensorInfo))
    launch = LaunchKernel(func.name, args, tuple(func.scalar_params))
    if like is not None and len(like.args) == len(args):
        launch = replace(like, args=args)
    run = Binding(Value(mint(), "run", ObjectInfo()), launch, func.origins)
    return GraphFunc(func.name + INTO, params, (run,), (), func.facts, stage="memory")


def wrap_functional(func: PrimFunc) -> GraphFunc | None:
    """Return a function that takes the inputs and returns the outputs, in parameter order.

    Parameters that are read and written are updated; an inout parameter is also a result.

    Returns None if the inputs do not determine the shape of an output, or an output has strides.
    """
    given = [p for p in func.params if not _made(p)]
    known: set[Var] = set(func.scalar_params)
    for param in given:
        if isinstance(param, BufferParam):
            terms = (*param.buffer.shape, *(param.buffer.strides or ()))
            known.update(d for d in terms if isinstance(d, Var))
    written = [p.buffer for p in func.params if isinstance(p, BufferParam) and _made(p)]
    if any(buffer.strides is not None for buffer in written):
        return None
    if not {s for p in func.buffer_params for d in p.shape for s in d.free} <= known:
        return None
    mint = UidSource()
    params = {p: _param(mint, p) for p in given}
    outputs = tuple(map(_info, written))
    read = [p for p in given if isinstance(p, BufferParam)]
    args = tuple(params[p].value for p in read)
    positions = tuple(k for k, p in enumerate(read) if p.access != "in")
    call = CallTIR(func.name, args, outputs, tuple(func.scalar_params), updates=positions)
    changed = [read[k].buffer for k in positions]
    names = [b.name for b in written] + [f"{b.name}_new" for b in changed]
    infos = (*outputs, *map(_info, changed))
    bindings, made = _call_results(mint, call, infos, names, func.origins)
    outs, news = iter(made[: len(outputs)]), made[len(outputs) :]
    last = {read[k]: value for k, value in zip(positions, news, strict=True)}
    results = tuple(
        next(outs) if _made(p) else last[p]
        for p in func.params
        if isinstance(p, BufferParam) and p.access in ("out", "inout")
    )
    names_of_results = [p.buffer.name for p in func.params
                        if isinstance(p, BufferParam) and p.access in ("out", "inout")]  # fmt: skip
    return GraphFunc(
        func.name + CALL,
        tuple(params.values()),
        bindings,
        results,
        func.facts,
        result_names=tuple(names_of_results),
        updates=tuple(Update(params[p].value, value) for p, value in last.items()),
    )


def _call_results(
    mint: UidSource,
    call: CallTIR,
    infos: Sequence[TensorInfo],
    names: Sequence[str],
    origins: Origins,
) -> tuple[tuple[Binding, ...], list[Value]]:
    """Return the bindings of a call and of the fields of its value, and these fields."""
    if len(infos) == 1:
        value = Value(mint(), names[0], infos[0])
        return (Binding(value, call, origins),), [value]
    whole = Value(mint(), "run", TupleInfo(tuple(infos)))
    items = [Value(mint(), name, info) for name, info in zip(names, infos, strict=True)]
    fields = (Binding(item, TupleItem(whole, k)) for k, item in enumerate(items))
    return (Binding(whole, call, origins), *fields), items


def _made(param: BufferParam | ScalarParam) -> bool:
    return isinstance(param, BufferParam) and param.access == "out"
