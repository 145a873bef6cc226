"""GPU limits by compute capability: threads, grid extents, shared memory, registers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from . import webgpu
from .cpus import Cpu
from .target import Target

WARP: Final = 32
"""The number of threads of a warp."""

THREAD: Final = Cpu("gpu", "", 128, 255)
"""One thread: its widest load or store is 128 bits."""

BLOCK_AXES: Final = ("blockIdx.x", "blockIdx.y", "blockIdx.z")
THREAD_AXES: Final = ("threadIdx.x", "threadIdx.y", "threadIdx.z")
VIRTUAL_AXES: Final = ("vthread", "vthread.x", "vthread.y", "vthread.z")
TAGS: Final = (*BLOCK_AXES, *THREAD_AXES, *VIRTUAL_AXES)
"""The thread tags that a loop may be bound to."""


TRIPLE: Final = "nvptx64-nvidia-cuda"
"""LLVM's name of NVIDIA GPUs."""

STATIC_SHARED: Final = 48 * 1024
"""Bytes of shared memory that a kernel may declare statically; more is requested at the launch."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU as LLVM names it.

    Examples
    --------
    >>> resolve_gpu(Target("cuda", arch="sm_90a"))
    Gpu(name='sm_90a', features='+ptx80')
    """

    name: str
    features: str


def resolve_gpu(target: Target) -> Gpu:
    """Return LLVM's name of a target's GPU, with the oldest PTX version that supports it.

    Older PTX versions load on older drivers.
    """
    return Gpu(target.arch, "+ptx80" if target.capability < 100 else "+ptx88")


@dataclass(frozen=True, slots=True)
class GpuLimits:
    """The limits of one kernel launch.

    Parameters
    ----------
    threads : int
        Maximum number of threads per thread block.
    axes : Mapping of str to int
        Maximum extent of each ``blockIdx`` and ``threadIdx`` axis.
    shared : int
        Shared memory per thread block without opt-in, in bytes.
    shared_optin : int
        Maximum shared memory per thread block with opt-in, in bytes.
    registers : int
        Maximum number of 4-byte registers per thread.
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
"""Opt-in shared memory in KiB (CUDA C++ Programming Guide, table of compute capabilities)."""


WEBGPU: Final = GpuLimits(
    webgpu.INVOCATIONS, webgpu.AXES, webgpu.WORKGROUP_STORAGE, webgpu.WORKGROUP_STORAGE, 255
)
"""The limits of every implementation of WebGPU."""


def limits_of(target: Target | None) -> GpuLimits:
    """Return the limits of a GPU target; for CPUs and None, the minimum over all CUDA GPUs.

    Examples
    --------
    >>> limits_of(Target("cuda", arch="sm_90a")).shared_optin
    232448
    >>> limits_of(Target("webgpu")).threads
    256
    >>> limits_of(None).axes["threadIdx.z"]
    64
    """
    if target is not None and target.kind == "webgpu":
        return WEBGPU
    known = target is not None and target.is_cuda
    optin = _OPTIN[target.capability] if known and target is not None else min(_OPTIN.values())
    return GpuLimits(1024, _AXES, STATIC_SHARED, optin * _KIB, 255)
