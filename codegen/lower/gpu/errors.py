"""What a kernel cannot be on a GPU, by name and with numbers."""

from __future__ import annotations

from ....ir.errors import TilewrightError


class UnboundKernelError(TilewrightError):
    """A kernel for a GPU has no loop bound to thread blocks or threads, or parts outside them."""

    title = "Kernel is not bound to threads"


class ThreadAxisError(TilewrightError):
    """Loops bound to one axis differ in extent, or the axis does not exist."""

    title = "Thread axis"


class LaunchLimitError(TilewrightError):
    """A launch has more threads or blocks than the GPU allows."""

    title = "Launch limit"


class SharedMemoryError(TilewrightError):
    """The shared memory of a thread block is more than the GPU has; the parts are listed."""

    title = "Shared memory"


class MemoryScopeError(TilewrightError):
    """A temporary lives where the threads that use it cannot see it."""

    title = "Memory scope"


class DivergentBarrierError(TilewrightError):
    """A barrier would be needed where not all threads of the block come by."""

    title = "Barrier in divergent control flow"


class WarpError(TilewrightError):
    """An operation of a warp stands where not all of its 32 threads come by together."""

    title = "Warp operation"


class KernelStatementError(TilewrightError):
    """A kernel for a GPU holds what only a CPU does."""

    title = "Not on a GPU"
