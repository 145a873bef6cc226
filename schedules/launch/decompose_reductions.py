"""Reductions split into a separate initialization and an update."""

from __future__ import annotations

from ...ir.loop.decompose import decomposed
from ...ir.loop.nodes import PrimFunc
from ...target.target import Target
from .lowering_pass import Pass


class DecomposeReductions(Pass):
    """Replace the ``init`` of each reduction block by a separate initialization nest.

    Before::
        for k in range(n):
            block C: vi = i; vk = k
                init: C[vi] = 0
                C[vi] = C[vi] + A[vi, vk]
    After::
        block C_init: vi = i
            C[vi] = 0
        for k in range(n):
            block C: vi = i; vk = k
                C[vi] = C[vi] + A[vi, vk]

    A spatial loop whose extent depends on a reduction loop gets its largest extent in the
    initialization.
    """

    def run(self, func: PrimFunc, target: Target) -> PrimFunc:
        """Decompose all reductions."""
        del target
        return decomposed(func)
