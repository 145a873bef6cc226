"""NVIDIA GPUs: what LLVM calls them, and where a block's shared memory lies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ...ir.target import Target
from ...ir.thread.nodes import Allocate, Reg, ThreadFunc
from ...ir.thread.types import SHARED_POINTER
from ...ir.thread.visit import walk

TRIPLE: Final = "nvptx64-nvidia-cuda"

STATIC_SHARED: Final = 48 * 1024
"""Bytes of shared memory a kernel may declare itself; its launch has to ask for more."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU as LLVM knows it.

    Examples
    --------
    >>> resolve_gpu(Target("cuda", arch="sm_90a"))
    Gpu(name='sm_90a', features='+ptx80')
    """

    name: str
    features: str


def resolve_gpu(target: Target) -> Gpu:
    """Give LLVM's name of a target's GPU, with the oldest PTX that knows it.

    The older the PTX, the older the drivers that load it.
    """
    return Gpu(target.arch, "+ptx80" if target.capability < 100 else "+ptx88")


@dataclass(frozen=True, slots=True)
class SharedLayout:
    """Where each allocation of shared memory begins, and how many bytes all take.

    ``dynamic`` memory is asked for by the launch, because the kernel may not declare as much.
    """

    offsets: Mapping[Reg, int]
    size: int
    alignment: int

    @property
    def dynamic(self) -> bool:
        """Whether the launch has to ask for the memory."""
        return self.size > STATIC_SHARED


def shared_layout(function: ThreadFunc) -> SharedLayout:
    """Place a kernel's shared memory: one allocation behind the other, in program order."""
    offsets: dict[Reg, int] = {}
    end, alignment = 0, 1
    for statement in walk(function.body):
        if isinstance(statement, Allocate) and statement.reg.type == SHARED_POINTER:
            start = -(-end // statement.alignment) * statement.alignment
            offsets[statement.reg] = start
            end = start + statement.size
            alignment = max(alignment, statement.alignment)
    return SharedLayout(offsets, end, alignment)


def dynamic_bytes(function: ThreadFunc) -> int:
    """Give the bytes of shared memory that a launch has to ask for."""
    placed = shared_layout(function)
    return placed.size if placed.dynamic else 0
