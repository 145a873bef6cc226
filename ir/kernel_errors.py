"""Errors of scheduled kernels that cannot be lowered for their target."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..errors import Excerpt, Json, TilewrightError

if TYPE_CHECKING:  # compile workers load this module, but no programs
    from .identity import Uid
    from .loop.nodes import PrimFunc


class KernelProgramError(TilewrightError):
    """A scheduled kernel that cannot be lowered for its target.

    Parameters
    ----------
    message : str
        The problem, with the actual and the expected values.
    where : str
        The location: a function, loop, block or buffer.
    hint : str
        A suggested fix.
    details : Mapping[str, Json], optional
        The same information as data.
    parts : Sequence of str
        The names of the loops, blocks and buffers at fault, or the thread axes of loops.
    """

    title = "Invalid kernel"

    def __init__(
        self,
        message: str,
        *,
        where: str = "",
        hint: str = "",
        details: Mapping[str, Json] | None = None,
        parts: Sequence[str] = (),
    ) -> None:
        """Store the names; the excerpt is made when the error is displayed."""
        self.parts = tuple(parts)
        self.source: PrimFunc | None = None
        super().__init__(message, where=where, hint=hint, details=details)

    def excerpts(self) -> tuple[Excerpt, ...]:
        """Return the lines of the scheduled kernel, with the parts at fault underlined."""
        if self.source is None:
            return ()
        from .script.excerpt import excerpt  # loads the printer when an error is displayed

        made = excerpt(self.source, [], defined=list(_named(self.source, self.parts)))
        made = made or excerpt(self.source, [None])
        return () if made is None else (made,)


def _named(func: PrimFunc, names: Sequence[str]) -> Iterator[Uid]:
    """Yield the uids of loops, blocks and buffers by name, and of loops by thread axis."""
    from .loop.nodes import Block, For
    from .loop.visit import all_buffers, walk

    for statement in walk(func.body):
        if isinstance(statement, For):
            if statement.var.name in names or statement.thread in names:
                yield statement.uid
        elif isinstance(statement, Block) and statement.name in names:
            yield statement.uid
    yield from (b.uid for b in all_buffers(func) if b.name in names)


@contextmanager
def shown_in(func: PrimFunc) -> Generator[None]:
    """Add a kernel to the errors about it, so that they show its lines."""
    try:
        yield
    except KernelProgramError as error:
        error.source = error.source or func
        raise


class DivergentBarrierError(KernelProgramError):
    """A barrier in control flow that is divergent across the threads of a thread block."""

    title = "Divergent barrier"


class AsyncOperationError(KernelProgramError):
    """An operation that accesses memory after its issue, which no barrier waits for."""

    title = "Unsupported asynchronous operation"


class UnboundKernelError(KernelProgramError):
    """A GPU kernel without loops bound to threads, or with statements outside of them."""

    title = "Kernel without thread binding"


class MissingDTypeError(KernelProgramError):
    """An operation on elements of a dtype that no machine register holds."""

    title = "Dtype without a machine type"


class UnrolledCodeError(KernelProgramError):
    """Nested unrolled loops with so many iterations that their code would be too large."""

    title = "Too much unrolled code"


class ThreadAxisError(KernelProgramError):
    """Loops with different extents bound to the same thread axis, or an unknown thread axis."""

    title = "Invalid thread axis"


class LaunchLimitError(KernelProgramError):
    """A launch with more threads or thread blocks than the GPU allows."""

    title = "Launch limit exceeded"


class SharedMemoryError(KernelProgramError):
    """A thread block with more shared memory than the GPU allows; the buffers are listed."""

    title = "Shared memory limit exceeded"


class MemoryScopeError(KernelProgramError):
    """A buffer in a memory scope that is not visible to all threads that access it."""

    title = "Invalid memory scope"


class WarpError(KernelProgramError):
    """A warp operation in divergent control flow, or in a thread block of an unsupported shape."""

    title = "Invalid warp operation"


class KernelStatementError(KernelProgramError):
    """A statement that GPU kernels do not support."""

    title = "Unsupported statement in a GPU kernel"


class ShaderError(KernelProgramError):
    """A kernel that the shading language of the target cannot express."""

    title = "Unsupported kernel of a shader"


class MissingInstructionError(KernelProgramError):
    """A tensorized function whose tensor instruction the target does not have."""

    title = "Missing tensor instruction"
