"""Interpreter of graph-level functions on NumPy arrays, for both stages.

Operators run with their reference implementations, loop-level functions with :mod:`.loops`.
Parameter shapes and ``match_cast`` bind symbols. Every annotation with a known shape is checked
against the computed value, which detects errors of shape inference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

import numpy as np

from ..graph.nodes import (
    AllocStorage,
    Binding,
    Branch,
    Call,
    CallDPSLibrary,
    CallGraph,
    CallTIR,
    Check,
    ConstantRef,
    CopyTensor,
    Dims,
    GraphFunc,
    GrowTensor,
    IfElse,
    Info,
    Kill,
    LaunchKernel,
    LaunchLibrary,
    Loop,
    MakeTuple,
    MatchCast,
    Operand,
    PrimInfo,
    ScalarLiteral,
    ShapeInfo,
    TensorInfo,
    TupleInfo,
    TupleItem,
    Value,
    VersionSwitch,
    ViewTensor,
    operand_info,
)
from ..loop.nodes import BufferParam, PrimFunc
from ..module import Module
from ..sizes import storage_bytes
from ..symbolic import (
    Expr,
    Fact,
    Var,
    const_value,
    evaluate,
    to_text,
    unknown_of,
)
from .frame import Array, Datum, Frame, GraphCheckError, Storage
from .libraries import run_library
from .loops import InterpreterInputError, bound_problem, run_prim
from .operator_calls import call_operator, integers
from .rounding import Rounding, not_exact


def _constant(frame: Frame, ref: ConstantRef) -> Array:
    array = np.asarray(frame.module.constants[ref.key].load())
    if ref.info.shape is not None:  # a reference of the memory stage may have another shape
        array = array.reshape(tuple(evaluate(d, frame.symbols) for d in ref.info.shape))
    return array.astype(frame.storage(ref.info.dtype), copy=False)


def _operand(frame: Frame, operand: Operand) -> Datum:
    match operand:
        case Value():
            return frame.values[operand]
        case ConstantRef():
            return _constant(frame, operand)
        case ScalarLiteral(value=value):
            return value
        case Dims(dims=dims):
            return frame.sizes(dims)
        case _:
            assert_never(operand)


def _array(frame: Frame, operand: Operand) -> Array:
    """Return an operand as a tensor; scalar literals become tensors of rank 0."""
    datum = _operand(frame, operand)
    if isinstance(operand, ScalarLiteral):
        array = np.asarray(datum, frame.storage(operand.dtype))
        if frame.rounding is not None and not_exact(operand.value, operand.dtype):
            return np.asarray(frame.rounding.array(array, operand.dtype))
        return array
    return np.asarray(datum)


def _bind_symbol(frame: Frame, symbol: Var, value: int, where: str) -> None:
    if symbol not in frame.symbols:
        frame.symbols[symbol] = value
        problem = bound_problem(symbol, value)
        if problem:
            raise GraphCheckError(problem, where=where)


def _match_dims(
    frame: Frame, dims: Sequence[Expr], sizes: Sequence[int], where: str, *, bind: bool
) -> None:
    if len(dims) != len(sizes):
        raise GraphCheckError(f"expected rank {len(dims)}, got rank {len(sizes)}", where=where)
    if bind:
        for dim, size in zip(dims, sizes, strict=True):
            if isinstance(dim, Var):
                _bind_symbol(frame, dim, int(size), where)
    for axis, (dim, size) in enumerate(zip(dims, sizes, strict=True)):
        expected = frame.size(dim)
        if expected != size:
            wanted = (
                f"{expected}" if const_value(dim) is not None else f"{to_text(dim)} = {expected}"
            )
            raise GraphCheckError(f"dimension {axis}: expected {wanted}, got {size}", where=where)


def _match_elements(frame: Frame, info: Info, datum: Datum, where: str) -> None:
    """Bind the symbols that are elements of an integer tensor, and check the others."""
    if not isinstance(info, TensorInfo) or info.elements is None:
        return
    given = [int(x) for x in np.asarray(datum).reshape(-1)]
    for symbol, value in zip(info.elements, given, strict=True):
        if isinstance(symbol, Var):
            _bind_symbol(frame, symbol, value, where)
    for k, (wanted, value) in enumerate(zip(info.elements, given, strict=True)):
        expected = frame.size(wanted)
        if expected != value:
            raise GraphCheckError(
                f"element {k}: expected {to_text(wanted)} = {expected}, got {value}", where=where
            )


def _match(frame: Frame, info: Info, datum: Datum, where: str, *, bind: bool = False) -> None:
    """Check a datum against its annotation; ``bind`` permits binding new symbols."""
    match info:
        case TensorInfo(shape=shape, dtype=dtype):
            array = np.asarray(datum)
            if array.dtype != frame.storage(dtype):
                raise GraphCheckError(
                    f"expected dtype {frame.storage(dtype)}, got {array.dtype}", where=where
                )
            if shape is not None:
                _match_dims(frame, shape, array.shape, where, bind=bind)
        case ShapeInfo(dims=dims):
            if dims is not None and isinstance(datum, tuple):
                _match_dims(frame, dims, integers(datum), where, bind=bind)
        case PrimInfo(value=value):
            if value is not None and isinstance(datum, int):
                _match_dims(frame, (value,), (datum,), where, bind=bind)
        case TupleInfo(fields=fields):
            if not isinstance(datum, tuple) or len(datum) != len(fields):
                got = f"{len(datum)} fields" if isinstance(datum, tuple) else "a single value"
                raise GraphCheckError(
                    f"expected a tuple of {len(fields)} fields, got {got}", where=where
                )
            for k, (inner, part) in enumerate(zip(fields, datum, strict=True)):
                _match(frame, inner, part, f"{where}, field {k}", bind=bind)
        case _:
            pass


def _scalar_values(frame: Frame, prim: PrimFunc, scalars: Sequence[Expr]) -> dict[str, int]:
    names = (v.name for v in prim.scalar_params)
    return dict(zip(names, frame.sizes(scalars), strict=True))


def _results(arrays: Sequence[Array]) -> Datum:
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


def _call_tir(frame: Frame, call: CallTIR) -> Datum:
    prim = frame.module.prim(call.function)
    given = iter(_array(frame, a) for a in call.args)
    shapes = map(frame.shape, call.outputs)
    arrays: list[Array] = []
    outputs: list[Array] = []
    updated: list[Array] = []
    for param in (p for p in prim.params if isinstance(p, BufferParam)):
        storage = frame.storage(param.buffer.dtype)
        if param.access == "out":
            arrays.append(np.empty(next(shapes), storage))
            outputs.append(arrays[-1])
        elif param.access == "in":
            arrays.append(np.asarray(next(given), storage))
        else:
            arrays.append(np.array(next(given), storage, copy=True))
            updated.append(arrays[-1])
    _run_kernel(frame, prim, arrays, call.scalars)
    return _results([*outputs, *updated])


def _run_kernel(
    frame: Frame, prim: PrimFunc, arrays: Sequence[Array], scalars: Sequence[Expr]
) -> None:
    """Run a kernel; arguments that do not match its parameters are an error of the call."""
    values = _scalar_values(frame, prim, scalars)
    try:
        run_prim(prim, arrays, values, precise=frame.precise, rounding=frame.rounding)
    except InterpreterInputError as error:
        where = f"function {frame.function.name!r}, call of {error.where}"
        raise GraphCheckError(error.message, where=where) from error


def _call_library(frame: Frame, call: CallDPSLibrary) -> Datum:
    outputs = [np.empty(frame.shape(i), frame.storage(i.dtype)) for i in call.outputs]
    run_library(call.symbol, [_array(frame, a) for a in call.args], outputs, call.attributes)
    return _results(outputs)


def _call_graph(frame: Frame, call: CallGraph) -> Datum:
    inputs = [_operand(frame, a) for a in call.args]
    for k in call.updates:
        inputs[k] = np.array(inputs[k])
    callee = frame.module.graph(call.function)
    results = _run(frame.module, callee, inputs, precise=frame.precise, rounding=frame.rounding)
    results = (*results, *(inputs[k] for k in call.updates))
    return results[0] if len(results) == 1 else results


def _if_else(frame: Frame, branch: IfElse) -> Datum:
    chosen: Branch = branch.then if bool(_array(frame, branch.condition)) else branch.otherwise
    _bindings(frame, chosen.bindings)
    results = tuple(_operand(frame, r) for r in chosen.results)
    return results[0] if len(results) == 1 else results


def _view(frame: Frame, view: ViewTensor) -> Array:
    storage = frame.values[view.storage]
    dtype = frame.storage(view.info.dtype)
    shape = frame.sizes(view.info.shape or ())
    raw = storage if isinstance(storage, bytearray) else np.asarray(storage).reshape(-1).view("u1")
    count = int(np.prod(shape, dtype=np.int64))
    offset = frame.size(view.offset)
    packed = view.info.dtype.is_packed
    size = storage_bytes(count, view.info.dtype) if packed else count * dtype.itemsize
    if offset + size > len(raw):
        raise GraphCheckError(
            f"a view of {size} bytes at offset {offset} exceeds its storage of {len(raw)} bytes",
            where=f"function {frame.function.name!r}, storage {view.storage.name!r}",
        )
    if packed and isinstance(storage, Storage):
        return storage.elements(offset, count, dtype).reshape(shape)
    if packed:
        offset *= view.info.dtype.per_byte
    return np.frombuffer(raw, dtype, count, offset).reshape(shape)


def _launch(frame: Frame, launch: LaunchKernel) -> Datum:
    prim = frame.module.prim(launch.function)
    arrays = [_array(frame, a) for a in launch.args]
    _run_kernel(frame, prim, arrays, launch.scalars)
    return ()


def _copy(frame: Frame, source: Operand, target: Value) -> Datum:
    copied, into = _array(frame, source), _array(frame, target)
    if copied.shape != into.shape:
        raise GraphCheckError(
            f"expected shape {into.shape}, got {copied.shape}",
            where=f"function {frame.function.name!r}, copy to {target.name!r}",
        )
    into[...] = copied.copy()
    return ()


def _grow(frame: Frame, grow: GrowTensor) -> Array:
    """Return a tensor that begins with the elements of a carried value."""
    old = _array(frame, grow.source)
    made = np.zeros(frame.sizes(grow.info.shape or ()), old.dtype)
    made.reshape(-1)[: old.size] = old.reshape(-1)[: made.size]
    return made


def _version_switch(frame: Frame, switch: VersionSwitch) -> Datum:
    for case in switch.cases:
        if evaluate(case.guard, frame.symbols):
            _bindings(frame, case.bindings)
            return ()
    raise GraphCheckError(
        "no case of the version switch has a true guard", where=f"function {frame.function.name!r}"
    )


def _check(frame: Frame, check: Check) -> Datum:
    if not evaluate(check.predicate, frame.symbols):
        raise GraphCheckError(check.message, where=f"function {frame.function.name!r}")
    return ()


def _loop(frame: Frame, loop: Loop, where: str) -> Datum:
    """Run a loop; the symbols of an iteration are bound for this iteration only."""
    outer = dict(frame.symbols)
    count = None if loop.count is None else frame.size(loop.count)
    sources = [_array(frame, p.given) for p in loop.elements]
    for param, source in zip(loop.elements, sources, strict=True):
        if len(source) != count:
            raise GraphCheckError(
                f"the loop has {count} iterations, but the stacked input of {param.value.name!r} "
                f"has {len(source)} slices",
                where=where,
            )
    carried = [_array(frame, p.given) for p in loop.carried]
    stacks: list[list[Array]] = [[] for _ in loop.stacked]
    index = 0
    while count is None or index < count:
        frame.symbols = {**outer, loop.index: index}
        given = [*carried, *(source[index, ...] for source in sources)]
        for param, datum in zip(loop.params, given, strict=True):
            frame.values[param.value] = datum
            own = f"{where}, {param.value.name!r} in iteration {index}"
            _match(frame, param.value.info, datum, own, bind=True)
        if loop.condition is not None:
            _bindings(frame, loop.condition.bindings)
            if not bool(_array(frame, loop.condition.results[0])):
                break
        _bindings(frame, loop.body.bindings)
        carried = [_array(frame, o) for o in loop.next_values]
        for stack, operand in zip(stacks, loop.stacked, strict=True):
            stack.append(np.array(_array(frame, operand)))  # memory is reused by the next iteration
        index += 1
    frame.symbols = outer
    stacked = [_stacked(frame, o, s) for o, s in zip(loop.stacked, stacks, strict=True)]
    return _results([*carried, *stacked])


def _stacked(frame: Frame, slice_: Operand, slices: Sequence[Array]) -> Array:
    """Return a stacked output; without iterations, its shape is that of the annotation."""
    if slices:
        return np.stack(slices)
    info = operand_info(slice_)
    if not isinstance(info, TensorInfo):
        return np.empty((0,))
    return np.empty((0, *frame.shape(info)), frame.storage(info.dtype))


def _right(frame: Frame, binding: Binding) -> Datum:
    match binding.right:
        case Call():
            return call_operator(
                frame, binding.right, [_operand(frame, a) for a in binding.right.args]
            )
        case CallTIR():
            return _call_tir(frame, binding.right)
        case CallDPSLibrary():
            return _call_library(frame, binding.right)
        case CallGraph():
            return _call_graph(frame, binding.right)
        case MatchCast(value=value, info=info):
            datum = _operand(frame, value)
            _match(frame, info, datum, _where(frame, binding), bind=True)
            _match_elements(frame, info, datum, _where(frame, binding))
            return datum
        case MakeTuple(fields=fields):
            return tuple(_operand(frame, f) for f in fields)
        case TupleItem(tuple_=source, index=index):
            fields_ = frame.values[source]
            return fields_[index] if isinstance(fields_, tuple) else np.asarray(fields_)
        case IfElse():
            return _if_else(frame, binding.right)
        case Loop():
            return _loop(frame, binding.right, _where(frame, binding))
        case AllocStorage(size=size):
            return Storage(b"\x7f" * frame.size(size))
        case ViewTensor():
            return _view(frame, binding.right)
        case LaunchKernel():
            return _launch(frame, binding.right)
        case LaunchLibrary(symbol=symbol, args=args, outputs=outputs, attributes=attributes):
            arrays = [_array(frame, o) for o in outputs]
            given = [_array(frame, a) for a in args]
            run_library(symbol, given, arrays, attributes, launched=True)
            return ()
        case CopyTensor(source=source, target=target):
            return _copy(frame, source, target)
        case GrowTensor():
            return _grow(frame, binding.right)
        case Kill(value=value):
            frame.values.pop(value, None)
            return ()
        case Check():
            return _check(frame, binding.right)
        case VersionSwitch():
            return _version_switch(frame, binding.right)
        case _:
            assert_never(binding.right)


def _where(frame: Frame, binding: Binding) -> str:
    return f"function {frame.function.name!r}, value {binding.value.name!r}"


def _bindings(frame: Frame, bindings: Sequence[Binding]) -> None:
    for binding in bindings:
        datum = _right(frame, binding)
        frame.values[binding.value] = datum
        _match(frame, binding.value.info, datum, _where(frame, binding), bind=True)


def _sizes(info: Info, datum: Datum) -> Iterator[tuple[Expr, int]]:
    """Yield the terms of the dimensions and integers of an argument with their values."""
    match info:
        case TensorInfo(shape=dims) if dims and isinstance(datum, np.ndarray):
            yield from zip(dims, datum.shape, strict=False)
        case ShapeInfo(dims=dims) if dims and isinstance(datum, tuple):
            yield from zip(dims, integers(datum), strict=False)
        case PrimInfo(value=term) if term is not None and isinstance(datum, int):
            yield term, datum
        case TupleInfo(fields=fields) if isinstance(datum, tuple):
            for field, part in zip(fields, datum, strict=False):
                yield from _sizes(field, part)
        case _:
            pass


def _bind_sizes(frame: Frame, sizes: Sequence[tuple[Expr, int, str]]) -> None:
    """Bind the symbols that are by themselves sizes, then those that sizes determine."""
    for dim, size, where in sizes:
        if isinstance(dim, Var):
            _bind_symbol(frame, dim, size, where)
    waiting = True
    while waiting:
        waiting = False
        for dim, size, where in sizes:
            found = unknown_of(dim, frame.symbols)
            if found is not None:
                symbol, factor, rest = found
                _bind_symbol(frame, symbol, (size - frame.size(rest)) // factor, where)
                waiting = True


def _bound(frame: Frame, fact: Fact) -> str:
    """Return the values of the symbols of a fact as text."""
    symbols = sorted(fact.predicate.free, key=lambda v: v.serial)
    return ", ".join(f"{v.name} = {frame.symbols[v]}" for v in symbols)


def _run(
    module: Module,
    function: GraphFunc,
    inputs: Sequence[Datum],
    *,
    precise: bool,
    rounding: Rounding | None,
) -> tuple[Datum, ...]:
    frame = Frame(module, function, precise, rounding)
    if len(inputs) != len(function.params):
        names = ", ".join(p.value.name for p in function.params)
        raise GraphCheckError(
            f"number of arguments: expected {len(function.params)} ({names}), got {len(inputs)}",
            where=f"function {function.name!r}",
        )
    given = [
        np.asarray(x).astype(frame.storage(info.dtype), copy=False)
        if precise and isinstance(info := p.value.info, TensorInfo) and info.dtype.is_inexact
        else x
        for p, x in zip(function.params, inputs, strict=True)
    ]
    sizes = [
        (dim, size, f"function {function.name!r}, parameter {param.value.name!r}")
        for param, datum in zip(function.params, given, strict=True)
        for dim, size in _sizes(param.value.info, datum)
    ]
    _bind_sizes(frame, sizes)
    for param, datum in zip(function.params, given, strict=True):
        where = f"function {function.name!r}, parameter {param.value.name!r}"
        _match_elements(frame, param.value.info, datum, where)
    for param, datum in zip(function.params, given, strict=True):
        frame.values[param.value] = datum
        where = f"function {function.name!r}, parameter {param.value.name!r}"
        _match(frame, param.value.info, datum, where, bind=True)
    for fact in function.facts:
        known = all(v in frame.symbols for v in fact.predicate.free)
        if known and not evaluate(fact.predicate, frame.symbols):
            raise GraphCheckError(
                f"fact {to_text(fact.predicate)} does not hold for {_bound(frame, fact)}",
                where=f"function {function.name!r}",
                hint=str(fact.origin),
            )
    _bindings(frame, function.bindings)
    results = tuple(_operand(frame, r) for r in function.results)
    return _updated(frame, inputs, results) if function.updates else results


def _updated(
    frame: Frame, inputs: Sequence[Datum], results: tuple[Datum, ...]
) -> tuple[Datum, ...]:
    """Write the last values of parameters to the arguments; return results that are unaffected."""
    arguments = dict(zip((p.value for p in frame.function.params), inputs, strict=True))
    kept = tuple(r.copy() if isinstance(r, np.ndarray) else r for r in results)
    last = [(u.param, np.array(_array(frame, u.value))) for u in frame.function.updates]
    for param, value in last:
        target, where = arguments[param], _parameter(frame, param)
        if not isinstance(target, np.ndarray) or not target.flags.writeable:
            raise GraphCheckError(
                "expected a writable array, because the function updates it", where=where
            )
        if target.shape != value.shape:
            raise GraphCheckError(
                f"expected a last value of shape {target.shape}, got {value.shape}", where=where
            )
    for param, value in last:
        np.copyto(np.asarray(arguments[param]), value, casting="same_kind")
    return kept


def _parameter(frame: Frame, param: Value) -> str:
    return f"function {frame.function.name!r}, parameter {param.name!r}"


def run_graph(
    module: Module,
    inputs: Sequence[Datum],
    *,
    function: str = "main",
    precise: bool = False,
    rounding: Rounding | None = None,
) -> tuple[Datum, ...]:
    """Run a graph-level function on NumPy arrays.

    Parameters
    ----------
    module : Module
        The program.
    inputs : sequence of arrays
        One array per parameter, in order.
    function : str
        The name of the function.
    precise : bool
        Compute all floats in float64, including constants. Only for the dataflow stage: storage
        of the memory stage has the size of the program's own dtypes.
    rounding : Rounding, optional
        Round every operation on floats randomly, to estimate the effect of rounding.

    Returns
    -------
    tuple
        One array per result.

    Raises
    ------
    GraphCheckError
        If the inputs or a computed value violate an annotation, a fact, or a run-time check.
    """
    return _run(module, module.graph(function), inputs, precise=precise, rounding=rounding)
