"""Statements outside of thread loops guarded so that one thread executes them."""

from __future__ import annotations

from dataclasses import replace

from ....ir.identity import Uid
from ....ir.loop.memory_scopes import PRIVATE
from ....ir.loop.nodes import INTRINSIC, Bind, Block, For, If, Let, Load, PrimFunc, Seq, Stmt, Store
from ....ir.loop.thread_roles import Combined, OneThread, Partial
from ....ir.loop.visit import children, loads, stores, transform, walk_element, with_children
from ....ir.symbolic import Bool, all_of, const_value, eq
from ....schedules.launch.annotations import REPEATED
from ....schedules.launch.launch_axes import launch_axes
from ....schedules.launch.lowering_pass import GPU, Pass
from ....target.gpus import THREAD_AXES
from ....target.target import Target


class GuardSingleThread(Pass):
    """Execute a statement outside of some thread axes in thread 0 of these axes only.

    Before::
        for threadIdx_x in thread(64, "threadIdx.x"):
            once per threadIdx.x: S[0] = 0
    After::
        for threadIdx_x in thread(64, "threadIdx.x"):
            if threadIdx_x == 0:
                S[0] = 0

    The condition is tested once around loops, branches, and bound values that only one thread
    executes. Every thread executes a statement that writes registers. The attribute ``repeated``
    records the blocks with such a statement, or an integer loaded from memory, beside a guarded
    statement.
    """

    targets = GPU

    def run(self, func: PrimFunc, target: Target) -> PrimFunc:
        """Guard all statements that ``unify_thread_bindings`` annotated."""
        del target
        axes, _ = launch_axes(func)
        variables = {a.tag: a.var for a in axes}
        several = (a for a in axes if a.tag in THREAD_AXES and const_value(a.extent) != 1)
        single = all_of(*(eq(a.var, 0) for a in several))

        def change(statement: Stmt) -> Stmt:
            if not isinstance(statement, Block) or not isinstance(statement.threads, OneThread):
                return _lifted(statement, single)
            own = all_of(*(eq(variables[axis], 0) for axis in statement.threads.axes))
            return _guarded(statement.body, own)

        repeated = _repeated(func.body)
        func = replace(func, body=transform(func.body, change))
        if not repeated:
            return func
        return replace(func, attributes=(*func.attributes, (REPEATED, repeated)))


def _repeated(body: Stmt) -> tuple[Uid, ...]:
    """Return the blocks that write memory in one thread and read memory in several threads."""
    guarded: dict[Uid | None, None] = {}
    reading: set[Uid | None] = set()

    def visit(statement: Stmt, uid: Uid | None, *, once: bool) -> None:
        match statement:
            case Block(threads=OneThread()):
                once = True
            case Block() | For(kind="serial" | "unrolled" | "vectorized"):
                uid = statement.uid
            case Let():
                reading.add(uid)
            case Store(buffer=buffer) if once and buffer.scope not in PRIVATE:
                guarded[uid] = None
            case Store() if any(loads(statement)):
                reading.add(uid)
            case Bind(value=value) if any(isinstance(e, Load) for e in walk_element(value)):
                reading.add(uid)
            case _:
                pass
        for child in children(statement):
            visit(child, uid, once=once)

    visit(body, None, once=False)
    return tuple(uid for uid in guarded if uid is not None and uid in reading)


def _guarded(statement: Stmt, condition: Bool) -> Stmt:
    """Return a statement of which one thread executes the stores outside of registers."""
    private = [store.buffer.scope in PRIVATE for store in stores(statement)]
    if all(private):
        return statement
    if not any(private):
        return If(condition, statement)

    def change(part: Stmt) -> Stmt:
        guarded = isinstance(part, Store) and part.buffer.scope not in PRIVATE
        return If(condition, part) if guarded else part

    return transform(statement, change)


def _lifted(statement: Stmt, single: Bool) -> Stmt:
    """Return a statement inside of a condition that all of its parts have.

    The condition selects one thread, so that no barrier is required inside of it.
    """
    match statement:
        case For(kind=kind) if kind not in {"serial", "unrolled"}:
            return statement
        case Block(threads=Partial() | Combined()):
            return statement  # several threads execute the combination
        case Block(annotations=notes) if any(key == INTRINSIC for key, _ in notes):
            return statement  # and the instruction
        case Block() | Bind() | Let() | For() | Seq() | If(otherwise=None):
            parts = children(statement)
        case _:
            return statement
    inner = [p.then for p in parts if isinstance(p, If) and p.otherwise is None]
    if not inner or len(inner) < len(parts):
        return statement
    if any(isinstance(p, If) and p.condition != single for p in parts):
        return statement
    return If(single, with_children(statement, tuple(inner)))
