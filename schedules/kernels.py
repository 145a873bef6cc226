"""Kernels of a graph: deduplicated and generalized loop-level functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from ..ir.analysis.entry_checks import with_entry_checks
from ..ir.graph.call_conditions import argument_infos
from ..ir.graph.nodes import CallTIR, TensorInfo
from ..ir.identity import NO_ORIGIN, Origins, fresh_name
from ..ir.loop.nodes import (
    Block,
    Buffer,
    BufferParam,
    For,
    Let,
    PrimFunc,
    ScalarParam,
    Stmt,
    Store,
)
from ..ir.loop.visit import Rebuilder, children, with_children
from ..ir.module import Function, Module
from ..ir.structural_hash import structural_hash
from ..ir.symbolic import (
    Bool,
    Expr,
    Facts,
    Var,
    bounds,
    const_value,
    free_vars,
    var,
)

PartT = TypeVar("PartT")


@dataclass(frozen=True, slots=True)
class KernelCall:
    """A loop-level function with the integers that a call passes to it."""

    function: PrimFunc
    scalars: tuple[Expr, ...]


class _TermReplacer(Rebuilder):
    """A replacement of compound terms, and of the buffers whose shapes contain them."""

    def __init__(self, terms: Mapping[Expr, Expr], buffers: Mapping[Buffer, Buffer]) -> None:
        self._terms = terms
        self._buffers = buffers

    def expr(self, term: Expr) -> Expr:
        return self._terms.get(term, term)

    def buffer(self, buffer: Buffer) -> Buffer:
        return self._buffers.get(buffer, buffer)


def _compound_dims(func: PrimFunc) -> list[Expr]:
    dims = (d for b in func.buffer_params for d in b.shape)
    return list(dict.fromkeys(d for d in dims if const_value(d) is None and not isinstance(d, Var)))


def symbols_of(func: PrimFunc) -> set[Var]:
    """Return the free symbols of a function's shapes, body and predicates."""
    collector = _collected(func)
    return collector.found - collector.bound


def _collected(func: PrimFunc) -> _Symbols:
    collector = _Symbols()
    collector.statement(func.body)
    for buffer in (*func.buffer_params, *func.buffers):
        collector.exprs(buffer.shape)
    return collector


class _Symbols(Rebuilder):
    """A collector of the variables that occur, and of those bound by loops and blocks."""

    def __init__(self) -> None:
        self.found: set[Var] = set()
        self.bound: set[Var] = set()

    def expr(self, term: Expr) -> Expr:
        self.found |= free_vars(term)
        return term

    def predicate(self, claim: Bool) -> Bool:
        self.found |= free_vars(claim)
        return claim

    def statement(self, statement: Stmt) -> Stmt:
        match statement:
            case For(var=loop):
                self.bound.add(loop)
            case Block(iters=iters):
                self.bound.update(v.var for v in iters)
            case Let(var=value):
                self.bound.add(value)
            case _:
                pass
        return super().statement(statement)


def _symbol_for(dim: Expr, taken: set[str]) -> Var:
    name = "_".join(v.name for v in sorted(free_vars(dim), key=lambda v: v.serial))
    limits = bounds(dim)
    chosen = fresh_name(name, taken)
    taken.add(chosen)
    return var(chosen, lower=limits.lower, upper=limits.upper)


def _reshaped(buffers: Iterable[Buffer], terms: Mapping[Expr, Expr]) -> dict[Buffer, Buffer]:
    return {
        b: replace(b, shape=tuple(terms.get(d, d) for d in b.shape))
        for b in buffers
        if any(d in terms for d in b.shape)
    }


def generalize(kernel: KernelCall) -> KernelCall:
    """Return a kernel in which each compound dimension of the parameters is a new symbol.

    A kernel over ``(b*s, 384)`` becomes one over ``(m, 384)`` if it uses ``b`` and ``s`` nowhere
    else, so that all matrices with 384 columns share one kernel. Unused integer parameters are
    dropped.
    """
    func = kernel.function
    variables = _collected(func)
    taken = {v.name for v in variables.found | variables.bound}
    terms: dict[Expr, Expr] = {d: _symbol_for(d, taken) for d in _compound_dims(func)}
    if terms:
        buffers = _reshaped((*func.buffer_params, *func.buffers), terms)
        body = _TermReplacer(terms, buffers).statement(func.body)
        params = tuple(
            BufferParam(buffers.get(p.buffer, p.buffer), p.access)
            if isinstance(p, BufferParam)
            else p
            for p in func.params
        )
        temporaries = tuple(buffers.get(b, b) for b in func.buffers)
        changed = replace(func, params=params, body=body, buffers=temporaries)
        old = {v for d in terms for v in free_vars(d)}
        func = func if old & symbols_of(changed) else _with_entry_checks(changed)
    return _drop_scalars(KernelCall(func, kernel.scalars))


_COMPLETE: Final[set[str]] = set()
"""The structural hashes of functions without conditions at entry, of at most `_REMEMBERED`."""

_REMEMBERED: Final = 4096


def _with_entry_checks(func: PrimFunc) -> PrimFunc:
    """Add the conditions that a function with new symbols needs at entry; equal ones once."""
    key = structural_hash(func)
    if key in _COMPLETE:
        return func
    checked = with_entry_checks(func)
    if checked is func:
        if len(_COMPLETE) >= _REMEMBERED:
            _COMPLETE.clear()
        _COMPLETE.add(key)
    return checked


def _drop_scalars(kernel: KernelCall) -> KernelCall:
    """Return a kernel without unused integer parameters and facts about removed symbols."""
    func = kernel.function
    used = symbols_of(func)
    shaped = {d for b in func.buffer_params for d in b.shape}
    kept = [v in used and v not in shaped for v in func.scalar_params]
    unused = {v for v, keep in zip(func.scalar_params, kept, strict=True) if not keep}
    params = tuple(p for p in func.params if not (isinstance(p, ScalarParam) and p.var in unused))
    facts = Facts()
    for fact in (*func.facts, *func.facts.hints):
        if free_vars(fact.predicate) <= used:
            facts = facts.assume(fact.predicate, origin=fact.origin, discharge=fact.discharge)
    scalars = tuple(s for s, keep in zip(kernel.scalars, kept, strict=True) if keep)
    return KernelCall(replace(func, params=params, facts=facts), scalars)


def merge_origins(statements: tuple[Stmt, ...]) -> Stmt:
    """Return the first of statements of the same structure, with the united origins of all."""
    one = statements[0]
    inner = tuple(
        merge_origins(parts) for parts in zip(*(children(s) for s in statements), strict=True)
    )
    rebuilt = with_children(one, inner)
    if isinstance(rebuilt, For | Block | Store):
        nodes = (s for s in statements if isinstance(s, For | Block | Store))
        return replace(rebuilt, origins=NO_ORIGIN.union(*(s.origins for s in nodes)))
    return rebuilt


class KernelTable:
    """The functions of a module by structural hash; equal kernels are added once.

    Two layers with equal computations share one kernel, whose nodes have the origins of both.
    """

    def __init__(self, module: Module) -> None:
        """Start with the loop-level functions of a module."""
        self._functions: dict[str, PrimFunc] = {}
        self._equal: dict[str, list[PrimFunc]] = {}
        self._taken = set(module.functions)
        self._module = module
        self._by_hash = {structural_hash(f): f.name for f in module.prims}

    def add(self, func: PrimFunc) -> str:
        """Add a function unless an equal one exists, and return the name to call it by."""
        key = structural_hash(func)
        if key in self._by_hash:
            name = self._by_hash[key]
            self._equal.setdefault(name, []).append(func)
            return name
        name = fresh_name(func.name, self._taken)
        self._taken.add(name)
        self._by_hash[key] = name
        self._functions[name] = replace(func, name=name)
        return name

    def module(self) -> Module:
        """Return the module with the added functions."""
        functions: dict[str, Function] = dict(self._functions)
        for name, others in self._equal.items():
            known = self._functions[name] if name in functions else self._module.prim(name)
            origins = known.origins.union(*(f.origins for f in others))
            if origins != known.origins:
                body = merge_origins((known.body, *(f.body for f in others)))
                functions[name] = replace(known, body=body, origins=origins)
        return self._module.with_functions(*functions.values())


def add_origins(func: PrimFunc, origins: Origins) -> PrimFunc:
    """Return a function with origins added to every loop, block and store."""

    def mark(statement: Stmt) -> Stmt:
        inner = tuple(mark(c) for c in children(statement))
        rebuilt = with_children(statement, inner)
        if isinstance(rebuilt, For | Block | Store):
            return replace(rebuilt, origins=rebuilt.origins | origins)
        return rebuilt

    return replace(func, body=mark(func.body), origins=func.origins | origins)


def call_symbols(func: PrimFunc, call: CallTIR) -> dict[Var, Expr]:
    """Return the terms, in the caller's symbols, that a call determines for a kernel's symbols."""
    terms: dict[Var, Expr] = dict(zip(func.scalar_params, call.scalars, strict=True))
    for buffer, info in argument_infos(func, call):
        if isinstance(info, TensorInfo) and info.shape is not None:
            for dim, size in zip(buffer.shape, info.shape, strict=True):
                if isinstance(dim, Var):
                    terms.setdefault(dim, size)
    return terms
