"""Parallel regions: outlined functions that are called through the runtime table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...ir.dtype import i32
from ...ir.symbolic import Var, var as symbol
from ...ir.thread.function import ThreadFunc
from ...ir.thread.nodes import Body, Loop, Parallel, Reg
from ...ir.thread.runtime_table import CONTEXT, PARALLEL, THREADS
from ...ir.thread.types import VectorType
from ...ir.thread.visit import captured
from .emitter import Emitter
from .indices import integer
from .types import type_name
from .values import evaluate

WORTHWHILE: Final = 1 << 18
"""The estimated number of instructions below which a region runs on one thread.

That many instructions take from 5 µs (fused multiply-adds on registers) to 60 µs (scalar code);
waking a passive thread pool takes 47 µs.
"""

_SLOT: Final = 64
"""The alignment of captured values in bytes."""

Write = Callable[[Emitter, Body], None]


def parallel(em: Emitter, region: Parallel, write: Write) -> None:
    """Emit the function of a region, and its call on the thread pool or on this thread."""
    variables, registers = captured(region)
    ordered = tuple(sorted(variables, key=lambda v: em.ranks.get(v, -1)))
    name = f"{em.function.name}.part{em.outlined}"
    em.outlined += 1
    environment = _environment(em, ordered, registers)
    stop = integer(em, region.stop)
    _outline(em, name, region, (ordered, registers), write)
    _propagate(em, _dispatch(em, region, name, environment, stop))


def _offsets(variables: tuple[Var, ...], registers: tuple[Reg, ...]) -> list[int]:
    """Return the offset of each captured value, followed by the total size."""
    offsets = [_SLOT * k for k in range(len(variables) + 1)]
    for reg in registers:
        of = reg.type
        size = of.lanes * of.width if isinstance(of, VectorType) else 8
        offsets.append(offsets[-1] + -(-size // _SLOT) * _SLOT)
    return offsets


def _environment(em: Emitter, variables: tuple[Var, ...], registers: tuple[Reg, ...]) -> str:
    """Store the captured values on the stack of the caller, which waits for the region."""
    offsets = _offsets(variables, registers)
    environment = em.name()
    em.entry.append(f"{environment} = alloca [{max(offsets[-1], 1)} x i8], align {_SLOT}")
    operands = [("i64", integer(em, v)) for v in variables]
    operands += [(type_name(r.type), evaluate(em, r)) for r in registers]
    for offset, (kind, operand) in zip(offsets, operands, strict=False):
        where = em.op(f"getelementptr i8, ptr {environment}, i64 {offset}")
        em.line(f"store {kind} {operand}, ptr {where}")
    return environment


def _outline(
    em: Emitter,
    name: str,
    region: Parallel,
    needed: tuple[tuple[Var, ...], tuple[Reg, ...]],
    write: Write,
) -> None:
    width = em.function.width
    function = ThreadFunc(name, (), region.body, VectorType(i32), exported=False, width=width)
    inner = Emitter(em.module, function)
    variables, registers = needed
    offsets = iter(_offsets(variables, registers))
    for var in variables:
        inner.bind(var, _captured(inner, next(offsets), "i64"))
    for reg in registers:
        inner.fixed[reg] = _captured(inner, next(offsets), type_name(reg.type))
    inner.bind(region.worker, "%worker")
    begin, end = (symbol(f"{region.var.name}_{k}") for k in ("begin", "end"))
    inner.bind(begin, "%begin")
    inner.bind(end, "%end")
    write(inner, (Loop(region.var, begin, end, region.body, source=region.source),))
    inner.line("ret i32 0")
    params = "ptr noalias %env, i64 %begin, i64 %end, i64 %worker"
    em.module.outlined.append(inner.finish(f"define internal i32 @{name}({params})"))


def _captured(inner: Emitter, offset: int, kind: str) -> str:
    where = inner.op(f"getelementptr i8, ptr %env, i64 {offset}")
    return inner.op(f"load {kind}, ptr {where}")


def _dispatch(em: Emitter, region: Parallel, name: str, environment: str, stop: str) -> str:
    table = evaluate(em, region.table)
    threads = _slot(em, table, THREADS, "i64")
    several = em.op(f"icmp sgt i64 {threads}, 1")
    split = em.op(f"icmp sgt i64 {stop}, 1")
    worth = em.op(f"icmp sge i64 {integer(em, region.work)}, {WORTHWHILE}")
    both = em.op(f"and i1 {several}, {split}")
    chosen = em.op(f"and i1 {both}, {worth}")
    shared, alone, after = em.label("shared"), em.label("alone"), em.label("joined")
    em.line(f"br i1 {chosen}, label %{shared}, label %{alone}")
    em.begin(shared)
    context = _slot(em, table, CONTEXT, "ptr")
    run = _slot(em, table, PARALLEL, "ptr")
    args = f"ptr {context}, ptr @{name}, i64 {stop}, ptr {environment}"
    code = em.op(f"call i32 {run}({args})")
    em.line(f"br label %{after}")
    em.begin(alone)
    own = em.op(f"call i32 @{name}(ptr {environment}, i64 0, i64 {stop}, i64 0)")
    em.line(f"br label %{after}")
    em.begin(after)
    return em.op(f"phi i32 [ {code}, %{shared} ], [ {own}, %{alone} ]")


def _slot(em: Emitter, table: str, offset: int, kind: str) -> str:
    where = em.op(f"getelementptr i8, ptr {table}, i64 {offset}")
    return em.op(f"load {kind}, ptr {where}, align 8")


def _propagate(em: Emitter, code: str) -> None:
    """Return the code of the region from the function unless it is 0."""
    if em.function.result is None:
        return
    failed = em.op(f"icmp ne i32 {code}, 0")
    failure, after = em.label("failed"), em.label("passed")
    em.line(f"br i1 {failed}, label %{failure}, label %{after}")
    em.begin(failure)
    em.line(f"ret i32 {code}")
    em.begin(after)
