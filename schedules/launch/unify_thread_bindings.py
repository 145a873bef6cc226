"""Thread-bound loops unified to one loop per launch axis around the whole body."""

from __future__ import annotations

from collections.abc import Mapping, Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from ...ir.copies import replace
from ...ir.kernel_errors import ThreadAxisError, UnboundKernelError, WarpError
from ...ir.loop.nodes import (
    INTRINSIC,
    Alloc,
    Attributes,
    Block,
    Buffer,
    For,
    PrimFunc,
    Seq,
    Stmt,
    Store,
)
from ...ir.loop.ranges import is_empty, loop_var
from ...ir.loop.thread_roles import OneThread
from ...ir.loop.visit import children, stores, substitute_in, walk, with_children
from ...ir.symbolic import Expr, SymInt, Var, as_expr, const_value, free_vars, to_text
from ...target.gpus import BLOCK_AXES, TAGS, THREAD_AXES, WARP
from ...target.target import Target
from ..intrinsics.registry import intrinsic_of
from .annotations import OWN_AXES
from .lowering_pass import GPU, Pass

NO_UID: Final = -1


class UnifyThreadBindings(Pass):
    """Replace all loops of a thread axis by one loop around the whole body.

    Before::
        for i in thread(n, "blockIdx.x"):
            for a in thread(64, "threadIdx.x"): S[a] = ...
            for b in thread(64, "threadIdx.x"): y[i, b] = S[63 - b]
    After::
        for blockIdx_x in thread(n, "blockIdx.x"):
            for threadIdx_x in thread(64, "threadIdx.x"):
                S[threadIdx_x] = ...
                y[blockIdx_x, threadIdx_x] = S[63 - threadIdx_x]

    A statement outside of the loops of some thread axes is annotated with these axes; the pass
    ``guard_single_thread`` lowers the annotation. The attribute ``own_axes`` of the function names
    the axes around each allocation, whose threads have their own elements; the pass
    ``compact_thread_buffers`` uses it.

    Raises
    ------
    UnboundKernelError
        If no loop is bound to a launch axis.
    ThreadAxisError
        If loops of one axis differ in extent, or an extent is unknown at the launch.
    WarpError
        If a warp-level instruction needs another extent of ``threadIdx.x``, or is inside a loop
        bound to it.
    """

    targets = GPU

    def run(self, func: PrimFunc, target: Target) -> PrimFunc:
        """Unify the bindings of all thread axes."""
        del target
        axes = _axes(func)
        if not axes:
            raise UnboundKernelError(
                f"no loop of {func.name!r} is bound to blockIdx or threadIdx",
                where=f"function {func.name!r}",
                hint="use bind(loop, 'blockIdx.x') and bind(loop, 'threadIdx.x'), or leave the "
                "function unscheduled to get the default schedule",
                parts=tuple(x.var.name for x in walk(func.body) if isinstance(x, For)),
            )
        terms = _terms(func.body, axes)
        unified = _Unify(axes, func, terms.keys())
        body = unified.statement(substitute_in(func.body, terms), frozenset())
        for axis in sorted(axes.values(), key=lambda a: TAGS.index(a.tag), reverse=True):
            body = For(axis.uid, axis.var, axis.extent, body, "thread", axis.tag)
        return replace(func, body=body, attributes=(*func.attributes, *unified.own_axes()))


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
                f"loop {loop.var.name!r} is bound to {loop.thread!r}, which is not a thread axis",
                where=f"loop {loop.var.name!r} of {func.name!r}",
                hint=f"the axes are {', '.join(TAGS)}",
                parts=(loop.var.name,),
            )
        if loop.thread.startswith("vthread"):
            continue
        if is_empty(loop):
            continue
        first = found.get(loop.thread)
        if first is None:
            name = loop.thread.replace(".", "_")
            axis = _Axis(loop.thread, loop_var(name, loop.extent), loop.extent, loop.uid)
            _check_extent(axis, loop, func)
            found[loop.thread] = axis
        elif first.extent != loop.extent:
            raise ThreadAxisError(
                f"{loop.thread} has extent {to_text(first.extent)} in one loop and "
                f"{to_text(loop.extent)} in loop {loop.var.name!r}",
                where=f"function {func.name!r}",
                hint="all loops bound to one axis must have the same extent; split the longer loop",
                details={"extents": [to_text(first.extent), to_text(loop.extent)]},
                parts=(loop.thread,),
            )
    return _with_warp(func, _with_empty(func, found))


def _with_empty(func: PrimFunc, axes: dict[str, _Axis]) -> dict[str, _Axis]:
    """Add the axes of loops without iterations; one thread executes the other statements."""
    new = dict(axes)
    for loop in walk(func.body):
        if not isinstance(loop, For) or loop.kind != "thread" or loop.thread in new:
            continue
        if not loop.thread.startswith("vthread"):
            name = loop.thread.replace(".", "_")
            new[loop.thread] = _Axis(loop.thread, loop_var(name, 1), as_expr(1), loop.uid)
    return new


def _with_warp(func: PrimFunc, axes: dict[str, _Axis]) -> dict[str, _Axis]:
    """Add or check the ``threadIdx.x`` axis of a kernel with warp-level instructions."""
    block = next((b for b in walk(func.body) if isinstance(b, Block) and _of_warp(b)), None)
    if block is None:
        return axes
    own = axes.get("threadIdx.x")
    if own is None:
        extent = as_expr(WARP)
        own = _Axis("threadIdx.x", loop_var("threadIdx_x", extent), extent, NO_UID)
    if const_value(own.extent) != WARP:
        raise WarpError(
            f"block {block.name!r} is tensorized with a warp-level instruction, which requires "
            f"threadIdx.x to have extent {WARP}; it has extent {to_text(own.extent)}",
            where=f"function {func.name!r}",
            hint=f"split the loops bound to threadIdx.x so that their extent is {WARP}",
            details={"extent": to_text(own.extent)},
            parts=("threadIdx.x", block.name),
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
            f"extent {to_text(axis.extent)} of {axis.tag} is not a constant",
            where=f"loop {loop.var.name!r} of {func.name!r}",
            hint="split the loop and bind an inner loop of constant extent",
            parts=(loop.var.name,),
        )
    if not free_vars(axis.extent) <= symbols:
        raise ThreadAxisError(
            f"extent {to_text(axis.extent)} of {axis.tag} is not known before the launch",
            where=f"loop {loop.var.name!r} of {func.name!r}",
            hint="the extent may depend only on the symbols of the function: shapes, strides, and "
            "integer parameters",
            parts=(loop.var.name,),
        )


def _terms(body: Stmt, axes: Mapping[str, _Axis]) -> dict[Var, SymInt]:
    """Return the variables of the axes by those of thread-bound loops, and 0 for single values."""
    found: dict[Var, SymInt] = {}
    for loop in walk(body):
        if isinstance(loop, For) and loop.kind == "thread" and not is_empty(loop):
            found[loop.var] = axes[loop.thread].var
        elif isinstance(loop, For) and _is_single(loop):
            found[loop.var] = 0
    return found


def _is_single(loop: For) -> bool:
    return loop.kind == "serial" and const_value(loop.extent) == 1


class _Unify:
    """A rewriter that removes thread-bound loops and annotates statements outside of some axes."""

    def __init__(
        self, axes: Mapping[str, _Axis], func: PrimFunc, replaced: AbstractSet[Var]
    ) -> None:
        self._axes = axes
        self._replaced = replaced
        self._function = func.name
        self._params = set(func.buffer_params)
        self._own: list[tuple[str, ...]] = []

    def own_axes(self) -> Attributes:
        """Return the attribute that names the axes around each allocation; empty if none is."""
        return ((OWN_AXES, tuple(self._own)),) if self._own else ()

    def statement(self, statement: Stmt, inside: frozenset[str]) -> Stmt:
        match statement:
            case For(kind="thread") if is_empty(statement):
                return Seq(())
            case For(kind="thread", thread=tag, body=body):
                return self.statement(body, inside | {tag})
            case For(var=variable, body=body) if _is_single(statement):
                if variable not in self._replaced:  # the extent of another axis is 1
                    body = substitute_in(body, {variable: 0})
                return self.statement(body, inside)
            case Alloc(buffer=buffer, body=body):
                self._own.append((buffer.name, *sorted(inside)))
                return replace(statement, body=self.statement(body, inside))
            case Store():
                return self._guarded(statement, statement.buffer, inside)
            case Block() if any(key == INTRINSIC for key, _ in statement.annotations):
                return self._warp(statement, inside)
            case _:
                below = tuple(self.statement(c, inside) for c in children(statement))
                return with_children(statement, below)

    def _warp(self, block: Block, inside: frozenset[str]) -> Stmt:
        """Annotate a warp-level instruction: one warp executes it with all its threads."""
        written = next(stores(block)).buffer
        if "threadIdx.x" in inside:
            raise WarpError(
                f"block {block.name!r} is tensorized with a warp-level instruction, but is inside "
                "a loop bound to threadIdx.x",
                where=f"function {self._function!r}",
                hint="the instruction uses threadIdx.x itself; bind the loop to threadIdx.y",
                parts=("threadIdx.x", block.name),
            )
        return self._guarded(block, written, inside | {"threadIdx.x"})

    def _guarded(self, store: Store | Block, buffer: Buffer, inside: frozenset[str]) -> Stmt:
        outside = [t for t, a in self._axes.items() if t not in inside and not _is_one(a)]
        blocks = [t for t in outside if t in BLOCK_AXES]
        if blocks and buffer in self._params:
            raise UnboundKernelError(
                f"{buffer.name!r} is written outside of the loop bound to {', '.join(blocks)}",
                where=f"function {self._function!r}",
                hint="move the write into this loop, or into a separate kernel; thread blocks do "
                "not synchronize",
                parts=(*blocks, buffer.name),
            )
        threads = tuple(t for t in outside if t in THREAD_AXES)
        if not threads:
            return store
        return Block(NO_UID, "once", (), (), (), store, threads=OneThread(threads))


def _is_one(axis: _Axis) -> bool:
    return const_value(axis.extent) == 1
