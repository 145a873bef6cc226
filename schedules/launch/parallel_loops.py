"""Parallel loops, which GPU kernels do not support."""

from __future__ import annotations

from ...ir.kernel_errors import KernelStatementError
from ...ir.loop.nodes import For


def check_parallel_loop(loop: For, function: str) -> None:
    """Check that a loop of a GPU kernel is not parallel.

    Raises
    ------
    KernelStatementError
        If it is parallel.
    """
    if loop.kind == "parallel":
        raise KernelStatementError(
            f"loop {loop.var.name!r} is a parallel loop, which a GPU kernel does not support",
            where=f"function {function!r}",
            hint="bind it to blockIdx.x or threadIdx.x instead",
            parts=(loop.var.name,),
        )
