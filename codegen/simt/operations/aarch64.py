"""Dot products of AArch64 (Arm Architecture Reference Manual, SDOT (vector))."""

from __future__ import annotations

from ....ir.thread.operations.aarch64 import SDOT_128
from .handler import Handler
from .x86 import dot_bytes

AARCH64: dict[str, Handler] = {SDOT_128.name: dot_bytes}
