"""Traversal and rewriting of loop-level programs.

All functions share unchanged parts: a statement without changes is returned as the same object.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Literal, TypeVar, assert_never

from ..copies import replace
from ..dtype import DType
from ..symbolic import Bool, Expr, SymInt, Var, substitute
from .nodes import (
    Alloc,
    Binary,
    Bind,
    Block,
    Buffer,
    Cast,
    Compare,
    Condition,
    Element,
    For,
    If,
    Index,
    IterVar,
    Let,
    Load,
    Local,
    Number,
    PrimFunc,
    Range,
    Region,
    Reinterpret,
    Seq,
    Stmt,
    Store,
    Ternary,
    Unary,
    Where,
)

_T = TypeVar("_T")


def same(old: tuple[_T, ...], new: tuple[_T, ...]) -> bool:
    """Return whether two tuples hold the same objects."""
    return len(old) == len(new) and all(map(operator.is_, old, new))


def seq(*statements: Stmt) -> Stmt:
    """Return a sequence of statements, flattened; a single statement is returned unchanged.

    The statements after an allocation or a bind become part of its body.
    """
    flat: list[Stmt] = []
    for statement in statements:
        if isinstance(statement, Seq):
            flat.extend(statement.body)
        else:
            flat.append(statement)
    for position, statement in enumerate(flat[:-1]):
        if isinstance(statement, Alloc | Bind):
            inner = seq(statement.body, *flat[position + 1 :])
            flat[position:] = [replace(statement, body=inner)]
            break
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))


def children(statement: Stmt) -> tuple[Stmt, ...]:
    """Return the direct children of a statement."""
    if isinstance(statement, For):  # tests of single classes are faster than patterns
        return (statement.body,)
    if isinstance(statement, Store):
        return ()
    if isinstance(statement, Block):
        init = statement.init
        return (statement.body,) if init is None else (init, statement.body)
    if isinstance(statement, Seq):
        return statement.body
    if isinstance(statement, If):
        other = statement.otherwise
        return (statement.then,) if other is None else (statement.then, other)
    return (statement.body,)


def walk(statement: Stmt) -> Iterator[Stmt]:
    """Yield a statement and its descendants in program order, outer before inner."""
    stack = [statement]
    while stack:
        top = stack.pop()
        yield top
        if isinstance(top, For):  # most statements are loops and stores
            stack.append(top.body)
        elif not isinstance(top, Store):
            stack.extend(reversed(children(top)))


def operands(element: Element) -> tuple[Element, ...]:
    """Return the direct operands of an element."""
    match element:
        case Number() | Index() | Condition() | Load() | Local():
            return ()
        case Unary(operand=operand) | Cast(operand=operand) | Reinterpret(operand=operand):
            return (operand,)
        case Binary(left=left, right=right) | Compare(left=left, right=right):
            return (left, right)
        case Ternary(first=first, second=second, third=third):
            return (first, second, third)
        case Where(condition=condition, then=then, otherwise=otherwise):
            return (condition, then, otherwise)
        case _:
            assert_never(element)


def walk_element(element: Element) -> Iterator[Element]:
    """Yield an element and its descendants, outer before inner."""
    stack = [element]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(reversed(operands(top)))


def allocations(statement: Stmt) -> Iterator[Alloc]:
    """Return an iterator over all allocations in a statement, outer before inner."""
    return (inner for inner in walk(statement) if isinstance(inner, Alloc))


def all_buffers(function: PrimFunc) -> tuple[Buffer, ...]:
    """Return the parameters and all temporaries of a function, outer before inner."""
    scoped = (alloc.buffer for alloc in allocations(function.body))
    return (*function.buffer_params, *function.buffers, *scoped)


def elements(statement: Stmt) -> Iterator[Element]:
    """Yield the stored and bound elements in a statement with their descendants."""
    for inner in walk(statement):
        if isinstance(inner, Store | Bind):
            yield from walk_element(inner.value)


def loads(statement: Stmt) -> Iterator[Load]:
    """Yield all loads in a statement, including those of :class:`Let`."""
    for inner in walk(statement):
        if isinstance(inner, Let):
            yield inner.load
        if isinstance(inner, Store | Bind):
            yield from (e for e in walk_element(inner.value) if isinstance(e, Load))


@lru_cache(maxsize=8192)
def accessed_buffers(statement: Stmt) -> frozenset[Buffer]:
    """Return the buffers that a statement loads or stores; computed once per statement."""
    own: set[Buffer] = set()
    if isinstance(statement, Let):
        own.add(statement.load.buffer)
    if isinstance(statement, Store):
        own.add(statement.buffer)
    if isinstance(statement, Store | Bind):
        own.update(e.buffer for e in walk_element(statement.value) if isinstance(e, Load))
    return frozenset(own).union(*map(accessed_buffers, children(statement)))


def stores(statement: Stmt) -> Iterator[Store]:
    """Return an iterator over all stores in a statement."""
    return (inner for inner in walk(statement) if isinstance(inner, Store))


def variables_in(statement: Stmt) -> set[Var]:
    """Return the variables in the indices and elements of the stores in a statement."""
    terms: list[Expr | Bool] = [index for store in stores(statement) for index in store.indices]
    for part in elements(statement):
        value = getattr(part, "value", None)
        terms += part.indices if isinstance(part, Load) else ()
        terms += (value,) if isinstance(value, Expr | Bool) else ()
    return {variable for term in terms for variable in term.free}


def used_variables(statement: Stmt) -> frozenset[Var]:
    """Return the variables that a statement uses and does not bind."""
    used, bound = variables_in(statement), set[Var]()
    for part in walk(statement):
        match part:
            case For(var=var, extent=extent):
                bound.add(var)
                used |= extent.free
            case Let(var=var, lower=lower, upper=upper, load=load):
                bound.add(var)
                used |= lower.free.union(upper.free, *(i.free for i in load.indices))
            case If(condition=condition):
                used |= condition.free
            case Block(iters=iters, predicate=predicate):
                bound |= {v.var for v in iters}
                used |= predicate.free.union(*(v.binding.free | v.extent.free for v in iters))
            case _:
                pass
    return frozenset(used - bound)


def with_children(statement: Stmt, new: tuple[Stmt, ...]) -> Stmt:
    """Return a statement with new children, as many as :func:`children` returns."""
    if same(children(statement), new):
        return statement
    match statement:
        case For() | Let() | Alloc() | Bind():
            return replace(statement, body=new[0])
        case Block(init=None):
            return replace(statement, body=new[0])
        case Block():
            return replace(statement, init=new[0], body=new[1])
        case Seq():
            return seq(*new)
        case If(otherwise=None):
            return replace(statement, then=new[0])
        case If():
            return replace(statement, then=new[0], otherwise=new[1])
        case Store():
            return statement
        case _:
            assert_never(statement)


def transform(statement: Stmt, change: Callable[[Stmt], Stmt]) -> Stmt:
    """Rewrite bottom-up: ``change`` receives every statement after its children were rewritten."""
    if isinstance(statement, Store):
        return change(statement)
    if isinstance(statement, For):
        body = transform(statement.body, change)
        return change(statement if body is statement.body else replace(statement, body=body))
    old = children(statement)
    inner = tuple([transform(child, change) for child in old])
    return change(statement if same(old, inner) else with_children(statement, inner))


def replace_statement(root: Stmt, old: Stmt, new: Stmt) -> Stmt:
    """Return ``root`` with the statement ``old`` replaced by ``new``."""
    path = path_to(root, old)
    return replaced_along(path, new) if path else root


def replaced_along(path: tuple[Stmt, ...], new: Stmt) -> Stmt:
    """Return the first statement of a path with the last one replaced.

    Parameters
    ----------
    path : tuple of Stmt
        Statements, each a child of the previous one.
    new : Stmt
        The statement in place of the last one.
    """
    old = path[-1]
    for above in reversed(path[:-1]):
        changed = tuple([new if c is old else c for c in children(above)])
        if isinstance(above, Seq) and not isinstance(new, _NOT_IN_SEQUENCES):
            old, new = above, Seq(changed)
        else:
            old, new = above, with_children(above, changed)
    return new


_NOT_IN_SEQUENCES = (Seq, Alloc, Bind)
"""The statements that :func:`seq` merges with the ones around or after them."""


def path_to(root: Stmt, target: Stmt) -> tuple[Stmt, ...]:
    """Return the statements from the root to the target, inclusive; empty if not found."""
    parent: dict[Stmt, Stmt] = {}
    stack = [root]
    while stack:
        top = stack.pop()
        if top is target:
            return _path(root, target, parent)
        inner = children(top)
        parent.update(dict.fromkeys(inner, top))
        stack.extend(inner)
    return ()


def _path(root: Stmt, target: Stmt, parent: Mapping[Stmt, Stmt]) -> tuple[Stmt, ...]:
    found = [target]
    while found[-1] is not root:
        found.append(parent[found[-1]])
    return tuple(reversed(found))


class Rebuilder:
    """A base class for rewriting terms, predicates, buffers, loads and stores.

    Override the methods of the nodes to rewrite; unchanged nodes are kept. The buffer of an
    allocation is rewritten like any other buffer, then its shape; accesses in its body follow.
    """

    _scoped: dict[Buffer, Buffer] | None = None
    """The new buffers of the allocations around the current statement."""

    _locals: dict[Local, Local] | None = None
    """The locals that replace those of binds around the current statement."""

    def expr(self, term: Expr) -> Expr:
        """Rewrite an index term."""
        return term

    def predicate(self, claim: Bool) -> Bool:
        """Rewrite a predicate."""
        return claim

    def buffer(self, buffer: Buffer) -> Buffer:
        """Replace a buffer."""
        return buffer

    def load(self, load: Load) -> Element:
        """Rewrite a load whose indices are already rewritten."""
        return load

    def store(self, store: Store) -> Stmt:
        """Rewrite a store whose operands are already rewritten."""
        return store

    def exprs(self, terms: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Rewrite index terms; the same tuple is returned if none changes."""
        new = tuple([self.expr(t) for t in terms])
        return terms if same(terms, new) else new

    def region(self, region: Region) -> Region:
        """Rewrite the buffer and the ranges of a region."""
        buffer = self.accessed(region.buffer)
        ranges = tuple(Range(self.expr(r.start), self.expr(r.extent)) for r in region.ranges)
        return Region(buffer, ranges)

    def accessed(self, buffer: Buffer) -> Buffer:
        """Return the buffer in place of one that is accessed."""
        scoped = self._scoped
        return self.buffer(buffer) if not scoped or buffer not in scoped else scoped[buffer]

    def allocated(self, buffer: Buffer) -> Buffer:
        """Return the buffer in place of one that an allocation in the statement provides."""
        new = self.buffer(buffer)
        return new if new is not buffer else self.reshaped(buffer)

    def reshaped(self, buffer: Buffer) -> Buffer:
        """Return a buffer whose shape and strides are rewritten; itself if they do not change."""
        shape = self.exprs(buffer.shape)
        strides = None if buffer.strides is None else self.exprs(buffer.strides)
        unchanged = shape is buffer.shape and strides is buffer.strides
        return buffer if unchanged else replace(buffer, shape=shape, strides=strides)

    def alloc(self, alloc: Alloc) -> Stmt:
        """Rewrite an allocation and its body."""
        old, new = alloc.buffer, self.allocated(alloc.buffer)
        if new is old:
            return replace(alloc, body=self.statement(alloc.body))
        scoped = self._scoped = {} if self._scoped is None else self._scoped
        scoped[old] = new
        body = self.statement(alloc.body)
        del scoped[old]
        return Alloc(new, body)

    def local(self, local: Local, dtype: DType) -> Local:
        """Return the local in place of one that a bind in the statement gives a value."""
        return local if local.dtype == dtype else replace(local, dtype=dtype)

    def bind(self, bind: Bind) -> Stmt:
        """Rewrite a bind and its body."""
        value, old = self.element(bind.value), bind.local
        new = self.local(old, value.dtype)
        if new is old:
            body = self.statement(bind.body)
            unchanged = value is bind.value and body is bind.body
            return bind if unchanged else replace(bind, value=value, body=body)
        known = self._locals = {} if self._locals is None else self._locals
        known[old] = new
        body = self.statement(bind.body)
        del known[old]
        return Bind(new, value, body)

    def _load(self, load: Load) -> Load:
        buffer, indices = self.accessed(load.buffer), self.exprs(load.indices)
        unchanged = buffer is load.buffer and indices is load.indices
        return load if unchanged else Load(buffer, indices)

    def index_load(self, load: Load) -> Load:
        """Rewrite the load of an index, which remains a load of an integer."""
        new = self.element(load)
        if not isinstance(new, Load):
            raise TypeError(f"the index loaded from {load.buffer.name!r} must remain a load")
        return new

    def _discharge(self, discharge: Var | Literal["dtype"] | None) -> Var | Literal["dtype"] | None:
        """Rename the variable of the check that discharges the range of an integer."""
        if not isinstance(discharge, Var):
            return discharge
        new = self.expr(discharge)
        return new if isinstance(new, Var) else discharge

    def element(self, element: Element) -> Element:
        """Rewrite an element."""
        match element:
            case Number():
                return element
            case Index(value=value, dtype=dtype):
                return Index(self.expr(value), dtype)
            case Condition(value=value):
                return Condition(self.predicate(value))
            case Load():
                return self.load(self._load(element))
            case Unary(op=op, operand=operand):
                return Unary(op, self.element(operand))
            case Cast(dtype=dtype, operand=operand):
                return Cast(dtype, self.element(operand))
            case Reinterpret(dtype=dtype, operand=operand):
                return Reinterpret(dtype, self.element(operand))
            case Binary(op=op, left=left, right=right):
                return Binary(op, self.element(left), self.element(right))
            case Compare(op=op, left=left, right=right):
                return Compare(op, self.element(left), self.element(right))
            case Ternary(op=op, first=first, second=second, third=third):
                return Ternary(op, *(self.element(e) for e in (first, second, third)))
            case Where(condition=condition, then=then, otherwise=otherwise):
                return Where(self.element(condition), self.element(then), self.element(otherwise))
            case Local():
                return element if not self._locals else self._locals.get(element, element)
            case _:
                assert_never(element)

    def iter_var(self, iter_var: IterVar) -> IterVar:
        """Rewrite the extent and binding of an iteration variable."""
        extent, binding = self.expr(iter_var.extent), self.expr(iter_var.binding)
        unchanged = extent is iter_var.extent and binding is iter_var.binding
        return iter_var if unchanged else replace(iter_var, extent=extent, binding=binding)

    def block(self, block: Block) -> Stmt:
        """Rewrite a block."""
        return replace(
            block,
            iters=tuple(self.iter_var(v) for v in block.iters),
            reads=tuple(self.region(r) for r in block.reads),
            writes=tuple(self.region(r) for r in block.writes),
            predicate=self.predicate(block.predicate),
            init=None if block.init is None else self.statement(block.init),
            body=self.statement(block.body),
        )

    def statement(self, statement: Stmt) -> Stmt:
        """Rewrite a statement and its descendants."""
        match statement:
            case Store(buffer=buffer, indices=indices, value=value):
                new_value = self.element(value)
                new_buffer, new_indices = self.accessed(buffer), self.exprs(indices)
                return self.store(
                    replace(statement, buffer=new_buffer, indices=new_indices, value=new_value)
                )
            case For(extent=extent, body=body):
                return replace(statement, extent=self.expr(extent), body=self.statement(body))
            case Block():
                return self.block(statement)
            case Seq(body=parts):
                return seq(*(self.statement(p) for p in parts))
            case If(condition=condition, then=then, otherwise=otherwise):
                other = None if otherwise is None else self.statement(otherwise)
                return If(self.predicate(condition), self.statement(then), other)
            case Let(lower=lower, upper=upper, load=load, body=body):
                return replace(
                    statement,
                    lower=self.expr(lower),
                    upper=self.expr(upper),
                    load=self.index_load(load),
                    body=self.statement(body),
                    discharge=self._discharge(statement.discharge),
                )
            case Alloc():
                return self.alloc(statement)
            case Bind():
                return self.bind(statement)
            case _:
                assert_never(statement)


class _Substituter(Rebuilder):
    def __init__(self, terms: Mapping[Var, SymInt], buffers: Mapping[Buffer, Buffer]) -> None:
        self._terms = terms
        self._buffers = buffers

    def expr(self, term: Expr) -> Expr:
        return substitute(term, self._terms) if self._terms else term

    def exprs(self, terms: tuple[Expr, ...]) -> tuple[Expr, ...]:
        if not self._terms:
            return terms
        new = tuple([substitute(term, self._terms) for term in terms])
        return terms if same(terms, new) else new

    def predicate(self, claim: Bool) -> Bool:
        return substitute(claim, self._terms) if self._terms else claim

    def buffer(self, buffer: Buffer) -> Buffer:
        return self._buffers.get(buffer, buffer)


def substitute_in(
    statement: Stmt,
    terms: Mapping[Var, SymInt] | None = None,
    buffers: Mapping[Buffer, Buffer] | None = None,
) -> Stmt:
    """Replace variables by terms and buffers by buffers in a statement.

    Variables bound inside the statement are not renamed.
    """
    return _Substituter(terms or {}, buffers or {}).statement(statement)


def substitute_in_element(
    element: Element,
    terms: Mapping[Var, SymInt] | None = None,
    buffers: Mapping[Buffer, Buffer] | None = None,
) -> Element:
    """Replace variables by terms and buffers by buffers in an element."""
    return _Substituter(terms or {}, buffers or {}).element(element)
