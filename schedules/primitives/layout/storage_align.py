"""Storage align: rows of a shared or local buffer lie apart by a chosen remainder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.analysis import writes
from ....ir.loop.nodes import Block
from ....ir.loop.visit import replace_statement
from ...common import temporary_problems
from ...edit import Edit, with_attribute
from ...primitive import Primitive, Rewrite, primitive
from ...problem import Problem
from ...refs import BufferRef, Ref
from ...state import State

STORAGE_ALIGN = "storage_align"
"""The annotation of the blocks that write the buffer; its value is (axis, factor, offset)."""


@primitive(family="layout", returns=None)
@dataclass(frozen=True, slots=True)
class StorageAlign(Primitive):
    """Pad the rows of a temporary, so that accesses down a column fall into different banks.

    Before::

        with block("fetch"):
            S[i, j] = A[i, j]  # S: 64 x 32, rows 32 elements apart

    After (``axis=0, factor=32, offset=8``)::

        with block("fetch", storage_align=(0, 32, 8)):
            S[i, j] = A[i, j]  # rows 40 elements apart

    Parameters
    ----------
    buffer : BufferRef
        The temporary.
    axis : int
        The dimension whose stride is padded.
    factor, offset : int
        The stride becomes the next number of elements with this remainder.

    Requires
    --------
    1. The buffer is a temporary.
    2. The axis is one of its dimensions, but not the last.
    3. The factor is positive, and the offset at least 0 and less than the factor.
    4. The buffer is written by blocks that write nothing else, and none of them says so already.

    Notes
    -----
    Lowering lays the padded rows out once it knows how much of the buffer is live. Source: TVM's
    ``storage_align``.
    """

    buffer: BufferRef
    axis: int
    factor: int
    offset: int

    def structural(self, state: State) -> Iterator[Problem]:
        """Check buffer, axis and numbers."""
        yield from temporary_problems(state, self.buffer, 1)
        rank = state.buffer(self.buffer).rank
        if not 0 <= self.axis < rank - 1:
            yield Problem(
                2,
                f"axis {self.axis} of {self.buffer.name!r} has no stride to pad; of its {rank} "
                "dimensions all but the last have",
                (self.buffer,),
                {"axis": self.axis, "rank": rank},
            )
        if self.factor < 1 or not 0 <= self.offset < self.factor:
            yield Problem(
                3,
                f"no number has remainder {self.offset} by {self.factor}",
                (self.buffer,),
                {"factor": self.factor, "offset": self.offset},
            )
        yield from self._writers(state)

    def _writers(self, state: State) -> Iterator[Problem]:
        found = _writing(state, self.buffer)
        if not found:
            yield Problem(4, f"nobody writes {self.buffer.name!r}", (self.buffer,))
        for block in found:
            others = {a.buffer.name for a in writes(block)} - {self.buffer.name}
            if others:
                names = ", ".join(sorted(others))
                message = f"block {block.name!r} writes {names} as well"
            elif STORAGE_ALIGN in dict(block.annotations):
                message = f"block {block.name!r} aligns {self.buffer.name!r} already"
            else:
                continue
            yield Problem(4, message, (self.buffer,))

    def rewrite(self, state: State) -> Rewrite:
        """Leave a note on the writing blocks."""
        edit = Edit(state, self.buffer.function)
        body = edit.tree.function.body
        value = (self.axis, self.factor, self.offset)
        for block in _writing(state, self.buffer):
            notes = with_attribute(block.annotations, STORAGE_ALIGN, value=value)
            body = replace_statement(body, block, replace(block, annotations=notes))
        return edit.finish(body)

    @classmethod
    def suggest(cls, state: State, selection: Ref) -> Iterator[Primitive]:
        """Eight elements more for a shared matrix, as 16-bit tiles want."""
        if isinstance(selection, BufferRef):
            buffer = state.buffer(selection)
            if buffer.scope == "shared" and buffer.rank >= 2:
                yield cls(selection, buffer.rank - 2, 32, 8)


def _writing(state: State, ref: BufferRef) -> list[Block]:
    tree, buffer = state.tree(ref.function), state.buffer(ref)
    return [b for b in tree.leaf_blocks() if writes(b, buffer)]
