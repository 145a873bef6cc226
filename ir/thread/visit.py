"""Traversal of thread-level functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from ..symbolic import Bool, Expr, Var
from .nodes import (
    Address,
    Allocate,
    Assign,
    AtomicLoad,
    AtomicStore,
    AtomicUpdate,
    Barrier,
    Binary,
    Bitcast,
    Body,
    Broadcast,
    Call,
    Cast,
    Compare,
    CompareExchange,
    Const,
    Data,
    Extract,
    Fma,
    FunctionAddress,
    Gather,
    If,
    Index,
    Let,
    Load,
    Loop,
    MachineOp,
    Null,
    Offset,
    Parallel,
    Pause,
    Predicate,
    Reduce,
    Reg,
    Return,
    Scatter,
    Select,
    Shuffle,
    Stmt,
    Store,
    Unary,
    Value,
    While,
)


def bodies(statement: Stmt) -> tuple[Body, ...]:
    """Return the statement lists nested in a statement."""
    match statement:
        case Loop(body=body) | While(body=body) | Parallel(body=body):
            return (body,)
        case If(then=then, otherwise=otherwise):
            return (then, otherwise)
        case _:
            return ()


def walk(body: Body) -> Iterator[Stmt]:
    """Yield statements and all nested statements, in program order."""
    for statement in body:
        yield statement
        for inner in bodies(statement):
            yield from walk(inner)


def _present(*values: Value | None) -> tuple[Value, ...]:
    return tuple(v for v in values if v is not None)


def statement_values(statement: Stmt) -> tuple[Value, ...]:
    """Return the values that a statement evaluates, without those of nested statements."""
    match statement:
        case Let(value=value) | Assign(value=value):
            return (value,)
        case Store(address=Address(base=base), value=value, mask=mask):
            return _present(base, value, mask)
        case Scatter(base=base, offsets=offsets, value=value, mask=mask):
            return _present(base, offsets, value, mask)
        case While(condition=condition) | If(condition=condition):
            return (condition,)
        case Parallel(table=table):
            return (table,)
        case Call(callee=callee, args=args):
            return args if isinstance(callee, str) else (callee, *args)
        case Return(value=value):
            return _present(value)
        case MachineOp(args=args):
            return args
        case AtomicUpdate(address=Address(base=base), value=value):
            return (base, value)
        case AtomicStore(address=Address(base=base), value=value):
            return (base, value)
        case CompareExchange(address=Address(base=base), expected=expected, desired=desired):
            return (base, expected, desired)
        case AtomicLoad(address=Address(base=base)):
            return (base,)
        case Allocate() | Loop() | Barrier() | Pause():
            return ()
        case _:
            assert_never(statement)


def operands(value: Value) -> tuple[Value, ...]:
    """Return the direct operands of a value."""
    match value:
        case Reg() | Const() | Null() | Index() | Predicate() | Data() | FunctionAddress():
            return ()
        case Offset(base=base):
            return (base,)
        case Load(address=Address(base=base), mask=mask):
            return _present(base, mask)
        case Gather(base=base, offsets=offsets, mask=mask):
            return _present(base, offsets, mask)
        case Unary(operand=x) | Cast(operand=x) | Bitcast(operand=x) | Broadcast(operand=x):
            return (x,)
        case Extract(operand=x) | Reduce(operand=x):
            return (x,)
        case Binary(left=x, right=y) | Compare(left=x, right=y) | Shuffle(left=x, right=y):
            return (x, y)
        case Fma(a=a, b=b, c=c):
            return (a, b, c)
        case Select(condition=condition, then=then, otherwise=otherwise):
            return (condition, then, otherwise)
        case _:
            assert_never(value)


def walk_values(roots: tuple[Value, ...]) -> Iterator[Value]:
    """Yield values and all their operands, each object once."""
    seen: set[int] = set()
    stack = list(reversed(roots))
    while stack:
        top = stack.pop()
        if id(top) not in seen:
            seen.add(id(top))
            yield top
            stack.extend(reversed(operands(top)))


def value_terms(value: Value) -> tuple[Expr | Bool, ...]:
    """Return the symbolic terms of a value, without those of its operands."""
    match value:
        case Index(expr=expr) | Offset(offset=expr):
            return (expr,)
        case Predicate(condition=condition):
            return (condition,)
        case Load(address=Address(offset=offset), stride=stride):
            return (offset,) if stride is None else (offset, stride)
        case _:
            return ()


def statement_terms(statement: Stmt) -> tuple[Expr, ...]:
    """Return the symbolic terms of a statement, without those of values and nested statements."""
    match statement:
        case Loop(start=start, stop=stop):
            return (start, stop)
        case Parallel(stop=stop, work=work):
            return (stop, work)
        case Store(address=Address(offset=offset), stride=stride):
            return (offset,) if stride is None else (offset, stride)
        case (
            AtomicUpdate(address=address)
            | AtomicLoad(address=address)
            | AtomicStore(address=address)
            | CompareExchange(address=address)
        ):
            return (address.offset,)
        case _:
            return ()


def _bound_vars(statement: Stmt) -> tuple[Var, ...]:
    match statement:
        case Let(var=var) | Loop(var=var):
            return (var,)
        case Parallel(var=var, worker=worker):
            return (var, worker)
        case _:
            return ()


def _assigned(statement: Stmt) -> tuple[Reg, ...]:
    match statement:
        case Assign(reg=reg) | Allocate(reg=reg):
            return (reg,)
        case Call(result=Reg() as reg) | AtomicUpdate(result=Reg() as reg):
            return (reg,)
        case CompareExchange(result=reg) | AtomicLoad(result=reg):
            return (reg,)
        case MachineOp(results=results):
            return results
        case _:
            return ()


def assigned(body: Body) -> frozenset[Reg]:
    """Return the registers assigned by statements, including nested ones."""
    return frozenset(r for s in walk(body) for r in _assigned(s))


def uses(body: Body) -> frozenset[Reg]:
    """Return the registers read by statements, including nested ones."""
    values = (v for s in walk(body) for v in walk_values(statement_values(s)))
    return frozenset(v for v in values if isinstance(v, Reg))


def captured(region: Parallel) -> tuple[tuple[Var, ...], tuple[Reg, ...]]:
    """Return the free variables and registers of a region, in order of first use."""
    body = region.body
    variables: dict[Var, None] = {}
    registers: dict[Reg, None] = {}
    bound: set[Var] = {region.var, region.worker}
    for statement in walk(body):
        bound.update(_bound_vars(statement))
    for statement in walk(body):
        values = tuple(walk_values(statement_values(statement)))
        lanes = {v.lane for v in values if isinstance(v, Index | Predicate)}
        terms = [*statement_terms(statement), *(t for v in values for t in value_terms(v))]
        for term in terms:
            new = [v for v in term.free if v not in bound and v not in lanes]
            variables.update(dict.fromkeys(sorted(new, key=lambda v: v.serial)))
        registers.update({v: None for v in values if isinstance(v, Reg)})
    local = assigned(body)
    return tuple(variables), tuple(r for r in registers if r not in local)
