"""Thread-bound loops become the axes of one launch, around everything else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from ....ir.gpu import BLOCK_AXES, TAGS, THREAD_AXES, WARP
from ....ir.loop.nodes import INTRINSIC, Block, Buffer, For, If, PrimFunc, Stmt, Store
from ....ir.loop.ranges import loop_var
from ....ir.loop.visit import children, stores, substitute_in, transform, walk, with_children
from ....ir.symbolic import Const, Expr, Var, all_of, as_expr, const_value, eq, free_vars, to_text
from ....ir.thread.nodes import ThreadAxis
from .errors import ThreadAxisError, UnboundKernelError, WarpError
from .tensor import intrinsic_of

ONCE: Final = "once"
"""Annotates what stands outside the loops of some thread axes; the value is their tags."""

NO_UID: Final = -1


def unify_axes(func: PrimFunc) -> PrimFunc:
    """Give every axis one variable and put its loop around the whole body.

    Before::
        for i in thread(n, "blockIdx.x"):
            for a in thread(64, "threadIdx.x"): S[a] = ...
            for b in thread(64, "threadIdx.x"): y[i, b] = S[63 - b]
    After::
        for blockIdx_x in thread(n, "blockIdx.x"):
            for threadIdx_x in thread(64, "threadIdx.x"):
                S[threadIdx_x] = ...
                y[blockIdx_x, threadIdx_x] = S[63 - threadIdx_x]

    What stands outside the loops of a thread axis is done by thread 0 of that axis, where it
    writes memory that others see, and by every thread for itself, where it writes registers.
    """
    axes = _axes(func)
    if not axes:
        raise UnboundKernelError(
            f"no loop of {func.name!r} is bound to an axis of a launch",
            where=f"function {func.name!r}",
            hint="bind(loop, 'blockIdx.x') and bind(loop, 'threadIdx.x'), or leave the function "
            "without steps to get the default ones",
        )
    body = _Unify(axes, func).statement(func.body, frozenset())
    for axis in sorted(axes.values(), key=lambda a: TAGS.index(a.tag), reverse=True):
        body = For(axis.uid, axis.var, axis.extent, body, "thread", axis.tag)
    return replace(func, body=body)


@dataclass(frozen=True, slots=True)
class _Axis:
    tag: str
    var: Var
    extent: Expr
    uid: int


def _axes(func: PrimFunc) -> dict[str, _Axis]:
    found: dict[str, _Axis] = {}
    for loop in walk(func.body):
        if not isinstance(loop, For) or loop.kind != "thread":
            continue
        if loop.thread not in TAGS:
            raise ThreadAxisError(
                f"no thread axis {loop.thread!r}",
                where=f"loop {loop.var.name!r} of {func.name!r}",
                hint=f"axes are {', '.join(TAGS)}",
            )
        if loop.thread.startswith("vthread"):
            continue
        known = found.get(loop.thread)
        if known is None:
            name = loop.thread.replace(".", "_")
            axis = _Axis(loop.thread, loop_var(name, loop.extent), loop.extent, loop.uid)
            _check_extent(axis, loop, func)
            found[loop.thread] = axis
        elif known.extent != loop.extent:
            raise ThreadAxisError(
                f"{loop.thread} is {to_text(known.extent)} in one loop and "
                f"{to_text(loop.extent)} in loop {loop.var.name!r}",
                where=f"function {func.name!r}",
                hint="loops bound to one axis need one extent; split the longer one",
                details={"extents": [to_text(known.extent), to_text(loop.extent)]},
            )
    return _with_warp(func, found)


def _with_warp(func: PrimFunc, axes: dict[str, _Axis]) -> dict[str, _Axis]:
    """Give threadIdx.x to the warps where an instruction needs them."""
    block = next((b for b in walk(func.body) if isinstance(b, Block) and _of_warp(b)), None)
    if block is None:
        return axes
    own = axes.get("threadIdx.x")
    if own is None:
        extent = as_expr(WARP)
        own = _Axis("threadIdx.x", loop_var("threadIdx_x", extent), extent, NO_UID)
    if const_value(own.extent) != WARP:
        raise WarpError(
            f"block {block.name!r} is done by a warp, so threadIdx.x has to be {WARP}; it is "
            f"{to_text(own.extent)}",
            where=f"function {func.name!r}",
            hint=f"split the loops bound to threadIdx.x so that they run {WARP} times",
            details={"extent": to_text(own.extent)},
        )
    return {**axes, "threadIdx.x": own}


def _of_warp(block: Block) -> bool:
    found = intrinsic_of(block)
    return found is not None and found.scope == "warp"


def _check_extent(axis: _Axis, loop: For, func: PrimFunc) -> None:
    symbols = {
        v for b in func.buffer_params for d in (*b.shape, *(b.strides or ())) for v in d.free
    }
    symbols.update(func.scalar_params)
    constant = const_value(axis.extent) is not None
    if axis.tag in THREAD_AXES and not constant:
        raise ThreadAxisError(
            f"extent {to_text(axis.extent)} of {axis.tag} is no constant",
            where=f"loop {loop.var.name!r} of {func.name!r}",
            hint="split the loop and bind the part of constant extent",
        )
    if not free_vars(axis.extent) <= symbols:
        raise ThreadAxisError(
            f"extent {to_text(axis.extent)} of {axis.tag} is not known before the launch",
            where=f"loop {loop.var.name!r} of {func.name!r}",
            hint="it may depend on the function's symbols alone",
        )


class _Unify:
    """Removes thread-bound loops, and guards what stands outside of some."""

    def __init__(self, axes: Mapping[str, _Axis], func: PrimFunc) -> None:
        self._axes = axes
        self._function = func.name
        self._params = set(func.buffer_params)

    def statement(self, statement: Stmt, inside: frozenset[str]) -> Stmt:
        match statement:
            case For(kind="thread", thread=tag, var=variable, body=body):
                swapped = substitute_in(body, {variable: self._axes[tag].var})
                return self.statement(swapped, inside | {tag})
            case For(kind="serial", extent=Const(value=1), var=variable, body=body):
                return self.statement(substitute_in(body, {variable: 0}), inside)
            case Store():
                return self._guarded(statement, statement.buffer, inside)
            case Block() if any(key == INTRINSIC for key, _ in statement.annotations):
                return self._warp(statement, inside)
            case _:
                below = tuple(self.statement(c, inside) for c in children(statement))
                return with_children(statement, below)

    def _warp(self, block: Block, inside: frozenset[str]) -> Stmt:
        """Let one warp do what all would do alike; the warp's own threads are all inside."""
        written = next(stores(block)).buffer
        if "threadIdx.x" in inside:
            raise WarpError(
                f"block {block.name!r} is done by a whole warp, but stands in a loop bound to "
                "threadIdx.x",
                where=f"function {self._function!r}",
                hint="leave threadIdx.x to the instruction, and bind the loop to threadIdx.y",
            )
        return self._guarded(block, written, inside | {"threadIdx.x"})

    def _guarded(self, store: Store | Block, buffer: Buffer, inside: frozenset[str]) -> Stmt:
        outside = [t for t, a in self._axes.items() if t not in inside and not _is_one(a)]
        blocks = [t for t in outside if t in BLOCK_AXES]
        if blocks and buffer in self._params:
            raise UnboundKernelError(
                f"{buffer.name!r} is written outside of the loop bound to {', '.join(blocks)}",
                where=f"function {self._function!r}",
                hint="thread blocks do not wait for each other; move the block into the loop",
            )
        threads = tuple(t for t in outside if t in THREAD_AXES)
        if not threads:
            return store
        return Block(NO_UID, ONCE, (), (), (), store, annotations=((ONCE, threads),))


def _is_one(axis: _Axis) -> bool:
    return const_value(axis.extent) == 1


def guard_single(func: PrimFunc) -> PrimFunc:
    """Let thread 0 alone do what stands outside of a thread axis, where others see the result."""
    axes, _ = launch_axes(func)
    variables = {a.tag: a.var for a in axes}

    def change(statement: Stmt) -> Stmt:
        if not isinstance(statement, Block) or statement.name != ONCE:
            return statement
        tags = dict(statement.annotations)[ONCE]
        inner = statement.body
        if next(stores(inner)).buffer.scope in ("local", "fragment"):
            return inner
        names = tags if isinstance(tags, tuple) else ()
        return If(all_of(*(eq(variables[str(t)], 0) for t in names)), inner)

    return replace(func, body=transform(func.body, change))


def launch_axes(func: PrimFunc) -> tuple[tuple[ThreadAxis, ...], Stmt]:
    """Take the loops of the launch off a function's body."""
    found: list[ThreadAxis] = []
    body = func.body
    while isinstance(body, For) and body.kind == "thread":
        found.append(ThreadAxis(body.thread, body.var, body.extent))
        body = body.body
    return tuple(found), body
