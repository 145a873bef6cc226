"""Errors of calls, compilation, sandboxed runs, and GPU lowering."""

from __future__ import annotations

from ..errors import ShapeMismatchError, TilewrightError


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


class UnsharedFunctionError(RunError):
    """A program for a sandbox process that calls a function which only this process knows."""

    title = "Unshared library function"


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
