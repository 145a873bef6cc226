"""Checks of a kernel against the launch limits, shared memory, and warps of a GPU."""

from __future__ import annotations

from math import prod

from ....ir.kernel_errors import LaunchLimitError, SharedMemoryError, WarpError
from ....ir.symbolic import Expr, Var, const_value
from ....ir.thread.function import ThreadAxis, ThreadFunc
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
from ....schedules.launch.lowering_pass import GPU, ThreadPass
from ....target.gpus import THREAD_AXES, WARP, limits_of
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
        check_sizes(kernel.name, () if kernel.launch is None else kernel.launch.axes, target)
        check_shared(kernel, target)
        check_warps(kernel)
        return kernel


def check_sizes(name: str, axes: tuple[ThreadAxis, ...], target: Target) -> None:
    """Check a launch against the limits of a GPU.

    Raises
    ------
    LaunchLimitError
        If the extent of an axis, or the number of threads per block, exceeds its limit.
    """
    limits = limits_of(target)
    for axis in axes:
        size, limit = const_value(axis.extent), limits.axes[axis.tag]
        if size is not None and size > limit:
            raise LaunchLimitError(
                f"{axis.tag} has extent {size}; the limit of {target.arch} is {limit}",
                where=f"kernel {name!r}",
                hint="split the loop and bind an inner loop of smaller extent",
                details={"axis": axis.tag, "extent": size, "limit": limit},
                parts=(axis.tag,),
            )
    sizes = {a.tag: const_value(a.extent) or 1 for a in axes if a.tag in THREAD_AXES}
    total = prod(sizes.values())
    if total > limits.threads:
        parts = " * ".join(f"{tag} {size}" for tag, size in sizes.items())
        raise LaunchLimitError(
            f"a thread block has {parts} = {total} threads; the limit of {target.arch} is "
            f"{limits.threads}",
            where=f"kernel {name!r}",
            hint="split one of the bound loops and bind an inner loop of smaller extent",
            details={"threads": total, "limit": limits.threads},
            parts=tuple(sizes),
        )


def shared_parts(body: Body) -> dict[str, int]:
    """Return the shared memory of a kernel: bytes by name of the allocation."""
    found: dict[str, int] = {}
    for statement in walk(body):
        if isinstance(statement, Allocate) and statement.reg.type == SHARED_POINTER:
            rounded = -(-statement.size // statement.alignment) * statement.alignment
            found[statement.reg.name] = found.get(statement.reg.name, 0) + rounded
    return found


def check_shared(kernel: ThreadFunc, target: Target) -> None:
    """Check the shared memory of a thread block against the limit of a GPU.

    Raises
    ------
    SharedMemoryError
        If the allocations exceed the limit; the message lists them.
    """
    parts, limit = shared_parts(kernel.body), limits_of(target).shared_optin
    total = sum(parts.values())
    if total > limit:
        listed = " + ".join(
            f"{name} {size}" for name, size in sorted(parts.items(), key=lambda item: -item[1])
        )
        raise SharedMemoryError(
            f"a thread block needs {total} bytes of shared memory ({listed}); the limit of "
            f"{target.arch} is {limit}",
            where=f"kernel {kernel.name!r}",
            hint="use smaller tiles, or keep a buffer in scope 'local' or 'global'",
            details={"bytes": total, "limit": limit, "parts": dict(parts)},
            parts=tuple(parts),
        )


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
