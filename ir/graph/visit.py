"""Traversal and rewriting of graph-level functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, Final, Literal, TypeAlias, TypeVar, assert_never, cast

from ..identity import Names
from ..symbolic import Bool, Expr, SymInt, Var, determined_by, free_vars, substitute, var
from .nodes import (
    Binding,
    Branch,
    CallableInfo,
    Dims,
    GraphFunc,
    Info,
    KernelVersion,
    Loop,
    LoopParam,
    MatchCast,
    ObjectInfo,
    Operand,
    PrimInfo,
    Rhs,
    ShapeInfo,
    TensorInfo,
    TupleInfo,
    Update,
    Value,
    VersionCase,
)

NodeT = TypeVar("NodeT")
RhsT = TypeVar("RhsT", bound=Rhs)

Role: TypeAlias = Literal[
    "operand", "term", "info", "nested", "bindings", "value", "symbol", "plain"
]
"""The kind of the parts in a field of a right-hand side, or of a part of one."""

_ROLES: Final[Mapping[str, Role]] = {
    "Operand": "operand", "Value": "operand", "tuple[Operand, ...]": "operand",
    "DenotedOperand": "operand", "SharedValue": "operand", "SharedOperands": "operand",
    "WrittenValue": "operand", "WrittenOperands": "operand",
    "Expr": "term", "Expr | None": "term", "tuple[Expr, ...]": "term", "Bool": "term",
    "Info": "info", "TensorInfo": "info", "tuple[TensorInfo, ...]": "info",
    "Branch": "nested", "Branch | None": "nested", "tuple[LoopParam, ...]": "nested",
    "tuple[VersionCase, ...]": "nested", "tuple[KernelVersion, ...]": "nested",
    "tuple[Binding, ...]": "bindings", "Var": "symbol",
    "str": "plain", "int": "plain", "tuple[int, ...]": "plain", "Attributes": "plain",
}  # fmt: skip
"""The roles of fields by their types."""

_DENOTED: Final = frozenset({"DenotedOperand"})
_SHARED: Final = _DENOTED | {"SharedValue", "SharedOperands"}
_WRITTEN: Final = frozenset({"WrittenValue", "WrittenOperands"})
_VALUES: Final = frozenset({"Value", "SharedValue", "WrittenValue"})
"""The types of fields that name one value, never a constant."""


@cache
def roles_of(kind: type) -> tuple[tuple[str, Role], ...]:
    """Return the fields of a kind of node with their roles, in order.

    Examples
    --------
    >>> from .nodes import ViewTensor
    >>> roles_of(ViewTensor)
    (('storage', 'operand'), ('offset', 'term'), ('info', 'info'))
    """
    found: list[tuple[str, Role]] = [(f.name, _ROLES[str(f.type)]) for f in fields(kind)]
    if kind is LoopParam:
        found[0] = ("value", "value")
    return tuple(found)


@cache
def _values_only(kind: type) -> frozenset[str]:
    """Return the operands of a kind of node that are never constants."""
    operands = {name for name, role in roles_of(kind) if role == "operand"}
    return frozenset(f.name for f in fields(kind) if f.name in operands and f.type in _VALUES)


@cache
def _fields_of(kind: type, types: frozenset[str]) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind) if f.type in types)


def denoted_operand(right: Rhs) -> Operand | None:
    """Return the operand that the value of a right-hand side denotes, or None.

    Examples
    --------
    >>> from .nodes import Dims, MakeTuple, MatchCast, ObjectInfo
    >>> denoted_operand(MatchCast(Dims(()), ObjectInfo())) == Dims(())
    True
    >>> denoted_operand(MakeTuple((Dims(()),))) is None
    True
    """
    names = _fields_of(type(right), _DENOTED)
    return getattr(right, names[0]) if names else None


def shared_operands(right: Rhs) -> tuple[Operand, ...]:
    """Return the operands whose memory contains the value of a right-hand side."""
    names = _fields_of(type(right), _SHARED)
    return tuple(part for name in names for part in parts_of(getattr(right, name)))


def written_operands(right: Rhs) -> tuple[Operand, ...]:
    """Return the operands that a right-hand side writes, except those of kernels."""
    names = _fields_of(type(right), _WRITTEN)
    return tuple(part for name in names for part in parts_of(getattr(right, name)))


def parts_of(held: object) -> tuple[Any, ...]:
    """Return the parts of a field that contains one part, or a tuple of parts."""
    return cast("tuple[Any, ...]", held) if isinstance(held, tuple) else (held,)


def _parts(node: object, role: Role) -> Iterator[Any]:
    """Yield the parts of a node that have a role, without those of nested nodes."""
    for name, own in roles_of(type(node)):
        if own == role:
            held = getattr(node, name)
            yield from (held,) if role == "bindings" else parts_of(held)


def _nested(node: object) -> Iterator[Any]:
    return (part for part in _parts(node, "nested") if part is not None)


def operands_of(right: Rhs) -> tuple[Operand, ...]:
    """Return the direct operands of a right-hand side, excluding those inside branches."""
    given = (part.given for part in _nested(right) if isinstance(part, LoopParam))
    return (*_parts(right, "operand"), *given)


def inner_bindings(right: Rhs) -> Iterator[tuple[Binding, ...]]:
    """Yield the nested binding lists of a right-hand side: of branches, loops and cases."""
    for part in _nested(right):
        yield from _parts(part, "bindings")


def branches_of(right: Rhs) -> tuple[Branch, ...]:
    """Return the branches of a right-hand side, in order of execution."""
    return tuple(part for part in _nested(right) if isinstance(part, Branch))


def params_of(right: Rhs) -> tuple[Value, ...]:
    """Return the values that a right-hand side defines for its nested bindings."""
    return tuple(part.value for part in _nested(right) if isinstance(part, LoopParam))


def all_bindings(bindings: Iterable[Binding]) -> Iterator[Binding]:
    """Yield bindings in program order, each followed by those nested in it."""
    for binding in bindings:
        yield binding
        for inner in inner_bindings(binding.right):
            yield from all_bindings(inner)


def all_values(function: GraphFunc) -> Iterator[Value]:
    """Yield the parameters and the values of all bindings, including nested ones."""
    yield from (p.value for p in function.params)
    for binding in all_bindings(function.bindings):
        yield binding.value
        yield from params_of(binding.right)


def terms_of(right: Rhs) -> Iterator[Expr | Bool]:
    """Yield the symbolic terms of a right-hand side outside of operands and branches."""
    for name, role in roles_of(type(right)):
        parts = parts_of(getattr(right, name))
        if role == "term":
            yield from (t for t in parts if t is not None)
        elif role == "info":
            yield from (t for info in parts for t in info_terms(info))
    for part in _nested(right):
        if isinstance(part, KernelVersion | VersionCase):
            yield from _parts(part, "term")


def info_terms(info: Info) -> tuple[Expr, ...]:
    """Return the symbolic integers of an annotation, in order."""
    match info:
        case TensorInfo(shape=shape, elements=elements):
            return (*(shape or ()), *(elements or ()))
        case ShapeInfo(dims=dims):
            return dims or ()
        case PrimInfo(value=Expr() as value):
            return (value,)
        case TupleInfo(fields=parts):
            return tuple(t for part in parts for t in info_terms(part))
        case _:
            return ()


def sizes_of(infos: Iterable[Info]) -> Iterator[Expr]:
    """Yield the terms whose values are those of integers and dimensions of arguments."""
    for info in infos:
        match info:
            case TensorInfo(shape=shape):
                yield from shape or ()
            case TupleInfo(fields=fields):
                yield from sizes_of(fields)
            case _:
                yield from info_terms(info)


def param_symbols(function: GraphFunc) -> set[Var]:
    """Return the symbols that the arguments of a function determine."""
    infos = [p.value.info for p in function.params]
    own = {t for info in infos for t in info_terms(info) if isinstance(t, Var)}
    return own | determined_by(sizes_of(infos))


def defining_infos(binding: Binding) -> tuple[Info, ...]:
    """Return the annotations of a binding that may define symbols after it.

    Those of loop parameters define symbols inside the loop, :func:`loop_symbols`.
    """
    match binding.right:
        case MatchCast(info=info):
            return (info,)
        case Loop():
            return (binding.value.info,)
        case _:
            return ()


def loop_symbols(loop: Loop) -> tuple[Var, ...]:
    """Return the index of a loop and the plain symbols of the annotations of its parameters."""
    terms = (t for param in loop.params for t in info_terms(param.value.info))
    return tuple(dict.fromkeys((loop.index, *(t for t in terms if isinstance(t, Var)))))


def inner_symbols(bindings: Iterable[Binding]) -> tuple[Var, ...]:
    """Return the symbols that bindings may define, those of nested bindings included."""
    found: dict[Var, None] = {}
    for binding in all_bindings(bindings):
        own = loop_symbols(binding.right) if isinstance(binding.right, Loop) else ()
        terms = (t for info in defining_infos(binding) for t in info_terms(info))
        used = {v for t in terms for v in free_vars(t)}
        found |= dict.fromkeys((*own, *sorted(used, key=lambda v: v.serial)))
    return tuple(found)


def symbols_of(function: GraphFunc) -> tuple[Var, ...]:
    """Return the symbols that the parameters and the bindings of a function define."""
    terms = (t for p in function.params for t in info_terms(p.value.info))
    own = sorted({v for t in terms for v in free_vars(t)}, key=lambda v: v.serial)
    return tuple(dict.fromkeys((*own, *inner_symbols(function.bindings))))


def renamed_symbol(symbol: Var, names: Names) -> Var:
    """Return a new symbol with the range of another one and a fresh name."""
    return var(
        names.fresh(symbol.name),
        lower=symbol.lower, upper=symbol.upper, multiple_of=symbol.multiple_of,
    )  # fmt: skip


def used_operands(bindings: Iterable[Binding]) -> Iterator[Operand]:
    """Yield the operands of bindings, including those inside branches."""
    for binding in bindings:
        yield from operands_of(binding.right)
        for branch in branches_of(binding.right):
            yield from branch.results
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


def _same(part: Any) -> Any:
    return part


@dataclass(frozen=True, slots=True)
class Rewriting:
    """The changes of the parts of right-hand sides, applied in program order.

    Parameters
    ----------
    operand : callable
        The change of an operand.
    term : callable
        The change of a symbolic term.
    info : callable
        The change of an annotation.
    bindings : callable
        The change of a nested list of bindings.
    value : callable
        The change of a value that a loop defines for its nested bindings.
    symbol : callable
        The change of the index of a loop.
    """

    operand: Callable[[Any], Any] = _same
    term: Callable[[Any], Any] = _same
    info: Callable[[Any], Any] = _same
    bindings: Callable[[tuple[Binding, ...]], tuple[Binding, ...]] = _same
    value: Callable[[Value], Value] = _same
    symbol: Callable[[Var], Var] = _same

    def apply(self, node: NodeT) -> NodeT:
        """Return a right-hand side, or a part of one, with changed parts."""
        changed: dict[str, Any] = {}
        for name, role in roles_of(type(node)):
            if role == "plain":
                continue
            old = getattr(node, name)
            new = self._changed(old, role)
            if name in _values_only(type(node)) and not isinstance(new, Value):
                continue
            if new is not old:
                changed[name] = new
        return cast("NodeT", replace(cast("Any", node), **changed)) if changed else node

    def _changed(self, old: Any, role: Role) -> Any:
        if old is None:
            return None
        if role == "bindings":
            return self.bindings(old)
        change: Callable[[Any], Any] = self.apply if role == "nested" else getattr(self, role)
        parts = parts_of(old)
        if parts is not old:
            return change(old)
        made = tuple(map(change, parts))
        return parts if all(a is b for a, b in zip(made, parts, strict=True)) else made


def map_operands(right: RhsT, change: Callable[[Operand], Operand]) -> RhsT:
    """Apply ``change`` to the operands of a right-hand side, including those inside branches."""

    def nested(bindings: tuple[Binding, ...]) -> tuple[Binding, ...]:
        return map_bindings(bindings, change)

    return Rewriting(operand=change, bindings=nested).apply(right)


def map_inner(right: RhsT, change: Callable[[tuple[Binding, ...]], tuple[Binding, ...]]) -> RhsT:
    """Apply ``change`` to the nested binding lists of a right-hand side."""
    return Rewriting(bindings=change).apply(right)


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


def substitute_bindings(
    bindings: Iterable[Binding], terms: Mapping[Var, SymInt]
) -> tuple[tuple[Binding, ...], dict[Value, Value]]:
    """Replace symbols by terms in bindings; also return the values that replace others.

    Values whose annotations contain none of the symbols are kept.
    """
    replaced: dict[Value, Value] = {}

    def value(old: Value) -> Value:
        info = substitute_info(old.info, terms)
        if info == old.info:
            return old
        return replaced.setdefault(old, replace(old, info=info))

    def operand(old: Operand) -> Operand:
        match old:
            case Value():
                return replaced.get(old, old)
            case Dims(dims=dims):
                return Dims(tuple(substitute(d, terms) for d in dims))
            case _:
                return old

    def nested(own: Iterable[Binding]) -> tuple[Binding, ...]:
        return tuple(replace(b, right=change.apply(b.right), value=value(b.value)) for b in own)

    def term(old: Expr) -> Expr:
        return substitute(old, terms)

    change = Rewriting(
        operand=operand,
        term=term,
        info=lambda i: substitute_info(i, terms),
        bindings=nested,
        value=value,
        symbol=lambda s: cast("Var", terms.get(s, s)),
    )
    return nested(bindings), replaced


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
