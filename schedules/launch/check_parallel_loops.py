"""Check that kernels for GPUs have no parallel loops."""

from __future__ import annotations

from ...ir.kernel_errors import KernelStatementError
from ...ir.loop.nodes import For, PrimFunc
from ...ir.loop.visit import walk
from ...target.target import Target
from .lowering_pass import GPU, Pass


class CheckParallelLoops(Pass):
    """Reject kernels with a parallel loop, whose iterations no thread of a GPU shares.

    The check does not depend on whether a later pass removes the loop because it has no iterations.

    Raises
    ------
    KernelStatementError
        If a loop is parallel.
    """

    targets = GPU

    def run(self, func: PrimFunc, target: Target) -> PrimFunc:
        """Return the function unchanged, after the check."""
        del target
        for loop in walk(func.body):
            if isinstance(loop, For) and loop.kind == "parallel":
                name = loop.var.name
                raise KernelStatementError(
                    f"loop {name!r} is a parallel loop, which a GPU kernel does not support",
                    where=f"function {func.name!r}",
                    hint="bind it to blockIdx.x or threadIdx.x instead",
                    parts=(name,),
                )
        return func
