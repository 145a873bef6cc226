"""The limits of a launch: threads along an axis and per thread block, and the grid."""

from __future__ import annotations

from math import prod

from ...ir.kernel_errors import LaunchLimitError
from ...ir.symbolic import const_value
from ...ir.thread.function import ThreadAxis
from ...target.gpus import THREAD_AXES, limits_of
from ...target.target import Target


def check_axis(name: str, axis: ThreadAxis, target: Target) -> None:
    """Check the extent of an axis; a symbolic one is checked at the launch.

    Raises
    ------
    LaunchLimitError
        If it exceeds the limit of the target.
    """
    size, limit = const_value(axis.extent), limits_of(target).axes[axis.tag]
    if size is not None and size > limit:
        raise LaunchLimitError(
            f"{axis.tag} has extent {size}; the limit of {target.name} is {limit}",
            where=f"kernel {name!r}",
            hint="split the loop and bind an inner loop of smaller extent",
            details={"axis": axis.tag, "extent": size, "limit": limit},
            parts=(axis.tag,),
        )


def check_threads(name: str, axes: tuple[ThreadAxis, ...], target: Target) -> None:
    """Check the number of threads of a thread block.

    Raises
    ------
    LaunchLimitError
        If it exceeds the limit of the target.
    """
    sizes = {a.tag: const_value(a.extent) or 1 for a in axes if a.tag in THREAD_AXES}
    threads, limit = prod(sizes.values()), limits_of(target).threads
    if threads > limit:
        parts = " * ".join(f"{tag} {size}" for tag, size in sizes.items())
        raise LaunchLimitError(
            f"a thread block has {parts} = {threads} threads; the limit of {target.name} is "
            f"{limit}",
            where=f"kernel {name!r}",
            hint="split one of the bound loops and bind an inner loop of smaller extent",
            details={"threads": threads, "limit": limit},
            parts=tuple(sizes),
        )
