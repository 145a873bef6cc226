"""Whether a target has the tensor instructions that a scheduled function asks for."""

from __future__ import annotations

from ...ir.errors import TilewrightError
from ...ir.loop.nodes import INTRINSIC, Block, PrimFunc
from ...ir.loop.visit import walk
from ...ir.target import Target, provides
from ...schedules.intrinsics.registry import get_intrinsic
from ..cpu import host_features


class MissingInstructionError(TilewrightError):
    """A function was tensorized with an instruction that the target lacks."""

    title = "The target lacks the instruction"


def check_instructions(func: PrimFunc, target: Target) -> None:
    """Refuse a function that the target cannot perform.

    Raises
    ------
    MissingInstructionError
        If a block is annotated with an instruction that needs what the target has not.
    """
    for block in walk(func.body):
        name = dict(block.annotations).get(INTRINSIC) if isinstance(block, Block) else None
        if not isinstance(block, Block) or not isinstance(name, str):
            continue
        lacking = [need for need in get_intrinsic(name).needs if not _has(target, need)]
        if lacking:
            raise MissingInstructionError(
                f"{target} has no {', '.join(lacking)}, which {name} needs",
                where=f"block {block.name!r} of function {func.name!r}",
                hint="compile for a target that has it, or tensorize with one of the target's own;"
                f" sch.unannotate(sch.get_block({block.name!r}), 'intrinsic') leaves plain loops",
            )


def _has(target: Target, need: str) -> bool:
    answer = provides(target, need)
    return need in host_features() if answer is None else answer
