"""The shared memory of a thread block, from the loop IR after the passes of a launch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...ir.dtype import DType
from ...ir.kernel_errors import SharedMemoryError
from ...ir.loop.buffer_size import size_of
from ...ir.loop.nodes import Block, Buffer, PrimFunc
from ...ir.loop.thread_roles import Combined
from ...ir.loop.visit import loads, walk
from ...ir.sizes import storage_bytes
from ...ir.symbolic import const_value
from ...target.gpus import limits_of
from ...target.target import Target
from .threads import Threads

ALIGNMENT: Final = 16
"""The minimum alignment in bytes of a buffer in registers or shared memory."""

_WORD: Final = 4


def alignment_of(buffer: Buffer) -> int:
    """Return the alignment in bytes of a buffer in registers or shared memory."""
    return max(ALIGNMENT, buffer.dtype.alignment)


def rounded(size: int, alignment: int) -> int:
    """Return a size in bytes with the padding to a multiple of an alignment."""
    return -(-size // alignment) * alignment


def element_width(dtype: DType, target: Target | None) -> int:
    """Return the bytes of an element in shared memory; in a shader it has whole words.

    Examples
    --------
    >>> from tilewright.ir.dtype import f16
    >>> element_width(f16, Target("cuda")), element_width(f16, Target("webgpu"))
    (2, 4)
    """
    shader = target is not None and target.kind == "webgpu"
    return max(_WORD if shader else 1, -(-dtype.bits // 8))


def shared_memory(
    func: PrimFunc, buffers: Iterable[Buffer], threads: Threads, target: Target | None = None
) -> dict[str, int]:
    """Return the shared memory of a thread block: bytes by name of the allocation.

    Parameters
    ----------
    func : PrimFunc
        A function whose reductions across threads are combined.
    buffers : iterable of Buffer
        Its temporaries after the pass ``compact_thread_buffers``.
    threads : Threads
        The threads of a block.
    target : Target or None
        The target, which decides the width of elements.
    """
    found: dict[str, int] = {}
    for buffer in buffers:
        if buffer.scope == "shared":
            size = const_value(size_of(buffer)) or 0
            size *= element_width(buffer.dtype, target) // element_width(buffer.dtype, None)
            found[buffer.name] = rounded(size, alignment_of(buffer))
    for block in walk(func.body):
        if not isinstance(block, Block) or not isinstance(role := block.threads, Combined):
            continue
        dtypes = {load.buffer.name: load.buffer.dtype for load in loads(block.body)}
        for name in role.parts:
            size = partial_bytes(threads, role.axes, dtypes[name]) if name in dtypes else 0
            if size:
                found[partial_name(name)] = rounded(size, ALIGNMENT)
    return found


def partial_name(part: str) -> str:
    """Return the name of the shared memory of the partial results of a reduction."""
    return f"{part}s"


def partial_bytes(threads: Threads, axes: tuple[str, ...], dtype: DType) -> int:
    """Return the bytes of the partial results that the threads along some axes exchange."""
    return storage_bytes(threads.slots(axes), dtype)


def check_shared(name: str, parts: dict[str, int], target: Target) -> None:
    """Check the shared memory of a thread block.

    Parameters
    ----------
    name : str
        The name of the kernel.
    parts : dict of str to int
        The bytes of each allocation.
    target : Target
        The target.

    Raises
    ------
    SharedMemoryError
        If the allocations exceed the limit of the target; the message lists them.
    """
    needed, limit = sum(parts.values()), limits_of(target).shared_optin
    if needed > limit:
        listed = " + ".join(
            f"{part} {size}" for part, size in sorted(parts.items(), key=lambda item: -item[1])
        )
        raise SharedMemoryError(
            f"a thread block needs {needed} bytes of shared memory ({listed}); the limit of "
            f"{target.name} is {limit}",
            where=f"kernel {name!r}",
            hint="use smaller tiles, or keep a buffer in scope 'local' or 'global'",
            details={"bytes": needed, "limit": limit, "parts": dict(parts)},
            parts=tuple(parts),
        )
