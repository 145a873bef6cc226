"""The ``storage_align`` primitive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.analysis import writes
from ....ir.loop.nodes import STORAGE_ALIGN, Block
from ....ir.loop.visit import replace_statement
from ...apply import Primitive, Rewrite
from ...checks import temporary_problems
from ...edit import Edit, with_attribute
from ...handles import BufferRef, Handle, block_ref
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State


@primitive(family="layout", returns=None, isolated=True)
@dataclass(frozen=True, slots=True)
class StorageAlign(Primitive):
    """Pad the stride of one dimension of a temporary, for example to avoid bank conflicts.

    Before::

        with block("fetch"):
            S[i, j] = A[i, j]  # S: 64 x 32, row stride 32 elements

    After (``axis=0, factor=32, offset=8``)::

        with block("fetch", storage_align=(0, 32, 8)):
            S[i, j] = A[i, j]  # row stride 40 elements

    Parameters
    ----------
    buffer : BufferRef
        The temporary.
    axis : int
        The dimension whose stride is padded.
    factor : int
        The modulus in elements. The new stride is the least number of elements that is at least the
        old stride and equals ``offset`` modulo ``factor``.
    offset : int
        The remainder of the new stride in elements.

    Notes
    -----
    Lowering of GPU kernels applies the padding after it has shrunk the buffer to its live part. CPU
    kernels ignore it. Cost: linear in the size of the function.

    Names elsewhere: TVM ``storage_align``; Halide ``align_storage``.

    References
    ----------
    TVM, ``tir.Schedule.storage_align``.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(x: Buffer[(64, 32), f32], y: Out[(64, 32), f32]):
    ...     s = alloc((64, 32), f32, scope="shared")
    ...     for i in range(64):
    ...         for j in range(32):
    ...             with block("fetch"):
    ...                 vi, vj = spatial(i), spatial(j)
    ...                 s[vi, vj] = x[vi, vj]
    ...     for k in range(64):
    ...         for l in range(32):
    ...             with block("y"):
    ...                 vk, vl = spatial(k), spatial(l)
    ...                 y[vk, vl] = s[vk, vl]
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> sch.storage_align("s", axis=0, factor=32, offset=8)
    >>> print(sch)
    @prim_func(scheduled=True)
    def f(x: Buffer[(64, 32), f32], y: Out[(64, 32), f32]):
        s = alloc((64, 32), f32, scope="shared")
        for i in range(64):
            for j in range(32):
                with block("fetch", storage_align=(0, 32, 8)):
                    vi, vj = spatial(i), spatial(j)
                    s[vi, vj] = x[vi, vj]
        for k in range(64):
            for l in range(32):
                with block("y"):
                    vk, vl = spatial(k), spatial(l)
                    y[vk, vl] = s[vk, vl]
    """

    class Requires(Requirement):
        """The requirements of ``storage_align``."""

        TEMPORARY = "the buffer is a temporary"
        INNER_AXIS = "the axis is one of the dimensions of the buffer, but not the last"
        VALID_ALIGNMENT = (
            "the factor is positive, the offset is in [0, factor), and both are multiples of the "
            "number of elements per byte"
        )
        ALIGNABLE_WRITERS = (
            "at least one block writes the buffer; every such block writes no other buffer and "
            "has no ``storage_align`` annotation"
        )

    buffer: BufferRef
    axis: int
    factor: int
    offset: int

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the buffer, the axis, the factor and the offset."""
        yield from temporary_problems(state, self.buffer, self.Requires.TEMPORARY)
        rank = state.buffer(self.buffer).rank
        if not 0 <= self.axis < rank - 1:
            yield Problem(
                self.Requires.INNER_AXIS,
                f"axis {self.axis} of {self.buffer.name!r} must be in [0, {rank - 1}): the buffer "
                f"has {rank} dimensions, and the stride of the last one is not padded",
                (self.buffer,),
                {"axis": self.axis, "rank": rank},
            )
        if self.factor < 1 or not 0 <= self.offset < self.factor:
            yield Problem(
                self.Requires.VALID_ALIGNMENT,
                f"offset {self.offset} must be in [0, factor={self.factor}), and the factor must "
                "be positive",
                (self.buffer,),
                {"factor": self.factor, "offset": self.offset},
            )
        per = state.buffer(self.buffer).dtype.per_byte
        if self.factor % per or self.offset % per:
            yield Problem(
                self.Requires.VALID_ALIGNMENT,
                f"factor {self.factor} and offset {self.offset} must be multiples of {per}: a byte "
                f"contains {per} elements of {self.buffer.name!r}",
                (self.buffer,),
                {"factor": self.factor, "offset": self.offset, "per_byte": per},
            )
        yield from self._writers(state)

    def _writers(self, state: State) -> Iterator[Problem]:
        found = _writing(state, self.buffer)
        if not found:
            yield Problem(
                self.Requires.ALIGNABLE_WRITERS,
                f"no block writes buffer {self.buffer.name!r}",
                (self.buffer,),
            )
        for block in found:
            others = {a.buffer.name for a in writes(block)} - {self.buffer.name}
            if others:
                names = ", ".join(sorted(others))
                message = f"block {block.name!r} also writes {names}"
            elif STORAGE_ALIGN in dict(block.annotations):
                message = f"block {block.name!r} already has a {STORAGE_ALIGN} annotation"
            else:
                continue
            yield Problem(
                self.Requires.ALIGNABLE_WRITERS,
                message,
                (block_ref(self.buffer.function, block), self.buffer),
            )

    def rewrite(self, state: State) -> Rewrite:
        """Annotate the blocks that write the buffer."""
        edit = Edit(state, self.buffer.function)
        body = edit.tree.function.body
        value = (self.axis, self.factor, self.offset)
        for block in _writing(state, self.buffer):
            annotations = with_attribute(block.annotations, STORAGE_ALIGN, value=value)
            body = replace_statement(body, block, replace(block, annotations=annotations))
        return edit.finish(body)

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield a padding of eight elements for a selected shared matrix, for 16-bit tiles."""
        if isinstance(selection, BufferRef):
            buffer = state.buffer(selection)
            if buffer.scope == "shared" and buffer.rank >= 2:
                yield cls(selection, buffer.rank - 2, 32, 8)


def _writing(state: State, ref: BufferRef) -> list[Block]:
    tree, buffer = state.tree(ref.function), state.buffer(ref)
    return [b for b in tree.outermost_blocks() if writes(b, buffer)]
