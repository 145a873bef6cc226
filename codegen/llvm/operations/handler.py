"""What writes one operation: evaluated operands in, names of results out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ..emitter import Emitter

Handler: TypeAlias = Callable[[Emitter, Sequence[str]], Sequence[str]]
"""Handed the emitter and the operands' names; gives the names of the results."""
