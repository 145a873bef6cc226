"""Versions of kernels for some values of their symbols."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from ..ir.loop.decompose import (
    InseparableInitError,
    around,
    bound_variables,
    namer_of,
    without_init,
)
from ..ir.loop.nodes import (
    Block,
    Buffer,
    BufferParam,
    Condition,
    Element,
    For,
    If,
    Let,
    Param,
    PrimFunc,
    ScalarParam,
    Stmt,
    Where,
)
from ..ir.loop.ranges import is_empty, loop_var
from ..ir.loop.visit import Rebuilder, walk
from ..ir.structural_hash import structural_equal
from ..ir.symbolic import (
    FALSE,
    TRUE,
    Bool,
    Expr,
    SymInt,
    Term,
    Var,
    as_expr,
    divides_by_zero,
    free_vars,
    substitute,
    without_zero_divisors,
)

PartT = TypeVar("PartT")


def specialization_problems(func: PrimFunc, terms: Mapping[Var, SymInt]) -> tuple[str, ...]:
    """Return the divisions by 0 in code that may run if some symbols are replaced by terms."""
    version = _Substitution(terms, {})
    version.statement(func.body)
    for buffer in (*func.buffer_params, *func.buffers):
        version.exprs((*buffer.shape, *(buffer.strides or ())))
    return tuple(dict.fromkeys(version.problems))


def with_symbols(func: PrimFunc, name: str, terms: Mapping[Var, SymInt]) -> PrimFunc:
    """Return a copy of a function under another name, with some symbols replaced by terms.

    An integer parameter remains one if its term is a variable.
    """
    func = with_kept_inits(func, terms)
    buffers = _reshaped(func, terms)
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
        body=_Substitution(terms, buffers).statement(func.body),
        buffers=tuple(buffers.get(b, b) for b in func.buffers),
        facts=func.facts.substitute(terms),
    )


def _reshaped(func: PrimFunc, terms: Mapping[Var, SymInt]) -> dict[Buffer, Buffer]:
    return {
        b: replace(
            b,
            shape=tuple(substitute(d, terms) for d in b.shape),
            strides=b.strides and tuple(substitute(d, terms) for d in b.strides),
        )
        for b in (*func.buffer_params, *func.buffers)
        if any(free_vars(d) & terms.keys() for d in (*b.shape, *(b.strides or ())))
    }


def with_kept_inits(func: PrimFunc, terms: Mapping[Var, SymInt]) -> PrimFunc:
    """Return a function that computes the same if some symbols are replaced by terms.

    An init runs for every element, also of an empty reduction; only conditions on which all
    iterations of the reduction agree keep it from running. In a smaller range more conditions have
    this property, and a binding that becomes constant no longer names the loops of a reduction. An
    init that a replacement would change in this way becomes a nest of its own.

    Examples
    --------
    >>> from ..ir.script import parse
    >>> func = parse('''
    ... n, m, k = symbols("n m k", lower=0)
    ... @prim_func
    ... def f(m: Int, x: Buffer[(n, k), f32], y: Out[(n,), f32]):
    ...     for i in range(n):
    ...         for r in range(k):
    ...             with block("y"):
    ...                 vi, vr = spatial(i), reduce(k, r)
    ...                 guard(2 * i + r < 2 * m)
    ...                 with init(): y[vi] = 0.0
    ...                 y[vi] += x[vi, vr]
    ... ''').prim("f")
    >>> k = func.buffer_params[0].shape[1]
    >>> def blocks(size):
    ...     return [
    ...         s.name for s in walk(with_kept_inits(func, {k: size}).body) if isinstance(s, Block)
    ...     ]
    >>> blocks(2), blocks(3)
    (['y_init', 'y'], ['y'])
    """
    if not narrows(terms):
        return func
    for block in [s for s in walk(func.body) if isinstance(s, Block) and s.init is not None]:
        if _is_plain(around(func.body, block), block):
            continue
        separate = replace(func, body=without_init(func.body, block, namer_of(func)))
        if not _commutes(func, separate, block, terms):
            func = separate
    return func


def narrows(terms: Mapping[Var, SymInt]) -> bool:
    """Return whether some terms may have fewer values than the symbols that they replace."""
    pairs = ((symbol, as_expr(term)) for symbol, term in terms.items())
    return any(
        not isinstance(new, Var) or (new.lower, new.upper) != (old.lower, old.upper)
        for old, new in pairs
    )


def body_with(func: PrimFunc, terms: Mapping[Var, SymInt]) -> Stmt:
    """Return the body of a function with some symbols replaced by terms.

    Code that never runs, such as the body of a loop without iterations, has no division by 0.
    """
    return _substituted(with_kept_inits(func, terms), terms).body


def _is_plain(path: tuple[Stmt, ...], block: Block) -> bool:
    """Return whether the iterations of an init surely do not depend on ranges of loops.

    Each iteration variable is a loop, and each condition is one on the results.
    """
    loops = {s.var for s in path if isinstance(s, For)}
    bindings = [v.binding for v in block.iters]
    if any(isinstance(s, Let) for s in path) or not loops.issuperset(bindings):
        return False
    reduction = loops - bound_variables(block.iters)[0]
    conditions = [block.predicate, *(s.condition for s in path if isinstance(s, If))]
    extents = [s.extent for s in path if isinstance(s, For)]
    return len({*bindings}) == len(bindings) and reduction.isdisjoint(
        frozenset[Var]().union(*(x.free for x in (*conditions, *extents)))
    )


def _commutes(
    func: PrimFunc, separate: PrimFunc, block: Block, terms: Mapping[Var, SymInt]
) -> bool:
    """Return whether a replacement and the separation of an init commute."""
    kept = _substituted(func, terms)
    found = next(s for s in walk(kept.body) if isinstance(s, Block) and s.uid == block.uid)
    try:
        later = replace(kept, body=without_init(kept.body, found, namer_of(kept)))
    except InseparableInitError:
        return False
    return structural_equal(later, _substituted(separate, terms))


def _substituted(func: PrimFunc, terms: Mapping[Var, SymInt]) -> PrimFunc:
    return replace(func, body=_Substitution(terms, {}).statement(func.body))


class _Substitution(Rebuilder):
    """A substitution of symbols; loops whose extent changes get a variable with the new range.

    Code of the version that never runs, such as the body of a loop without iterations, may divide
    by 0; such divisions are removed. ``problems`` states those of other code.
    """

    def __init__(self, terms: Mapping[Var, SymInt], buffers: Mapping[Buffer, Buffer]) -> None:
        self._terms = dict(terms)
        self._buffers = buffers
        self._dead = False
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

    def _loop(self, loop: For) -> For:
        renamed = self._ranged(loop.var, loop.extent)
        new = replace(loop, var=renamed, extent=self.expr(loop.extent))
        return replace(new, body=self._in(is_empty(new), self.statement, loop.body))

    def _branch(self, branch: If) -> If:
        condition = self.predicate(branch.condition)
        then = self._in(condition is FALSE, self.statement, branch.then)
        other = branch.otherwise
        if other is not None:
            other = self._in(condition is TRUE, self.statement, other)
        return If(condition, then, other)

    def block(self, block: Block) -> Stmt:
        predicate = self.predicate(block.predicate)
        return self._in(predicate is FALSE, lambda b: self._shell(b, predicate), block)

    def _shell(self, block: Block, predicate: Bool) -> Block:
        iters = tuple(
            self.iter_var(replace(v, var=self._ranged(v.var, v.extent))) for v in block.iters
        )
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


def _at_most_zero(extent: Expr) -> bool:
    return extent.upper is not None and extent.upper <= 0
