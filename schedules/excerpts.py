"""Excerpts of a program around the targets of handles, for error messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..errors import Excerpt
from ..ir.graph.nodes import GraphFunc
from ..ir.loop.nodes import PrimFunc
from ..ir.module import Module
from .handles import BindingRef, BlockRef, BufferRef, FunctionRef, Handle, LoopRef


def excerpts_of(module: Module, where: Sequence[Handle]) -> tuple[Excerpt, ...]:
    """Return one excerpt per function, in which the targets of handles are underlined.

    If the handles contain a block or a loop, the uses of a buffer inside it are underlined instead
    of the definition of the buffer. A block is preferred to a loop.

    Parameters
    ----------
    module : Module
        The program.
    where : sequence of Handle
        The parts to underline. Handles without a target are ignored; if a function contains none
        of the targets, its name is underlined.
    """
    return tuple(_excerpts(module, where))


def _excerpts(module: Module, where: Sequence[Handle]) -> Iterator[Excerpt]:
    for name in dict.fromkeys(ref.function for ref in where):
        function = module.functions.get(name)
        if function is not None:
            found = _excerpt(module, function, [ref for ref in where if ref.function == name])
            if found is not None:
                yield found


def _excerpt(
    module: Module, function: PrimFunc | GraphFunc, refs: Sequence[Handle]
) -> Excerpt | None:
    """Return the excerpt for the handles of one function; its first line if none has a target."""
    from ..ir.script.excerpt import excerpt  # loads the printer only when an error is displayed

    buffers = [ref.uid for ref in refs if isinstance(ref, BufferRef)]
    others = [ref.uid for ref in refs if isinstance(ref, LoopRef | BlockRef | BindingRef)]
    header = [None for ref in refs if isinstance(ref, FunctionRef)]
    found = excerpt(
        function, [*header, *buffers], module=module, within=_within(refs), defined=others
    )
    return found or excerpt(function, [None], module=module)


def _within(refs: Sequence[Handle]) -> int | None:
    """Return the uid of the last block, else of the last loop, else None."""
    for kind in (BlockRef, LoopRef):
        uids = [ref.uid for ref in refs if isinstance(ref, kind)]
        if uids:
            return uids[-1]
    return None
