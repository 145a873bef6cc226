"""Emission of the operations of :mod:`tilewright.ir.thread.operations` as LLVM instructions."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .aarch64 import AARCH64
from .cpu import CPU
from .handler import Handler
from .nvidia import NVIDIA
from .x86 import X86

HANDLERS: Mapping[str, Handler] = MappingProxyType({**AARCH64, **CPU, **NVIDIA, **X86})
"""The handlers by name of the operation."""

__all__ = ["HANDLERS", "Handler"]
