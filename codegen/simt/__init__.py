"""Emulation of GPU kernels on the CPU, with checks of races, bank conflicts and coalescing.

Example
-------
>>> from tilewright.codegen.simt import run_kernel
>>> run_kernel.__name__
'run_kernel'
"""

from .findings import Finding, SimtError
from .frame import ALL_CHECKS, NO_CHECKS, Checks
from .kernel import run_kernel
from .memory_model import BufferArgument
from .provenance import StatementSite, Steps
from .report import Report

__all__ = [
    "ALL_CHECKS",
    "NO_CHECKS",
    "BufferArgument",
    "Checks",
    "Finding",
    "Report",
    "SimtError",
    "StatementSite",
    "Steps",
    "run_kernel",
]
