"""Traversal and rewriting of graph-level functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import assert_never

from ..symbolic import SymInt, Var, substitute
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
    CopyTensor,
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
    ShapeInfo,
    TensorInfo,
    TupleInfo,
    TupleItem,
    Update,
    Value,
    VersionSwitch,
    ViewTensor,
)


def operands_of(right: Rhs) -> tuple[Operand, ...]:
    """Return the direct operands of a right-hand side, excluding those inside branches."""
    match right:
        case Call(args=args) | CallTIR(args=args) | CallDPSLibrary(args=args):
            return args
        case CallGraph(args=args) | LaunchKernel(args=args):
            return args
        case MatchCast(value=value) | Kill(value=value):
            return (value,)
        case MakeTuple(fields=fields):
            return fields
        case TupleItem(tuple_=source):
            return (source,)
        case IfElse(condition=condition):
            return (condition,)
        case ViewTensor(storage=storage):
            return (storage,)
        case LaunchLibrary(args=args, outputs=outputs):
            return (*args, *outputs)
        case CopyTensor(source=source, target=target):
            return (source, target)
        case AllocStorage() | Check() | VersionSwitch():
            return ()
        case _:
            assert_never(right)


def inner_bindings(right: Rhs) -> Iterator[tuple[Binding, ...]]:
    """Yield the nested binding lists of a right-hand side: branches and version cases."""
    if isinstance(right, IfElse):
        yield right.then.bindings
        yield right.otherwise.bindings
    if isinstance(right, VersionSwitch):
        yield from (case.bindings for case in right.cases)


def _branch_results(right: Rhs) -> Iterator[Operand]:
    if isinstance(right, IfElse):
        yield from right.then.results
        yield from right.otherwise.results


def used_operands(bindings: Iterable[Binding]) -> Iterator[Operand]:
    """Yield the operands of bindings, including those inside branches."""
    for binding in bindings:
        yield from operands_of(binding.right)
        yield from _branch_results(binding.right)
        for inner in inner_bindings(binding.right):
            yield from used_operands(inner)


def used_values(bindings: Iterable[Binding]) -> Iterator[Value]:
    """Yield the values that bindings use, including uses inside branches."""
    return (o for o in used_operands(bindings) if isinstance(o, Value))


def users(function: GraphFunc) -> dict[Value, list[Binding]]:
    """Map each value to the bindings that use it, in order.

    A use inside a branch belongs to the binding that contains the branch.
    """
    found: dict[Value, list[Binding]] = {}
    for binding in function.bindings:
        for value in dict.fromkeys(used_values((binding,))):
            found.setdefault(value, []).append(binding)
    return found


def all_bindings(bindings: Iterable[Binding]) -> Iterator[Binding]:
    """Yield bindings in order, each followed by those inside of it."""
    for binding in bindings:
        yield binding
        for inner in inner_bindings(binding.right):
            yield from all_bindings(inner)


def map_operands(right: Rhs, change: Callable[[Operand], Operand]) -> Rhs:
    """Apply ``change`` to the operands of a right-hand side, including those inside branches."""

    def value(operand: Value) -> Value:
        new = change(operand)
        return new if isinstance(new, Value) else operand

    match right:
        case Call() | CallTIR() | CallDPSLibrary() | CallGraph() | LaunchKernel():
            return replace(right, args=tuple(map(change, right.args)))
        case MatchCast():
            return replace(right, value=change(right.value))
        case MakeTuple(fields=fields):
            return MakeTuple(tuple(map(change, fields)))
        case TupleItem(tuple_=source):
            return replace(right, tuple_=value(source))
        case IfElse(condition=condition, then=then, otherwise=otherwise):
            return IfElse(change(condition), _branch(then, change), _branch(otherwise, change))
        case ViewTensor(storage=storage):
            return replace(right, storage=value(storage))
        case LaunchLibrary(args=args, outputs=outputs):
            return replace(
                right, args=tuple(map(change, args)), outputs=tuple(map(change, outputs))
            )
        case CopyTensor(source=source, target=target):
            return replace(right, source=change(source), target=value(target))
        case Kill(value=killed):
            return Kill(value(killed))
        case VersionSwitch(cases=cases):
            return VersionSwitch(
                tuple(replace(c, bindings=map_bindings(c.bindings, change)) for c in cases)
            )
        case AllocStorage() | Check():
            return right
        case _:
            assert_never(right)


def _branch(branch: Branch, change: Callable[[Operand], Operand]) -> Branch:
    return Branch(map_bindings(branch.bindings, change), tuple(map(change, branch.results)))


def map_bindings(
    bindings: Iterable[Binding], change: Callable[[Operand], Operand]
) -> tuple[Binding, ...]:
    """Apply ``change`` to the operands of bindings."""
    return tuple(replace(b, right=map_operands(b.right, change)) for b in bindings)


def map_updates(
    updates: Iterable[Update], change: Callable[[Operand], Operand]
) -> tuple[Update, ...]:
    """Apply ``change`` to the last values of parameters."""
    return tuple(replace(u, value=change(u.value)) for u in updates)


def replace_values(function: GraphFunc, new: Mapping[Value, Operand]) -> GraphFunc:
    """Replace values by operands in a function."""

    def change(operand: Operand) -> Operand:
        while isinstance(operand, Value) and operand in new:
            operand = new[operand]
        return operand

    return replace(
        function,
        bindings=map_bindings(function.bindings, change),
        results=tuple(map(change, function.results)),
        updates=map_updates(function.updates, change),
    )


def substitute_info(info: Info, terms: Mapping[Var, SymInt]) -> Info:
    """Replace symbols by terms in an annotation."""
    match info:
        case TensorInfo(shape=shape, elements=elements):
            return replace(
                info,
                shape=None if shape is None else tuple(substitute(d, terms) for d in shape),
                elements=None
                if elements is None
                else tuple(substitute(d, terms) for d in elements),
            )
        case ShapeInfo(dims=dims):
            new = None if dims is None else tuple(substitute(d, terms) for d in dims)
            return replace(info, dims=new)
        case PrimInfo(value=value):
            return replace(info, value=None if value is None else substitute(value, terms))
        case TupleInfo(fields=fields):
            return TupleInfo(tuple(substitute_info(f, terms) for f in fields))
        case CallableInfo(params=params, result=result):
            return CallableInfo(
                tuple(substitute_info(p, terms) for p in params), substitute_info(result, terms)
            )
        case ObjectInfo():
            return info
        case _:
            assert_never(info)
