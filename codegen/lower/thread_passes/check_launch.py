"""Checks of a kernel against the launch limits, shared memory, and warps of a GPU."""

from __future__ import annotations

from math import prod

from ....ir.kernel_errors import WarpError
from ....ir.symbolic import Expr, Var, const_value
from ....ir.thread.function import ThreadFunc
from ....ir.thread.nodes import Allocate, Body, If, Let, Loop, MachineOp, Reg, Stmt, Value, While
from ....ir.thread.types import SHARED_POINTER, VectorType
from ....ir.thread.visit import (
    bodies,
    statement_terms,
    statement_values,
    value_terms,
    walk,
    walk_values,
)
from ....schedules.launch.launch_limits import check_axis, check_threads
from ....schedules.launch.lowering_pass import GPU, ThreadPass
from ....schedules.launch.shared_memory import check_shared, rounded
from ....target.gpus import THREAD_AXES, WARP
from ....target.target import Target


class CheckLaunch(ThreadPass):
    """Check the launch of a kernel: thread and grid sizes, shared memory, and whole warps.

    Raises
    ------
    LaunchLimitError
        If the extent of an axis, or the number of threads per block, exceeds its limit.
    SharedMemoryError
        If the shared memory of a thread block exceeds its limit.
    WarpError
        If not all threads of a warp execute a warp-level operation.
    """

    __slots__ = ()

    targets = GPU

    def run(self, kernel: ThreadFunc, target: Target) -> ThreadFunc:
        """Return the kernel unchanged, after the checks."""
        axes = () if kernel.launch is None else kernel.launch.axes
        for axis in axes:
            check_axis(kernel.name, axis, target)
        check_threads(kernel.name, axes, target)
        check_shared(kernel.name, shared_parts(kernel.body), target)
        check_warps(kernel)
        return kernel


def shared_parts(body: Body) -> dict[str, int]:
    """Return the shared memory of a kernel: bytes by name of the allocation."""
    found: dict[str, int] = {}
    for statement in walk(body):
        if isinstance(statement, Allocate) and statement.reg.type == SHARED_POINTER:
            size = rounded(statement.size, statement.alignment)
            found[statement.reg.name] = found.get(statement.reg.name, 0) + size
    return found


def check_warps(kernel: ThreadFunc) -> None:
    """Check that all threads of a warp execute each warp-level operation.

    Raises
    ------
    WarpError
        If a thread block is not a whole number of warps, or control flow around a warp-level
        operation is divergent within a warp.
    """
    axes = () if kernel.launch is None else kernel.launch.axes
    sizes = {a.tag: const_value(a.extent) or 1 for a in axes if a.tag in THREAD_AXES}
    operations = [s for s in walk(kernel.body) if isinstance(s, MachineOp) and _of_warp(s)]
    if operations and prod(sizes.values()) % WARP:
        raise WarpError(
            f"{operations[0].operation.name} requires the threads per block to be a multiple of "
            f"{WARP} (the warp size); a block has {prod(sizes.values())}",
            where=f"kernel {kernel.name!r}",
            hint=f"split the bound loops so that a block has a multiple of {WARP} threads",
            details={"threads": prod(sizes.values())},
            parts=(*sizes, operations[0].source.name),
        )
    inside = frozenset(a.var for a in axes if _varies_in_warp(a.tag, sizes))
    _check_together(kernel.body, inside, kernel.name, None)


def _of_warp(statement: MachineOp) -> bool:
    return statement.operation.scope == "warp"


def _varies_in_warp(tag: str, sizes: dict[str, int]) -> bool:
    """Return whether the threads of one warp differ in their index along an axis."""
    if tag not in THREAD_AXES or sizes.get(tag, 1) == 1:
        return False
    below = prod(sizes.get(t, 1) for t in THREAD_AXES[: THREAD_AXES.index(tag)])
    return below % WARP != 0


def _check_together(body: Body, inside: frozenset[Var], name: str, split: Stmt | None) -> None:
    for statement in body:
        if isinstance(statement, MachineOp) and _of_warp(statement) and split is not None:
            source = statement.source.name or "(unnamed)"
            raise WarpError(
                f"{statement.operation.name} in block {source!r} requires all {WARP} threads of a "
                "warp, but control flow is divergent there",
                where=f"kernel {name!r}",
                hint="make the enclosing condition or loop bounds uniform across the warp, and "
                "guard the use of the result instead",
                details={"operation": statement.operation.name},
                parts=(source,),
            )
        if isinstance(statement, Let) and _differs(statement_values(statement), (), inside):
            inside |= {statement.var}
        deciding = statement_values(statement) if isinstance(statement, If | While) else ()
        terms = statement_terms(statement) if isinstance(statement, Loop) else ()
        diverges = _differs(deciding, terms, inside)
        for part in bodies(statement):
            _check_together(part, inside, name, split or (statement if diverges else None))


def _differs(values: tuple[Value, ...], terms: tuple[Expr, ...], inside: frozenset[Var]) -> bool:
    """Return whether values or terms may differ between the threads of a warp."""
    for value in walk_values(values):
        if isinstance(value, Reg) and isinstance(value.type, VectorType):
            return True
        if any(not t.free.isdisjoint(inside) for t in value_terms(value)):
            return True
    return any(not t.free.isdisjoint(inside) for t in terms)
