"""Emission of thread-IR statements as LLVM basic blocks."""

from __future__ import annotations

from typing import assert_never

from ...errors import TilewrightError
from ...ir.thread.nodes import (
    Allocate,
    Assign,
    AtomicLoad,
    AtomicStore,
    AtomicUpdate,
    Barrier,
    Body,
    Call,
    CompareExchange,
    Gather,
    If,
    Let,
    Load,
    Loop,
    MachineOp,
    Parallel,
    Pause,
    Reg,
    Return,
    Scatter,
    Stmt,
    Store,
    While,
)
from ...ir.thread.types import ExecutionScope
from ...ir.thread.visit import statement_values, walk, walk_values
from ...target.cpus import FAMILIES
from . import atomics, memory_access
from .emitter import Emitter
from .indices import fits, integer, short
from .operations import HANDLERS
from .operations.nvidia import BARRIERS
from .parallel import parallel
from .types import type_name
from .values import evaluate, located, numeric, scattered, strided, typed


class UnsupportedScopeError(TilewrightError):
    """A barrier whose scope the target does not have."""

    title = "Unsupported execution scope"


def body(em: Emitter, statements: Body) -> None:
    """Emit a list of statements in a new scope."""
    around = em.location
    with em.scope():
        for statement in statements:
            em.memo.clear()
            em.locate(statement.source)
            write(em, statement)
    em.location = around


def write(em: Emitter, statement: Stmt) -> None:
    """Emit one statement."""
    match statement:
        case Let(var=var, value=value):
            em.bind(var, evaluate(em, value))
        case Assign(reg=reg, value=value):
            assign(em, reg, evaluate(em, value))
        case Allocate():
            _allocate(em, statement)
        case Store():
            _store(em, statement)
        case Scatter(base=base, offsets=offsets, value=value, mask=mask):
            of = numeric(em, value.type)
            operand = evaluate(em, value)
            memory_access.scatter(em, of, scattered(em, base, offsets, mask, of), operand)
        case Loop():
            _loop(em, statement)
        case While():
            _while(em, statement)
        case If():
            _if(em, statement)
        case Parallel():
            parallel(em, statement, body)
        case Call():
            _call(em, statement)
        case Return(value=value):
            em.line("ret void" if value is None else f"ret {typed(em, value)}")
            em.begin(em.label("dead"))
        case Barrier(scope=scope):
            _barrier(em, scope)
        case Pause():
            _pause(em)
        case MachineOp():
            _machine_op(em, statement)
        case AtomicUpdate() | CompareExchange() | AtomicLoad() | AtomicStore():
            _atomic(em, statement)
        case _:
            assert_never(statement)


def assign(em: Emitter, reg: Reg, operand: str) -> None:
    """Emit an assignment to a register."""
    em.line(f"store {type_name(reg.type)} {operand}, ptr {em.slot(reg)}")


def _machine_op(em: Emitter, statement: MachineOp) -> None:
    operands = tuple(evaluate(em, v) for v in statement.args)
    results = HANDLERS[statement.operation.name](em, operands)
    for reg, result in zip(statement.results, results, strict=True):
        assign(em, reg, result)


def _allocate(em: Emitter, statement: Allocate) -> None:
    reg = statement.reg
    if reg in em.fixed:  # Shared memory is laid out before the body is emitted.
        return
    name = em.name()
    em.entry.append(f"{name} = alloca [{statement.size} x i8], align {statement.alignment}")
    em.fixed[reg] = name


def _barrier(em: Emitter, scope: ExecutionScope) -> None:
    if scope == "thread":
        return
    write = None if em.function.launch is None else BARRIERS.get(scope)
    if write is None:
        raise UnsupportedScopeError(
            f"a barrier of scope {scope!r} is not supported "
            + ("on a CPU" if em.function.launch is None else "on this GPU"),
            where=f"function {em.function.name!r}",
            hint=f"GPU kernels have barriers of scope {', '.join(map(repr, BARRIERS))}",
        )
    write(em)


_PAUSES = {
    "x86_64": ("llvm.x86.sse2.pause", ""),
    **{arch: family.pause for arch, family in FAMILIES.items() if family.pause},
}
"""The spin-wait hint by architecture: an intrinsic and its operand."""


def _pause(em: Emitter) -> None:
    if em.module.arch in _PAUSES:
        name, operand = _PAUSES[em.module.arch]
        em.module.declare(name, f"void @{name}({operand.split(' ')[0]})")
        em.line(f"call void @{name}({operand})")


def _store(em: Emitter, statement: Store) -> None:
    operand, of = evaluate(em, statement.value), statement.value.type
    target = located(em, statement.address, statement.mask)
    if statement.stride is None:
        memory_access.store(em, of, target, operand)
        return
    numbers = numeric(em, of)
    memory_access.scatter(em, numbers, strided(em, target, statement.stride, numbers), operand)


def _loop(em: Emitter, loop: Loop) -> None:
    narrow = all(fits(em, term) for term in (loop.start, loop.stop, loop.var))
    narrow = narrow and em.narrow_scalars
    of, operand = ("i32", short) if narrow else ("i64", integer)
    start, stop = operand(em, loop.start), operand(em, loop.stop)
    before = em.block
    head, inside, after = em.label("head"), em.label("body"), em.label("exit")
    counter, following = em.name(), em.name()
    em.line(f"br label %{head}")
    em.begin(head)
    patch = len(em.lines)
    em.line("")
    going = em.op(f"icmp slt {of} {counter}, {stop}")
    em.line(f"br i1 {going}, label %{inside}, label %{after}")
    em.begin(inside)
    with em.scope():
        em.bind(loop.var, counter, short=narrow)
        body(em, loop.body)
    last = em.block
    em.line(f"{following} = add nsw {of} {counter}, {loop.step}")
    em.line(f"br label %{head}{_hint(em, loop)}")
    values = f"[ {start}, %{before} ], [ {following}, %{last} ]"
    em.lines[patch] = f"{counter} = phi {of} {values}{em.location}"
    em.begin(after)


def _hint(em: Emitter, loop: Loop) -> str:
    """Return the metadata of a loop that LLVM shall not unroll: one over masked vectors.

    Such a loop runs the few iterations that a loop without masks leaves over, or one that is
    limited by its masks. Its copies would cost registers, so many that the register allocation of
    LLVM 22 fails in large kernels.
    """
    masked = False
    for statement in walk(loop.body):
        if isinstance(statement, Loop | While):
            return ""
        masked = masked or _is_masked(statement)
    return f", !llvm.loop !{em.module.loop_node()}" if masked else ""


def _is_masked(statement: Stmt) -> bool:
    """Return whether a statement accesses memory in some lanes only."""
    if isinstance(statement, Store | Scatter) and statement.mask is not None:
        return True
    values = walk_values(statement_values(statement))
    return any(isinstance(v, Load | Gather) and v.mask is not None for v in values)


def _while(em: Emitter, loop: While) -> None:
    head, inside, after = em.label("while"), em.label("body"), em.label("exit")
    em.line(f"br label %{head}")
    em.begin(head)
    with em.scope():
        going = evaluate(em, loop.condition)
        em.line(f"br i1 {going}, label %{inside}, label %{after}")
        em.begin(inside)
        body(em, loop.body)
    em.line(f"br label %{head}")
    em.begin(after)


def _if(em: Emitter, branch: If) -> None:
    bit = evaluate(em, branch.condition)
    then, after = em.label("then"), em.label("end")
    otherwise = em.label("else") if branch.otherwise else after
    em.line(f"br i1 {bit}, label %{then}, label %{otherwise}")
    em.begin(then)
    body(em, branch.then)
    em.line(f"br label %{after}")
    if branch.otherwise:
        em.begin(otherwise)
        body(em, branch.otherwise)
        em.line(f"br label %{after}")
    em.begin(after)


def _call(em: Emitter, call: Call) -> None:
    result = "void" if call.result is None else type_name(call.result.type)
    args = ", ".join(typed(em, a) for a in call.args)
    if isinstance(call.callee, str):
        kinds = ", ".join(type_name(a.type) for a in call.args)
        em.module.declare(call.callee, f"{result} @{call.callee}({kinds})")
        callee = f"@{call.callee}"
    else:
        callee = evaluate(em, call.callee)
    if call.result is None:
        em.line(f"call void {callee}({args})")
    else:
        assign(em, call.result, em.op(f"call {result} {callee}({args})"))


def _atomic(
    em: Emitter, statement: AtomicUpdate | CompareExchange | AtomicLoad | AtomicStore
) -> None:
    match statement:
        case AtomicUpdate(result=result):
            old = atomics.update(em, statement)
            if result is not None:
                assign(em, result, old)
        case CompareExchange(result=result):
            assign(em, result, atomics.compare_exchange(em, statement))
        case AtomicLoad(result=result):
            assign(em, result, atomics.load(em, statement))
        case AtomicStore():
            atomics.store(em, statement)
        case _:
            assert_never(statement)
