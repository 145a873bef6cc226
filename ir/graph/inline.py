"""Inlining of calls to graph-level functions."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from ...errors import MalformedProgramError
from ..identity import Names, UidSource
from ..module import Module
from ..symbolic import (
    Discharge,
    Expr,
    Facts,
    SymInt,
    Var,
    as_expr,
    eq,
    is_proved,
    substitute,
)
from .call_conditions import bound_conditions
from .live_ranges import tensor_bytes
from .nodes import (
    AllocStorage,
    Binding,
    CallGraph,
    Check,
    ConstantRef,
    CopyTensor,
    Dims,
    GraphFunc,
    MakeTuple,
    ObjectInfo,
    Operand,
    TensorInfo,
    Value,
    ViewTensor,
)
from .visit import (
    Rewriting,
    info_terms,
    inner_symbols,
    map_updates,
    param_symbols,
    renamed_symbol,
    substitute_info,
    symbols_of,
)

_CALLER_CHECKED = (Discharge.ENTRY_CHECK, Discharge.CALLER)


@dataclass
class _Inliner:
    """The state of inlining into one caller; copied bindings get fresh values."""

    module: Module
    caller: GraphFunc
    mint: UidSource
    names: Names
    stack: tuple[str, ...]
    replaced: dict[Value, Operand] = field(default_factory=dict[Value, Operand])
    depth: int = 0

    def __post_init__(self) -> None:
        self.symbol_names = Names(s.name for s in symbols_of(self.caller))
        self.facts = self.caller.facts

    def fresh(self, value: Value, terms: Mapping[Var, SymInt]) -> Value:
        name = self.names.fresh(value.name)
        return Value(self.mint(), name, substitute_info(value.info, terms))

    def changed(self, operand: Operand) -> Operand:
        while isinstance(operand, Value) and operand in self.replaced:
            operand = self.replaced[operand]
        return operand

    def bindings(self, bindings: Sequence[Binding]) -> Iterator[Binding]:
        inner = Rewriting(operand=self.changed, bindings=self.nested)
        for binding in bindings:
            right = inner.apply(binding.right)
            if isinstance(right, CallGraph):
                yield from self.call(binding, right)
            else:
                yield replace(binding, right=right)

    def nested(self, bindings: Sequence[Binding]) -> tuple[Binding, ...]:
        """Return the bindings of a branch or loop without calls."""
        self.depth += 1
        made = tuple(self.bindings(bindings))
        self.depth -= 1
        return made

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
        self.established(callee, terms)
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

        def term(old: Expr) -> Expr:
            return substitute(old, terms)

        copying = Rewriting(
            operand=lambda o: self.operand(o, terms),
            term=term,
            info=lambda i: substitute_info(i, terms),
            bindings=lambda b: tuple(self.copies(b, terms)),
            value=lambda v: self.renamed(v, terms),
            symbol=lambda s: cast("Var", terms[s]),
        )
        for binding in bindings:
            right = copying.apply(binding.right)
            yield replace(binding, value=self.renamed(binding.value, terms), right=right)

    def renamed(self, value: Value, terms: Mapping[Var, SymInt]) -> Value:
        """Return a fresh value that replaces a value of the callee."""
        made = self.replaced[value] = self.fresh(value, terms)
        return made

    def operand(self, operand: Operand, terms: Mapping[Var, SymInt]) -> Operand:
        """Return an operand of the callee with the caller's values and symbols."""
        if isinstance(operand, Dims):
            return Dims(tuple(substitute(d, terms) for d in operand.dims))
        return self.changed(operand)

    def symbols(self, callee: GraphFunc, args: Sequence[Operand]) -> dict[Var, SymInt]:
        """Map the symbols of the callee to terms of the arguments, or to fresh symbols."""
        terms: dict[Var, SymInt] = {}
        for param, arg in zip(callee.params, args, strict=True):
            given = info_terms(arg.info) if isinstance(arg, Value | ConstantRef) else ()
            given = arg.dims if isinstance(arg, Dims) else given
            for wanted, term in zip(info_terms(param.value.info), given, strict=False):
                if isinstance(wanted, Var):
                    terms.setdefault(wanted, term)
        for symbol in inner_symbols(callee.bindings):
            if symbol not in terms:
                terms[symbol] = renamed_symbol(symbol, self.symbol_names)
        return terms

    def established(self, callee: GraphFunc, terms: Mapping[Var, SymInt]) -> None:
        """Add the facts that bindings of the callee establish.

        A call in a branch or loop need not run, so its facts hold only for the symbols that the
        callee defines.
        """
        own = set(inner_symbols(callee.bindings)) - param_symbols(callee)
        made = (
            fact
            for fact in callee.facts
            if fact.discharge not in _CALLER_CHECKED
            and (not self.depth or fact.predicate.free & own)
        )
        self.facts = self.facts.union(Facts(made).substitute(terms))

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
            if not is_proved(claim, self.facts):
                message = f"call of {callee.name!r} requires {claim} ({origin})"
                name = self.names.fresh("check")
                value = Value(self.mint(), name, ObjectInfo())
                yield Binding(value, Check(claim, message), binding.origins)


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
    return replace(func, bindings=bindings, results=results, updates=updates, facts=inliner.facts)
