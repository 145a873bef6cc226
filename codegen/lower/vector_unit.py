"""The vector registers that code for a target uses."""

from __future__ import annotations

from ...target.cpus import Cpu
from ...target.gpus import THREAD
from ...target.target import Target
from ..llvm.processor import resolve


def vector_unit(target: Target) -> Cpu:
    """Return the vector unit of a target; for a GPU, the widest load or store of a thread."""
    return THREAD if target.is_gpu else resolve(target)
