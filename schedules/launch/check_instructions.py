"""Check that a target has the tensor instructions of a scheduled function."""

from __future__ import annotations

from ...ir.kernel_errors import MissingInstructionError
from ...ir.loop.nodes import Block, PrimFunc
from ...ir.loop.visit import walk
from ...target import host
from ...target.target import Target, provides
from ..intrinsics.registry import intrinsic_of
from .lowering_pass import Pass


class CheckInstructions(Pass):
    """Reject a function that was tensorized with an instruction that the target lacks.

    Raises
    ------
    MissingInstructionError
        If a block is annotated with an instruction whose required features the target lacks.
    """

    def run(self, func: PrimFunc, target: Target) -> PrimFunc:
        """Return the function unchanged, after the check."""
        for block in walk(func.body):
            intrinsic = intrinsic_of(block) if isinstance(block, Block) else None
            if not isinstance(block, Block) or intrinsic is None:
                continue
            lacking = [need for need in intrinsic.needs if not _has(target, need)]
            if lacking:
                raise MissingInstructionError(
                    f"instruction {intrinsic.name} requires {', '.join(lacking)}, which target "
                    f"{target} lacks",
                    where=f"block {block.name!r} of function {func.name!r}",
                    hint="compile for a target with these features, or tensorize with an "
                    "instruction of this target; "
                    f"sch.unannotate(sch.get_block({block.name!r}), 'intrinsic') restores plain "
                    "loops",
                    parts=(block.name,),
                )
        return func


def _has(target: Target, need: str) -> bool:
    answer = provides(target, need)
    return need in host.host_features() if answer is None else answer
