"""Errors of calls, compilation, sandboxed runs, and GPU lowering."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..errors import Excerpt, Json, ShapeMismatchError, TilewrightError

if TYPE_CHECKING:  # compile workers load this module, but no programs
    from ..ir.identity import Uid
    from ..ir.loop.nodes import PrimFunc


class CallError(TilewrightError):
    """A call that does not match the signature of the function, or fails at run time."""

    title = "Call error"


class ArgumentCountError(CallError):
    """Too many or too few arguments."""

    title = "Wrong number of arguments"


class OutputNameError(CallError, KeyError):
    """A name that is not the name of an output."""

    title = "Invalid output name"


class ArgumentNameError(CallError):
    """A keyword argument whose name is not that of a parameter, or whose parameter has a value."""

    title = "Invalid argument name"


class ArgumentTypeError(CallError):
    """An argument that is not a tensor or not an integer, as its parameter requires."""

    title = "Wrong argument type"


class DTypeError(CallError):
    """An argument whose dtype differs from the dtype of its parameter."""

    title = "Wrong dtype"


class RankError(CallError):
    """An argument with more or fewer dimensions than its parameter."""

    title = "Wrong rank"


class ArgumentShapeError(CallError, ShapeMismatchError):
    """A dimension of an argument that differs from its annotation or from an equal symbol."""

    title = "Shape mismatch"


class StrideError(CallError):
    """An argument that is not compact in row-major order, or not strided as declared."""

    title = "Wrong strides"


class AlignmentError(CallError):
    """An argument whose address is not a multiple of the required alignment."""

    title = "Wrong alignment"


class ReadOnlyError(CallError):
    """A read-only argument of a parameter that the function writes."""

    title = "Read-only argument"


class AliasError(CallError):
    """A written argument that shares memory with another argument."""

    title = "Overlapping arguments"


class DeviceError(CallError):
    """An argument on another device than the function."""

    title = "Wrong device"


class FactError(CallError):
    """A fact assumed by the program that does not hold for these arguments."""

    title = "Violated assumption"


class CheckError(CallError):
    """A failed check inside the program, such as a ``match_cast``."""

    title = "Failed run-time check"


class SizeError(CallError):
    """A size computed from the shapes that is negative, overflows, or divides by zero."""

    title = "Invalid size"


class StateError(CallError):
    """A state that does not fit the executable, or values that do not fit the state."""

    title = "Invalid state"


class OutOfMemoryError(CallError):
    """A failed allocation of memory."""

    title = "Out of memory"


class StoppedError(CallError):
    """A call that was stopped in a loop of the graph."""

    title = "Stopped call"


class KernelError(CallError):
    """A kernel that reported an error: an index out of range, or a failed debug check."""

    title = "Kernel failure"


class LaunchError(CallError):
    """A kernel launch that the device rejected or aborted."""

    title = "Kernel launch failure"


class DeviceUnavailableError(TilewrightError):
    """A missing device, driver or package that a target requires; the message names it."""

    title = "Unavailable device"


class LibraryError(CallError):
    """A library function that returned an error code."""

    title = "Library call failure"


class CompileError(TilewrightError):
    """A failed code generation."""

    title = "Compilation failure"


class LLVMNotLoadedError(CompileError):
    """LLVM's library that the system could not load, for example because of a memory limit."""

    title = "LLVM not loaded"


class StaticSizeError(CompileError):
    """A tensor of constant shape with more bytes than an address can express."""

    title = "Tensor too large"


class WorkerDiedError(CompileError):
    """A compile worker that crashed twice on the same kernel."""

    title = "Compile worker crash"


class WorkerStartError(CompileError):
    """A compile worker that the system could not start; the message contains its reason."""

    title = "Compile worker not started"


class CompileTimeoutError(CompileError):
    """A kernel whose compilation exceeded the time limit."""

    title = "Compilation timeout"


class ProgramDepthError(CompileError):
    """A program that is nested too deeply to be compiled."""

    title = "Program nested too deeply"


class CompileCanceledError(CompileError):
    """A compilation that the caller canceled."""

    title = "Canceled compilation"


class RunError(TilewrightError):
    """A failed run in a sandbox process; the calling process is not affected."""

    title = "Run failure"


class RunFailedError(RunError):
    """A call that raised an error in the sandbox process."""


class RunStartError(RunError):
    """A sandbox process that the system could not start; the message contains its reason."""

    title = "Run not started"


class RunCrashedError(RunError):
    """A sandbox process that crashed or was killed."""

    title = "Run crash"


class RunTimeoutError(RunError):
    """A run that exceeded its time limit and was killed."""

    title = "Run timeout"


class RunMemoryError(RunError):
    """A run that exceeded the memory limit of its process."""

    title = "Run memory limit exceeded"


class RunCanceledError(RunError):
    """A run that the caller canceled; its process was killed."""

    title = "Canceled run"


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
        from ..ir.script.excerpt import excerpt  # loads the printer when an error is displayed

        made = excerpt(self.source, [], defined=list(_named(self.source, self.parts)))
        made = made or excerpt(self.source, [None])
        return () if made is None else (made,)


def _named(func: PrimFunc, names: Sequence[str]) -> Iterator[Uid]:
    """Yield the uids of loops, blocks and buffers by name, and of loops by thread axis."""
    from ..ir.loop.nodes import Block, For
    from ..ir.loop.visit import all_buffers, walk

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


class MissingInstructionError(KernelProgramError):
    """A tensorized function whose tensor instruction the target does not have."""

    title = "Missing tensor instruction"
