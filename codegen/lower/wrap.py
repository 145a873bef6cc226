"""A loop-level function that nobody launches, made callable by itself."""

from __future__ import annotations

from ...ir.dtype import i64
from ...ir.graph.lives import tensor_bytes
from ...ir.graph.memory import AllocStorage, Launch, ViewTensor
from ...ir.graph.nodes import (
    Binding,
    GraphFunc,
    GraphParam,
    ObjectInfo,
    PrimInfo,
    TensorInfo,
    Value,
)
from ...ir.identity import UidSource
from ...ir.loop.nodes import Buffer, BufferParam, PrimFunc, ScalarParam
from ...ir.symbolic import Const, Var

INTO = "__into"
"""Ends the name of the function that takes every buffer, those written included."""


def _param(mint: UidSource, param: BufferParam | ScalarParam) -> GraphParam:
    match param:
        case BufferParam(buffer=buffer, access=access):
            return GraphParam(Value(mint(), buffer.name, _info(buffer)), access)
        case ScalarParam(var=symbol):
            return GraphParam(Value(mint(), symbol.name, PrimInfo(i64, symbol)))


def _info(buffer: Buffer) -> TensorInfo:
    return TensorInfo(buffer.shape, buffer.dtype)


def wrap_into(func: PrimFunc) -> GraphFunc:
    """Make the function that takes all parameters in order and writes in place."""
    mint = UidSource()
    params = tuple(_param(mint, p) for p in func.params)
    args = tuple(p.value for p in params if isinstance(p.value.info, TensorInfo))
    launch = Launch(func.name, args, tuple(func.scalar_params))
    run = Binding(Value(mint(), "run", ObjectInfo()), launch, func.origins)
    return GraphFunc(func.name + INTO, params, (run,), (), func.facts, stage="memory")


def wrap_functional(func: PrimFunc) -> GraphFunc | None:
    """Make the function that takes inputs and returns what is written, in parameter order.

    None where the inputs do not determine the shape of an output.
    """
    mint, args = UidSource(), list[Value]()
    params, bindings, results = list[GraphParam](), list[Binding](), list[Value]()
    known: set[Var] = set(func.scalar_params)
    for param in func.params:
        if isinstance(param, BufferParam) and param.access == "out":
            storage = Value(mint(), f"{param.buffer.name}_storage", ObjectInfo())
            info = _info(param.buffer)
            bindings.append(Binding(storage, AllocStorage(tensor_bytes(info))))
            tensor = Value(mint(), param.buffer.name, info)
            bindings.append(Binding(tensor, ViewTensor(storage, Const(0), info)))
            args.append(tensor)
            results.append(tensor)
            continue
        made = _param(mint, param)
        params.append(made)
        if isinstance(param, BufferParam):
            known.update(d for d in param.buffer.shape if isinstance(d, Var))
            args.append(made.value)
            results += [made.value] if param.access != "in" else []
    needed = {s for p in func.buffer_params for d in p.shape for s in d.free}
    if not needed <= known:
        return None
    launch = Launch(func.name, tuple(args), tuple(func.scalar_params))
    bindings.append(Binding(Value(mint(), "run", ObjectInfo()), launch, func.origins))
    return GraphFunc(
        func.name, tuple(params), tuple(bindings), tuple(results), func.facts, stage="memory"
    )
