"""A GPU's thread as the passes that cut vectors see it."""

from __future__ import annotations

from typing import Final

from ...processors import Cpu

THREAD: Final = Cpu("gpu", "", 128, 255)
"""Sixteen bytes are the most that one instruction of a thread loads or stores."""
