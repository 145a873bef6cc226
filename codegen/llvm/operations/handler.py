"""The type of functions that emit an operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ..emitter import Emitter

Handler: TypeAlias = Callable[[Emitter, Sequence[str]], Sequence[str]]
"""A function from the emitter and the operand names to the names of the results."""
