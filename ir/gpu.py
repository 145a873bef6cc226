"""What GPUs allow: threads, grids and memory of a thread block, by compute capability."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from .target import Target

WARP: Final = 32
"""Threads that run in step and may shuffle."""

BLOCK_AXES: Final = ("blockIdx.x", "blockIdx.y", "blockIdx.z")
THREAD_AXES: Final = ("threadIdx.x", "threadIdx.y", "threadIdx.z")
VIRTUAL_AXES: Final = ("vthread", "vthread.x", "vthread.y", "vthread.z")
TAGS: Final = (*BLOCK_AXES, *THREAD_AXES, *VIRTUAL_AXES)
"""What a loop may be bound to."""


@dataclass(frozen=True, slots=True)
class GpuLimits:
    """Limits of one launch.

    Parameters
    ----------
    threads : int
        Threads of a block.
    axes : Mapping of str to int
        The largest extent of each ``blockIdx`` and ``threadIdx`` axis.
    shared : int
        Bytes of shared memory that a block gets without asking.
    shared_optin : int
        Bytes that it gets on request, at most.
    registers : int
        Registers of a thread, 4 bytes each.
    """

    threads: int
    axes: Mapping[str, int]
    shared: int
    shared_optin: int
    registers: int


_AXES: Final[Mapping[str, int]] = MappingProxyType(
    {
        "blockIdx.x": 2**31 - 1,
        "blockIdx.y": 65535,
        "blockIdx.z": 65535,
        "threadIdx.x": 1024,
        "threadIdx.y": 1024,
        "threadIdx.z": 64,
    }
)
_KIB: Final = 1024
_OPTIN: Final[Mapping[int, int]] = MappingProxyType(
    {75: 64, 80: 163, 86: 99, 87: 163, 89: 99, 90: 227, 100: 227, 103: 227, 120: 99, 121: 99}
)
"""KiB of shared memory on request (CUDA C++ Programming Guide, table of compute capabilities)."""


def limits_of(target: Target | None) -> GpuLimits:
    """Give the limits of a target; without a GPU target, those that every GPU keeps to.

    Examples
    --------
    >>> limits_of(Target("cuda", arch="sm_90a")).shared_optin
    232448
    >>> limits_of(None).axes["threadIdx.z"]
    64
    """
    known = target is not None and target.is_gpu
    optin = _OPTIN[target.capability] if known and target is not None else min(_OPTIN.values())
    return GpuLimits(1024, _AXES, 48 * _KIB, optin * _KIB, 255)
