"""The errors of calling and of compiling, each with its name."""

from __future__ import annotations

from ...ir.errors import TilewrightError


class CallError(TilewrightError):
    """A call does not fit the function that is called."""

    title = "Call error"


class ArgumentCountError(CallError):
    """Too many or too few arguments."""

    title = "Wrong number of arguments"


class ArgumentTypeError(CallError):
    """An argument is neither a tensor nor an integer, as its parameter asks."""

    title = "Wrong kind of argument"


class DTypeError(CallError):
    """An argument's elements are of another type than the parameter's."""

    title = "Wrong dtype"


class RankError(CallError):
    """An argument has more or fewer dimensions than the parameter."""

    title = "Wrong rank"


class ShapeMismatchError(CallError):
    """A dimension is not what the annotation says, or two that are one symbol differ."""

    title = "Shape mismatch"


class StrideError(CallError):
    """An argument's elements do not lie one after the other in row-major order."""

    title = "Wrong strides"


class AlignmentError(CallError):
    """An argument's address is no multiple of its element size."""

    title = "Wrong alignment"


class ReadOnlyError(CallError):
    """An argument that the function writes may not be written."""

    title = "Read-only argument"


class AliasError(CallError):
    """An argument that is written shares memory with another one."""

    title = "Arguments overlap"


class DeviceError(CallError):
    """An argument lies on another device than the function runs on."""

    title = "Wrong device"


class FactError(CallError):
    """A fact that the program rests on does not hold for these arguments."""

    title = "Assumption violated"


class CheckError(CallError):
    """A check inside the program, such as a ``match_cast``, fails."""

    title = "Run-time check failed"


class SizeError(CallError):
    """A size that the shapes lead to is negative, too large to count, or divided by zero."""

    title = "Impossible size"


class OutOfMemoryError(CallError):
    """Memory is exhausted."""

    title = "Out of memory"


class KernelError(CallError):
    """A kernel stopped: an index read from memory is out of range, or a debug guard fired."""

    title = "Kernel failed"


class LaunchError(CallError):
    """A kernel does not start on its device, or stops there."""

    title = "Kernel launch failed"


class DeviceUnavailableError(TilewrightError):
    """There is no device, driver or package that a target needs; the message says which."""

    title = "Device unavailable"


class LibraryError(CallError):
    """A library function is unknown, or reports a failure."""

    title = "Library call failed"


class CompileError(TilewrightError):
    """Code generation did not come to its end."""

    title = "Compilation failed"


class WorkerDiedError(CompileError):
    """A compile worker ended in the middle of a kernel, twice."""

    title = "Compile worker died"


class CompileTimeoutError(CompileError):
    """A kernel took longer than allowed to compile."""

    title = "Compilation timed out"


class CompileCancelledError(CompileError):
    """Somebody cancelled the compilation."""

    title = "Compilation cancelled"


class RunError(TilewrightError):
    """A run in a process of its own did not come to its end; this process is unharmed."""

    title = "Run failed"


class RunFailedError(RunError):
    """The program refused the call, in the process that ran it."""


class RunCrashedError(RunError):
    """The process that ran a program ended: a crash, or somebody killed it."""

    title = "Run crashed"


class RunTimeoutError(RunError):
    """A run took longer than it may, and was ended."""

    title = "Run timed out"


class RunMemoryError(RunError):
    """A run needed more memory than its process may have."""

    title = "Run out of memory"


class RunCancelledError(RunError):
    """Somebody cancelled a run; its process is gone."""

    title = "Run cancelled"
