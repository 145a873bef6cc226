"""What a launch has to keep to: threads, blocks, shared memory, and warps that stay together."""

from __future__ import annotations

from math import prod

from ....ir.gpu import THREAD_AXES, limits_of
from ....ir.symbolic import const_value
from ....ir.target import Target
from ....ir.thread.nodes import Allocate, Body, ThreadAxis, ThreadFunc
from ....ir.thread.types import SHARED_POINTER
from ....ir.thread.visit import walk
from .errors import LaunchLimitError, SharedMemoryError


def check_launch(name: str, axes: tuple[ThreadAxis, ...], target: Target) -> None:
    """Compare a launch with the limits of a GPU.

    Raises
    ------
    LaunchLimitError
        If an axis, or all threads together, are above the limit.
    """
    limits = limits_of(target)
    for axis in axes:
        size, limit = const_value(axis.extent), limits.axes[axis.tag]
        if size is not None and size > limit:
            raise LaunchLimitError(
                f"{axis.tag} has extent {size}, and {target.arch} allows {limit}",
                where=f"kernel {name!r}",
                hint="split the loop further before binding it",
                details={"axis": axis.tag, "extent": size, "limit": limit},
            )
    sizes = {a.tag: const_value(a.extent) or 1 for a in axes if a.tag in THREAD_AXES}
    total = prod(sizes.values())
    if total > limits.threads:
        parts = " * ".join(f"{tag} {size}" for tag, size in sizes.items())
        raise LaunchLimitError(
            f"a block has {parts} = {total} threads, and {target.arch} allows {limits.threads}",
            where=f"kernel {name!r}",
            hint="bind a shorter loop to one of the axes",
            details={"threads": total, "limit": limits.threads},
        )


def shared_parts(body: Body) -> dict[str, int]:
    """Give the shared memory of a kernel: bytes by the name of what they are for."""
    found: dict[str, int] = {}
    for statement in walk(body):
        if isinstance(statement, Allocate) and statement.reg.type == SHARED_POINTER:
            rounded = -(-statement.size // statement.alignment) * statement.alignment
            found[statement.reg.name] = found.get(statement.reg.name, 0) + rounded
    return found


def check_shared(kernel: ThreadFunc, target: Target) -> None:
    """Add up the shared memory of a block, and compare it with what the GPU has.

    Raises
    ------
    SharedMemoryError
        If it is more; the message lists the parts.
    """
    parts, limit = shared_parts(kernel.body), limits_of(target).shared_optin
    total = sum(parts.values())
    if total > limit:
        listed = " + ".join(
            f"{name} {size}" for name, size in sorted(parts.items(), key=lambda item: -item[1])
        )
        raise SharedMemoryError(
            f"a block needs {total} bytes of shared memory ({listed}), and {target.arch} has "
            f"{limit}",
            where=f"kernel {kernel.name!r}",
            hint="use smaller tiles, or keep a buffer in scope 'local' or 'global'",
            details={"bytes": total, "limit": limit, "parts": dict(parts)},
        )
