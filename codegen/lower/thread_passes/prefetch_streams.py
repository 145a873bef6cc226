"""Prefetches of the memory that a reduction reads in sequence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from ....ir.symbolic import as_expr, const_value, linear_form
from ....ir.symbolic.terms import linear_terms
from ....ir.thread.function import ThreadFunc
from ....ir.thread.nodes import (
    Assign,
    Binary,
    Body,
    Broadcast,
    Cast,
    Compare,
    Fma,
    Gather,
    If,
    Let,
    Load,
    Loop,
    MachineOp,
    Offset,
    Parallel,
    Reg,
    Select,
    Stmt,
    Store,
    Unary,
    Value,
    While,
)
from ....ir.thread.operations.cpu import PREFETCH
from ....ir.thread.types import VectorType
from ....ir.thread.visit import statement_values, walk_values
from ....schedules.launch.lowering_pass import CPU, ThreadPass
from ....target.target import Target

DISTANCE: Final = 8192
"""The number of bytes between a load and the prefetch of the same iteration.

A processor prefetches sequential reads by itself, but only inside of a page of 4,096 bytes.
"""

LINE: Final = 64
"""The size of a cache line in bytes."""

MOST_LINES: Final = 16
"""The largest number of cache lines per iteration for which a loop prefetches."""

LEAST_OPERATIONS: Final = 3
"""The least number of operations per loaded vector for which a loop prefetches.

A loop with fewer operations has so many loads in flight that it waits for memory only.
"""

_ARCHITECTURES: Final = ("x86_64", "aarch64")


@dataclass(frozen=True, slots=True)
class _Stream:
    """The loads of a loop that read one range of bytes per iteration, without gaps."""

    first: Load
    lines: int


class PrefetchStreams(ThreadPass):
    """Prefetch the operands of reductions that read memory in sequence and compute much per load.

    Before::
        for k in range(n):
            best = where(load.f32x16(x[k * 64]) > best, ...)
    After::
        for k in range(n):
            cpu.prefetch(x + k * 64 + 8192)
            best = where(load.f32x16(x[k * 64]) > best, ...)

    The operations of an iteration fill the buffers of a processor, so that it has few loads in
    flight and waits for each page of memory. Loops that write to buffers, that read single
    elements, as products do, or whose iterations do not read whole adjacent cache lines are not
    changed. A prefetch does not access memory, so its address may be behind the end of a buffer.
    """

    __slots__ = ()

    targets = CPU

    def run(self, kernel: ThreadFunc, target: Target) -> ThreadFunc:
        """Return the kernel with prefetches."""
        if target.arch not in ("", *_ARCHITECTURES):
            return kernel
        body = _with_prefetches(kernel.body, frozenset(kernel.distinct))
        return kernel if body == kernel.body else replace(kernel, body=body)


def _with_prefetches(body: Body, buffers: frozenset[Reg]) -> Body:
    return tuple(_changed(statement, buffers) for statement in body)


def _changed(statement: Stmt, buffers: frozenset[Reg]) -> Stmt:
    match statement:
        case Loop(body=body):
            streams = tuple(_streams(statement, buffers))
            inner = _with_prefetches(body, buffers)
            prefetches = (p for stream in streams for p in _prefetches(stream, statement))
            made = (*prefetches, *inner)
            return statement if made == body else replace(statement, body=made)
        case While(body=body) | Parallel(body=body):
            made = _with_prefetches(body, buffers)
            return statement if made == body else replace(statement, body=made)
        case If(then=then, otherwise=otherwise):
            parts = _with_prefetches(then, buffers), _with_prefetches(otherwise, buffers)
            if parts == (then, otherwise):
                return statement
            return replace(statement, then=parts[0], otherwise=parts[1])
        case _:
            return statement


def _streams(loop: Loop, buffers: frozenset[Reg]) -> Iterator[_Stream]:
    """Yield the streams of a loop if it is a reduction that computes much per load."""
    if not all(_is_local(s, buffers) for s in loop.body):
        return
    values = tuple(walk_values(tuple(v for s in loop.body for v in statement_values(s))))
    loads = [v for v in values if isinstance(v, Load) and v.address.base in buffers]
    if not loads or any(isinstance(v, Gather) or _is_scattered(v) for v in values):
        return
    read = sum(_size(v) for v in loads)
    if sum(_operated(v) for v in values) < LEAST_OPERATIONS * read:
        return
    groups: defaultdict[object, list[tuple[int, Load]]] = defaultdict(list)
    for load in loads:
        terms, constant = linear_terms(load.address.offset)
        groups[load.address.base, terms].append((constant, load))
    for group in groups.values():
        stream = _stream(sorted(group, key=lambda pair: pair[0]), loop)
        if stream is not None:
            yield stream


def _is_local(statement: Stmt, buffers: frozenset[Reg]) -> bool:
    """Return whether a statement only computes, and writes to registers or temporaries."""
    match statement:
        case Assign() | Let():
            return True
        case Store(address=address):
            return isinstance(address.base, Reg) and address.base not in buffers
        case _:
            return False


def _is_scattered(value: Value) -> bool:
    """Return whether a value is a load of single elements, masked, or at a distance."""
    if isinstance(value, Broadcast):
        return isinstance(value.operand, Load)
    if not isinstance(value, Load) or not isinstance(value.type, VectorType):
        return False
    return value.stride is not None or value.mask is not None or value.type.lanes == 1


def _size(value: Value) -> int:
    of = value.type
    return of.lanes * of.dtype.width if isinstance(of, VectorType) else 0


def _operated(value: Value) -> int:
    """Return the bytes of the operands of an operation; 0 for other values."""
    match value:
        case Unary(operand=operand) | Cast(operand=operand):
            return _size(operand)
        case Binary(left=operand) | Compare(left=operand):
            return _size(operand)
        case Fma() | Select():
            return _size(value)
        case _:
            return 0


def _stream(group: list[tuple[int, Load]], loop: Loop) -> _Stream | None:
    """Return the stream of loads that cover the bytes of an iteration; None if there are gaps."""
    begin, first = group[0]
    form = linear_form(first.address.offset, {loop.var})
    step = None if form is None else const_value(form.coefficients.get(loop.var, as_expr(0)))
    end = begin
    for start, load in group:
        if start > end:
            return None
        end = max(end, start + _size(load))
    lines, rest = divmod((step or 0) * loop.step, LINE)
    if rest or not 1 <= lines <= MOST_LINES or end - begin != lines * LINE:
        return None
    return _Stream(first, lines)


def _prefetches(stream: _Stream, loop: Loop) -> Iterator[Stmt]:
    address = stream.first.address
    for line in range(stream.lines):
        ahead = Offset(address.base, address.offset + (DISTANCE + LINE * line))
        yield MachineOp(PREFETCH, (ahead,), (), loop.source)
