"""Inlining of calls to graph-level functions."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...errors import MalformedProgramError
from ..identity import Names, UidSource
from ..module import Module
from ..symbolic import (
    Discharge,
    Expr,
    SymInt,
    Var,
    as_expr,
    eq,
    free_vars,
    is_proved,
    substitute,
    var,
)
from .call_conditions import bound_conditions
from .live_ranges import tensor_bytes
from .nodes import (
    AllocStorage,
    Binding,
    Branch,
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
    KernelVersion,
    LaunchKernel,
    MakeTuple,
    MatchCast,
    ObjectInfo,
    Operand,
    PrimInfo,
    Rhs,
    ShapeInfo,
    TensorInfo,
    Value,
    VersionCase,
    VersionSwitch,
    ViewTensor,
)
from .visit import map_operands, map_updates, substitute_info

_CALLER_CHECKED = (Discharge.ENTRY_CHECK, Discharge.CALLER)


def info_terms(info: Info) -> tuple[Expr, ...]:
    """Return the symbolic integers of an annotation, in order."""
    match info:
        case TensorInfo(shape=shape, elements=elements):
            return (*(shape or ()), *(elements or ()))
        case ShapeInfo(dims=dims):
            return dims or ()
        case PrimInfo(value=Expr() as value):
            return (value,)
        case _:
            return ()


def substitute_right(right: Rhs, terms: Mapping[Var, SymInt]) -> Rhs:
    """Replace symbols by terms in a right-hand side, except in operands and branches."""
    match right:
        case CallTIR(outputs=outputs):
            made = tuple(_tensor(o, terms) for o in outputs)
            scalars, versions = _scalars(right, terms)
            return replace(right, outputs=made, scalars=scalars, versions=versions)
        case LaunchKernel():
            scalars, versions = _scalars(right, terms)
            return replace(right, scalars=scalars, versions=versions)
        case CallDPSLibrary(outputs=outputs):
            return replace(right, outputs=tuple(_tensor(o, terms) for o in outputs))
        case MatchCast(info=info):
            return replace(right, info=substitute_info(info, terms))
        case Check(predicate=predicate):
            return replace(right, predicate=substitute(predicate, terms))
        case AllocStorage(size=size):
            return replace(right, size=substitute(size, terms))
        case ViewTensor(offset=offset, info=info):
            return replace(right, offset=substitute(offset, terms), info=_tensor(info, terms))
        case _:
            return right


def _scalars(
    call: CallTIR | LaunchKernel, terms: Mapping[Var, SymInt]
) -> tuple[tuple[Expr, ...], tuple[KernelVersion, ...]]:
    def expr(e: Expr) -> Expr:
        return substitute(e, terms)

    versions = tuple(
        KernelVersion(substitute(v.guard, terms), v.function, tuple(map(expr, v.scalars)))
        for v in call.versions
    )
    return tuple(map(expr, call.scalars)), versions


def _tensor(info: TensorInfo, terms: Mapping[Var, SymInt]) -> TensorInfo:
    new = substitute_info(info, terms)
    return new if isinstance(new, TensorInfo) else info


@dataclass
class _Inliner:
    """The state of inlining into one caller; copied bindings get fresh values."""

    module: Module
    caller: GraphFunc
    mint: UidSource
    names: Names
    stack: tuple[str, ...]
    replaced: dict[Value, Operand] = field(default_factory=dict[Value, Operand])

    def fresh(self, value: Value, terms: Mapping[Var, SymInt]) -> Value:
        name = self.names.fresh(value.name)
        return Value(self.mint(), name, substitute_info(value.info, terms))

    def changed(self, operand: Operand) -> Operand:
        while isinstance(operand, Value) and operand in self.replaced:
            operand = self.replaced[operand]
        return operand

    def bindings(self, bindings: Sequence[Binding]) -> Iterator[Binding]:
        for binding in bindings:
            right = map_operands(binding.right, self.changed)
            match right:
                case CallGraph():
                    yield from self.call(binding, right)
                case IfElse(condition=condition, then=then, otherwise=otherwise):
                    sides = (self.branch(then), self.branch(otherwise))
                    yield replace(binding, right=IfElse(condition, *sides))
                case _:
                    yield replace(binding, right=right)

    def branch(self, branch: Branch) -> Branch:
        inner = tuple(self.bindings(branch.bindings))
        return Branch(inner, tuple(map(self.changed, branch.results)))

    def call(self, binding: Binding, call: CallGraph) -> Iterator[Binding]:
        name, args = call.function, call.args
        if name in self.stack:
            raise MalformedProgramError(
                f"graph-level function {name!r} is recursive: {' -> '.join((*self.stack, name))}",
                hint="memory planning inlines all calls of graph-level functions; remove the "
                "recursion",
            )
        callee = self.module.graph(name)
        terms = self.symbols(callee, args)
        yield from self.checks(callee, args, terms, binding)
        for k, (param, arg) in enumerate(zip(callee.params, args, strict=True)):
            given = arg
            if k in call.updates and callee.stage == "memory":
                given = yield from self.copy(param.value, arg, terms, binding)
            self.replaced[param.value] = given
        outer, self.stack = self.stack, (*self.stack, name)
        copied = tuple(self.copies(callee.bindings, terms))
        yield from self.bindings(copied)
        self.stack = outer
        last = {u.param: u.value for u in callee.updates}
        params = [callee.params[k].value for k in call.updates]
        returned = (*callee.results, *(last.get(p, p) for p in params))
        results = tuple(map(self.changed, returned))
        if len(results) == 1 and isinstance(binding.value.info, TensorInfo):
            self.replaced[binding.value] = results[0]
        else:
            yield replace(binding, right=MakeTuple(results))

    def copy(
        self, param: Value, source: Operand, terms: Mapping[Var, SymInt], binding: Binding
    ) -> Generator[Binding, None, Operand]:
        """Yield a copy of an argument that a planned function writes in place."""
        made = self.fresh(param, terms)
        if not isinstance(made.info, TensorInfo):
            return source
        storage = Value(self.mint(), self.names.fresh(f"{made.name}_storage"), ObjectInfo())
        copied = Value(self.mint(), self.names.fresh(f"copy_{made.name}"), ObjectInfo())
        reason = "its function was planned before its caller"
        for value, right in (
            (storage, AllocStorage(tensor_bytes(made.info), made.info.device)),
            (made, ViewTensor(storage, as_expr(0), made.info)),
            (copied, CopyTensor(source, made, reason)),
        ):
            yield Binding(value, right, binding.origins)
        return made

    def copies(self, bindings: Sequence[Binding], terms: Mapping[Var, SymInt]) -> Iterator[Binding]:
        """Copy bindings with fresh values and the caller's symbols."""
        for binding in bindings:
            right = self.copied(binding.right, terms)
            value = self.fresh(binding.value, terms)
            self.replaced[binding.value] = value
            yield replace(binding, value=value, right=right)

    def copied(self, right: Rhs, terms: Mapping[Var, SymInt]) -> Rhs:
        if isinstance(right, VersionSwitch):
            cases = (
                VersionCase(substitute(c.guard, terms), tuple(self.copies(c.bindings, terms)))
                for c in right.cases
            )
            return VersionSwitch(tuple(cases))
        if isinstance(right, IfElse):
            sides = tuple(
                Branch(tuple(self.copies(b.bindings, terms)), self.operands(b.results, terms))
                for b in (right.then, right.otherwise)
            )
            return IfElse(self.operands((right.condition,), terms)[0], sides[0], sides[1])
        moved = map_operands(right, lambda o: self.operands((o,), terms)[0])
        return substitute_right(moved, terms)

    def operands(
        self, operands: Sequence[Operand], terms: Mapping[Var, SymInt]
    ) -> tuple[Operand, ...]:
        return tuple(
            Dims(tuple(substitute(d, terms) for d in o.dims))
            if isinstance(o, Dims)
            else self.changed(o)
            for o in operands
        )

    def symbols(self, callee: GraphFunc, args: Sequence[Operand]) -> dict[Var, SymInt]:
        """Map the symbols of the callee to terms of the arguments, or to fresh symbols."""
        terms: dict[Var, SymInt] = {}
        for param, arg in zip(callee.params, args, strict=True):
            given = info_terms(arg.info) if isinstance(arg, Value | ConstantRef) else ()
            given = arg.dims if isinstance(arg, Dims) else given
            for wanted, term in zip(info_terms(param.value.info), given, strict=False):
                if isinstance(wanted, Var):
                    terms.setdefault(wanted, term)
        for binding in callee.bindings:
            match binding.right:
                case MatchCast(info=info):
                    for e in info_terms(info):
                        for symbol in sorted(free_vars(e) - terms.keys(), key=lambda v: v.serial):
                            terms[symbol] = _copy(symbol)
                case _:
                    pass
        return terms

    def checks(
        self,
        callee: GraphFunc,
        args: Sequence[Operand],
        terms: Mapping[Var, SymInt],
        binding: Binding,
    ) -> Iterator[Binding]:
        """Yield checks of the facts that the callee requires and the caller does not prove."""
        required = [
            (f.predicate, str(f.origin)) for f in callee.facts if f.discharge in _CALLER_CHECKED
        ]
        for param, arg in zip(callee.params, args, strict=True):
            given = info_terms(arg.info) if isinstance(arg, Value | ConstantRef) else ()
            for wanted, term in zip(info_terms(param.value.info), given, strict=False):
                required.append(
                    (eq(substitute(wanted, terms), term), f"parameter {param.value.name!r}")
                )
        symbols = {t for p in callee.params for t in info_terms(p.value.info)}
        values = {s: as_expr(term) for s, term in terms.items() if s in symbols}
        required += [(c.claim, c.text) for c in bound_conditions(values, callee.name)]
        for predicate, origin in required:
            claim = substitute(predicate, terms)
            if not is_proved(claim, self.caller.facts):
                message = f"call of {callee.name!r} requires {claim} ({origin})"
                name = self.names.fresh("check")
                value = Value(self.mint(), name, ObjectInfo())
                yield Binding(value, Check(claim, message), binding.origins)


def _copy(symbol: Var) -> Var:
    return var(symbol.name, lower=symbol.lower, upper=symbol.upper, multiple_of=symbol.multiple_of)


def inline_calls(module: Module, func: GraphFunc, mint: UidSource, names: Names) -> GraphFunc:
    """Replace every call of a graph-level function by its body.

    Facts that a callee requires of its caller and that are not proved become run-time checks.

    Raises
    ------
    MalformedProgramError
        If a function is recursive.
    """
    inliner = _Inliner(module, func, mint, names, (func.name,))
    bindings = tuple(inliner.bindings(func.bindings))
    results = tuple(map(inliner.changed, func.results))
    updates = map_updates(func.updates, inliner.changed)
    return replace(func, bindings=bindings, results=results, updates=updates)
