"""Kernels of a graph: deduplicated and generalized loop-level functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from ..ir.analysis.entry_checks import with_entry_checks
from ..ir.graph.call_conditions import argument_infos
from ..ir.graph.nodes import CallTIR, TensorInfo
from ..ir.identity import NO_ORIGIN, Origins, fresh_name
from ..ir.loop.decompose import bound_variables, without_variables
from ..ir.loop.nodes import (
    Block,
    Buffer,
    BufferParam,
    Condition,
    Element,
    For,
    If,
    IterVar,
    Let,
    Param,
    PrimFunc,
    ScalarParam,
    Stmt,
    Store,
    Where,
)
from ..ir.loop.ranges import is_empty, loop_var
from ..ir.loop.visit import Rebuilder, children, walk, with_children
from ..ir.module import Function, Module
from ..ir.structural_hash import structural_hash
from ..ir.symbolic import (
    FALSE,
    TRUE,
    Bool,
    Expr,
    Facts,
    SymInt,
    Term,
    Var,
    all_of,
    bounds,
    conjuncts,
    const_value,
    divides_by_zero,
    free_vars,
    negate,
    substitute,
    total,
    var,
    without_zero_divisors,
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


class _Specialized(Rebuilder):
    """A substitution of symbols; loops whose extent changes get a variable with the new range.

    Code of the version that never runs, such as the body of a loop without iterations, may divide
    by 0; such divisions are removed. ``problems`` states why the other code has
    no version.
    """

    def __init__(self, terms: dict[Var, SymInt], buffers: Mapping[Buffer, Buffer]) -> None:
        self._terms = terms
        self._buffers = buffers
        self._dead = False
        self._starts: set[Var] = set()
        self.problems: list[str] = []

    def expr(self, term: Expr) -> Expr:
        new = substitute(term, self._terms)
        if new is term or not divides_by_zero(new):
            return new
        self._divides(term)
        return without_zero_divisors(new)

    def predicate(self, claim: Bool) -> Bool:
        new = substitute(claim, self._terms)
        if new is claim or not divides_by_zero(new):
            return new
        self._divides(claim)
        return without_zero_divisors(new)

    def _divides(self, term: Term) -> None:
        if not self._dead:
            self.problems.append(f"{term} divides by 0")

    def buffer(self, buffer: Buffer) -> Buffer:
        return self._buffers.get(buffer, buffer)

    def element(self, element: Element) -> Element:
        if isinstance(element, Where) and isinstance(element.condition, Condition):
            chosen = self.predicate(element.condition.value)
            then = self._in(chosen is FALSE, self.element, element.then)
            otherwise = self._in(chosen is TRUE, self.element, element.otherwise)
            return Where(Condition(chosen), then, otherwise)
        return super().element(element)

    def _ranged(self, old: Var, extent: Expr) -> Var:
        if (size := self.expr(extent)) is not extent:
            self._terms[old] = loop_var(old.name, size)
        new = self._terms.get(old, old)
        return new if isinstance(new, Var) else old

    def _in(self, never: bool, rewrite: Callable[[PartT], PartT], part: PartT) -> PartT:  # noqa: FBT001
        """Rewrite a part that never runs on a condition."""
        outer, self._dead = self._dead, self._dead or never
        new = rewrite(part)
        self._dead = outer
        return new

    def statement(self, statement: Stmt) -> Stmt:
        match statement:
            case For():
                return self._loop(statement)
            case If():
                return self._branch(statement)
            case _:
                return super().statement(statement)

    def _loop(self, loop: For) -> Stmt:
        renamed = self._ranged(loop.var, loop.extent)
        new = replace(loop, var=renamed, extent=self.expr(loop.extent))
        new = replace(new, body=self._in(is_empty(new), self.statement, loop.body))
        return If(new.extent >= 1, new) if renamed in self._starts else new

    def _branch(self, branch: If) -> If:
        condition = self._condition(branch.condition, _starting(branch.then))
        other = branch.otherwise
        if condition is TRUE and other is not None:
            self._report_excluded(negate(branch.condition), _starting(other))
        then = self._in(condition is FALSE, self.statement, branch.then)
        if other is not None:
            other = self._in(condition is TRUE, self.statement, other)
        return If(condition, then, other)

    def block(self, block: Block) -> Stmt:
        predicate = self._condition(block.predicate, _starting(block))
        return self._in(predicate is FALSE, lambda b: self._shell(b, predicate), block)

    def _shell(self, block: Block, predicate: Bool) -> Block:
        iters = self._iters(block)
        if block.init is not None:
            self._keep_start(block, iters)
        empty = {v.kind for v in iters if _at_most_zero(v.extent)}
        init = block.init
        if init is not None:
            init = self._in(bool(empty - {"reduce"}), self.statement, init)
        return replace(
            block,
            iters=iters,
            reads=tuple(self._in(bool(empty), self.region, r) for r in block.reads),
            writes=tuple(self._in(bool(empty), self.region, r) for r in block.writes),
            predicate=predicate,
            init=init,
            body=self._in(bool(empty), self.statement, block.body),
        )

    def _iters(self, block: Block) -> tuple[IterVar, ...]:
        """Rewrite the iteration variables; a reduction keeps its loops, which its init precedes."""
        new = [self.iter_var(replace(v, var=self._ranged(v.var, v.extent))) for v in block.iters]
        used = [self._used(v) for v in block.iters]
        lost = frozenset[Var]().union(*used) - frozenset[Var]().union(
            *(v.binding.free for v in new)
        )
        for k, item in enumerate(new):
            missing = sorted(lost & used[k], key=lambda v: v.serial)
            if missing:
                new[k] = replace(item, binding=total((item.binding, *missing)))
                lost -= used[k]
        return tuple(new)

    def _used(self, item: IterVar) -> frozenset[Var]:
        """Return the variables of a binding before it is simplified.

        Those of a reduction include loop variables that are always 0, which can be added to it.
        """
        found = substitute(item.binding, self._terms).free
        if item.kind != "reduce":
            return found
        before = (self._terms.get(v, v) for v in free_vars(item.binding))
        return found.union(v for v in before if isinstance(v, Var) and v.upper == 0)

    def _keep_start(self, block: Block, iters: Sequence[IterVar]) -> None:
        """Note the loops around a block whose spatial variables no longer depend on them.

        The init of a reduction does not run if a loop of the spatial variables is empty, but does
        if a loop of the reduction is. A loop that only remains in the latter gets a condition.
        """
        spatial, reducing = bound_variables(block.iters)
        new_spatial, new_reducing = bound_variables(iters)
        renamed = {v: self._terms.get(v, v) for v in (*spatial, *reducing)}
        self._starts.update(
            v
            for v in map(renamed.__getitem__, spatial - new_spatial)
            if isinstance(v, Var) and v in new_reducing - new_spatial
        )
        for variable in reducing - spatial:
            new = renamed[variable]
            if isinstance(new, Var) and new not in new_spatial | new_reducing and new.upper != 0:
                self.problems.append(
                    f"loop {variable.name!r} no longer iterates the reduction of block "
                    f"{block.name!r}, and its init would run in each iteration; separate the init "
                    "with decompose_reduction first"
                )

    def _condition(self, condition: Bool, starting: Sequence[Block]) -> Bool:
        """Rewrite a condition around blocks with inits, which run if all terms are excluded.

        A constant condition would keep the inits from running, too. Around code that never runs,
        the parts of the condition on the reduction are not needed.
        """
        new = self.predicate(condition)
        if new is not FALSE or condition is FALSE or not starting:
            return new
        if not self._dead:
            self._report_excluded(condition, starting)
            return new
        kept = [p for p in conjuncts(condition) if not all(_iterates(p, b) for b in starting)]
        return all_of(*map(self.predicate, kept))

    def _report_excluded(self, condition: Bool, starting: Sequence[Block]) -> None:
        """Report blocks whose inits would not run, because a condition becomes constant."""
        false = [p for p in conjuncts(condition) if substitute(p, self._terms) is FALSE]
        for block in starting:
            if false and all(_iterates(p, block) for p in false):
                self.problems.append(
                    f"{false[0]} excludes all terms of the reduction of block {block.name!r}, and "
                    "its init would not run; separate the init with decompose_reduction first"
                )


def _starting(statement: Stmt) -> list[Block]:
    """Return the reduction blocks with an init."""
    blocks = (s for s in walk(statement) if isinstance(s, Block) and s.init is not None)
    return [b for b in blocks if any(v.kind == "reduce" for v in b.iters)]


def _iterates(condition: Bool, block: Block) -> bool:
    """Return whether a condition contains a variable that only the reduction of a block uses."""
    used = {True: set[Var](), False: set[Var]()}
    for item in block.iters:
        used[item.kind == "reduce"] |= free_vars(item.binding)
    lost = used[True] - used[False]
    known = without_variables(condition, lost)
    return not (condition if known is None else known).free.isdisjoint(lost)


def _at_most_zero(extent: Expr) -> bool:
    return extent.upper is not None and extent.upper <= 0


def specialization_problems(func: PrimFunc, terms: Mapping[Var, SymInt]) -> tuple[str, ...]:
    """Return the reasons why a function cannot have a version with some symbols replaced by terms.

    The version divides by 0 in code that may run, or a condition that becomes constant would keep
    the init of a reduction from running.
    """
    version = _Specialized(dict(terms), {})
    version.statement(func.body)
    for buffer in (*func.buffer_params, *func.buffers):
        version.exprs((*buffer.shape, *(buffer.strides or ())))
    return tuple(dict.fromkeys(version.problems))


def with_symbols(func: PrimFunc, name: str, terms: Mapping[Var, SymInt]) -> PrimFunc:
    """Return a copy of a function under another name, with some symbols replaced by terms.

    An integer parameter remains one if its term is a variable.
    """
    buffers = {
        b: replace(
            b,
            shape=tuple(substitute(d, terms) for d in b.shape),
            strides=b.strides and tuple(substitute(d, terms) for d in b.strides),
        )
        for b in (*func.buffer_params, *func.buffers)
        if any(free_vars(d) & terms.keys() for d in (*b.shape, *(b.strides or ())))
    }
    params: list[Param] = []
    for param in func.params:
        if isinstance(param, BufferParam):
            params.append(BufferParam(buffers.get(param.buffer, param.buffer), param.access))
        elif isinstance(kept := terms.get(param.var, param.var), Var):
            params.append(ScalarParam(kept))
    return replace(
        func,
        name=name,
        params=tuple(params),
        body=_Specialized(dict(terms), buffers).statement(func.body),
        buffers=tuple(buffers.get(b, b) for b in func.buffers),
        facts=func.facts.substitute(terms),
    )


def call_symbols(func: PrimFunc, call: CallTIR) -> dict[Var, Expr]:
    """Return the terms, in the caller's symbols, that a call determines for a kernel's symbols."""
    terms: dict[Var, Expr] = dict(zip(func.scalar_params, call.scalars, strict=True))
    for buffer, info in argument_infos(func, call):
        if isinstance(info, TensorInfo) and info.shape is not None:
            for dim, size in zip(buffer.shape, info.shape, strict=True):
                if isinstance(dim, Var):
                    terms.setdefault(dim, size)
    return terms
