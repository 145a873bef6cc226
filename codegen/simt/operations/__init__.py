"""Implementations of :mod:`tilewright.ir.thread.operations`, vectorized over threads."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .aarch64 import AARCH64
from .cpu import CPU
from .handler import Group, Handler
from .nvidia import NVIDIA
from .x86 import X86

HANDLERS: Mapping[str, Handler] = MappingProxyType({**AARCH64, **CPU, **X86, **NVIDIA})
"""The implementations by the name of the operation."""

__all__ = ["HANDLERS", "Group", "Handler"]
