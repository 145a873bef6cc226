"""Runs a GPU kernel's thread IR on the CPU: results, races, bank conflicts, coalescing.

Example
-------
>>> from tilewright.codegen.simt import run_kernel
>>> run_kernel.__name__
'run_kernel'
"""

from .findings import Finding, SimtError
from .frame import ALL_CHECKS, NO_CHECKS, Checks
from .kernel import run_kernel
from .memory import BufferArgument
from .report import Report
from .sites import Site, Steps

__all__ = [
    "ALL_CHECKS",
    "NO_CHECKS",
    "BufferArgument",
    "Checks",
    "Finding",
    "Report",
    "SimtError",
    "Site",
    "Steps",
    "run_kernel",
]
