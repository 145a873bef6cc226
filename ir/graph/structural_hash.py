"""The canonical tokens of graph-level functions; callees are identified by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from ..canonical import Canon
from ..symbolic import Expr
from .nodes import (
    AllocStorage,
    Binding,
    Branch,
    Call,
    CallableInfo,
    CallDPSLibrary,
    CallGraph,
    CallTIR,
    Check,
    ConstantRef,
    CopyTensor,
    Dims,
    GraphFunc,
    IfElse,
    Info,
    Kill,
    LaunchKernel,
    LaunchLibrary,
    MakeTuple,
    MatchCast,
    ObjectInfo,
    Operand,
    PrimInfo,
    Rhs,
    ScalarLiteral,
    ShapeInfo,
    TensorInfo,
    TupleInfo,
    TupleItem,
    Value,
    VersionSwitch,
    ViewTensor,
)
from .visit import operands_of


def write_graph_func(canon: Canon, func: GraphFunc) -> None:
    """Append the tokens of a function; its name is not included."""
    canon.emit(f"graph_func {func.stage}")
    for param in func.params:
        canon.symbols(_dims(param.value.info))
    # Symbols that occur only inside dimensions are numbered in the order of their first use.
    if any(canon.unknown(_dims(param.value.info)) for param in func.params):
        canon.symbols(_used_dims(func))
    for param in func.params:
        with canon.inside(f"parameter {param.value.name!r}"):
            info = info_key(canon, param.value.info)
            initial = "" if param.initial is None else f" = {_operand(canon, param.initial)}"
            canon.emit(f"{param.access} {_value(canon, param.value)}: {info}{initial}")
    canon.facts(func.facts)
    canon.attributes("attribute", func.attributes)
    _bindings(canon, func.bindings)
    canon.emit(f"hints {_hints(canon, func)}")
    canon.emit(f"return {_operands(canon, func.results)} as {func.result_names}")
    for update in func.updates:
        canon.emit(f"update {_value(canon, update.param)} = {_operand(canon, update.value)}")


def _hints(canon: Canon, func: GraphFunc) -> str:
    """Return the likely values, sorted by the numbers of their symbols."""
    return str(sorted((canon.symbol_named(name), values) for name, values in func.hints))


def _dims(info: Info) -> Iterator[Expr]:
    """Yield the dimensions of an annotation."""
    match info:
        case TensorInfo(shape=shape, elements=elements):
            yield from shape or ()
            yield from elements or ()
        case ShapeInfo(dims=dims):
            yield from dims or ()
        case PrimInfo(value=Expr() as value):
            yield value
        case TupleInfo(fields=fields):
            for field in fields:
                yield from _dims(field)
        case _:
            return


def _used_dims(func: GraphFunc) -> Iterator[Expr]:
    """Yield the dimensions in bindings, in order."""
    for binding in func.bindings:
        for operand in operands_of(binding.right):
            yield from operand.dims if isinstance(operand, Dims) else ()
        yield from _dims(binding.value.info)


def _value(canon: Canon, value: Value) -> str:
    return canon.number("$", value, value.name)


def _maybe(canon: Canon, terms: tuple[Expr, ...] | None) -> str:
    return "?" if terms is None else f"({canon.terms(terms)})"


def info_key(canon: Canon, info: Info) -> str:
    """Return the key of an annotation."""
    match info:
        case ObjectInfo():
            return "object"
        case PrimInfo(dtype=dtype, value=value):
            return f"prim {dtype} {'?' if value is None else canon.term(value)}"
        case ShapeInfo(dims=dims, rank=rank):
            return f"shape {_maybe(canon, dims)} {rank}"
        case TensorInfo(shape=shape, dtype=dtype, device=device, elements=elements, rank=rank):
            return (
                f"tensor {_maybe(canon, shape)} {dtype} {device} {_maybe(canon, elements)} {rank}"
            )
        case TupleInfo(fields=fields):
            return f"tuple<{_infos(canon, fields)}>"
        case CallableInfo(params=params, result=result):
            return f"callable<{_infos(canon, params)} -> {info_key(canon, result)}>"
        case _:
            assert_never(info)


def _infos(canon: Canon, infos: Iterable[Info]) -> str:
    return "; ".join([info_key(canon, i) for i in infos])


def _operand(canon: Canon, operand: Operand) -> str:
    match operand:
        case Value():
            return _value(canon, operand)
        case ConstantRef(key=key, info=info):
            return f"const {key!r} {info_key(canon, info)}"
        case ScalarLiteral(value=value, dtype=dtype):
            return f"{dtype}({value!r})"
        case Dims(dims=dims):
            return f"({canon.terms(dims)})"
        case _:
            assert_never(operand)


def _operands(canon: Canon, operands: Iterable[Operand]) -> str:
    return "; ".join([_operand(canon, o) for o in operands])


def _bindings(canon: Canon, bindings: Iterable[Binding]) -> None:
    for binding in bindings:
        with canon.inside(f"binding {binding.value.name!r}"):
            canon.attributes("attribute", binding.attributes)
            _binding(canon, binding)


def _binding(canon: Canon, binding: Binding) -> None:
    match binding.right:
        case IfElse(condition=condition, then=then, otherwise=otherwise):
            canon.emit(f"if {_operand(canon, condition)}")
            _branch(canon, then)
            _branch(canon, otherwise)
        case VersionSwitch(cases=cases):
            for case in cases:
                canon.emit(f"case {canon.term(case.guard)}")
                _bindings(canon, case.bindings)
            canon.emit("end")
        case MatchCast(value=value, info=info):
            canon.symbols(_dims(info))
            canon.emit(f"match_cast {_operand(canon, value)} to {info_key(canon, info)}")
        case right:
            canon.emit(_right(canon, right))
    info = info_key(canon, binding.value.info)
    canon.emit(f"is {_value(canon, binding.value)}: {info}")


def _branch(canon: Canon, branch: Branch) -> None:
    _bindings(canon, branch.bindings)
    canon.emit(f"give {_operands(canon, branch.results)}")


def _right(canon: Canon, right: Rhs) -> str:
    match right:
        case Call(op=op, args=args, attributes=attributes):
            words = [f"{k}={canon.attribute(v)}" for k, v in sorted(attributes)]
            return f"{op}({_operands(canon, args)}) {' '.join(words)}"
        case CallTIR(outputs=outputs):
            made = f"{_infos(canon, outputs)}{_updated(right)}"
            return f"call_tir {_kernel(canon, right)} -> {made}"
        case CallDPSLibrary(symbol=symbol, args=args, outputs=outputs, attributes=attributes):
            words = [f"{k}={canon.attribute(v)}" for k, v in sorted(attributes)]
            made = f"{_infos(canon, outputs)} {' '.join(words)}"
            return f"library {symbol!r}({_operands(canon, args)}) -> {made}"
        case CallGraph(function=function, args=args):
            return f"call {function}({_operands(canon, args)}){_updated(right)}"
        case MakeTuple(fields=fields):
            return f"tuple({_operands(canon, fields)})"
        case TupleItem(tuple_=whole, index=index):
            return f"{_value(canon, whole)}[{index}]"
        case IfElse() | VersionSwitch() | MatchCast():
            raise TypeError(type(right).__name__)  # handled by `_binding`
        case _:
            return _memory(canon, right)


def _updated(call: CallTIR | CallGraph) -> str:
    """Return the positions of updated arguments."""
    return f" updates {call.updates}" if call.updates else ""


def _memory(
    canon: Canon,
    right: AllocStorage | ViewTensor | LaunchKernel | LaunchLibrary | CopyTensor | Kill | Check,
) -> str:
    match right:
        case AllocStorage(size=size, device=device, alignment=alignment):
            return f"alloc {canon.term(size)} {device} align {alignment}"
        case ViewTensor(storage=storage, offset=offset, info=info):
            return f"view {_value(canon, storage)} {canon.term(offset)} {info_key(canon, info)}"
        case LaunchKernel():
            return f"launch {_kernel(canon, right)}"
        case LaunchLibrary(symbol=symbol, args=args, outputs=outputs, attributes=attributes):
            words = [f"{k}={canon.attribute(v)}" for k, v in sorted(attributes)]
            made = f"{_operands(canon, outputs)} {' '.join(words)}"
            return f"launch library {symbol!r}({_operands(canon, args)}) -> {made}"
        case CopyTensor(source=source, target=target, reason=reason):
            return f"copy {_operand(canon, source)} to {_value(canon, target)} {reason!r}"
        case Kill(value=value):
            return f"kill {_value(canon, value)}"
        case Check(predicate=predicate, message=message):
            return f"check {canon.term(predicate)} {message!r}"
        case _:
            assert_never(right)


def _kernel(canon: Canon, call: CallTIR | LaunchKernel) -> str:
    args, scalars = _operands(canon, call.args), canon.terms(call.scalars)
    versions = [
        f"when {canon.term(v.guard)} {v.function}({canon.terms(v.scalars)})" for v in call.versions
    ]
    return f"{call.function}({args})({scalars}) {'; '.join(versions)}"
