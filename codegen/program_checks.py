"""The checks of a program before its compilation."""

from __future__ import annotations

from ..ir.analysis.bounds import with_kernel_checks
from ..ir.module import Module
from ..ir.verify import accepted, check_proved


def checked_program(module: Module) -> Module:
    """Return a well-formed module whose accesses are proved to be in bounds or checked.

    A check runs once at entry, or in the kernel before each access.

    Raises
    ------
    IllFormedProgramError
        If the module violates a well-formedness rule.
    UnprovedAccessError
        If a divisor, a clamped range, or a declared range is neither proved nor checked at entry.
    """
    checked = accepted(module)
    check_proved(checked)
    changed = [new for old in checked.prims if (new := with_kernel_checks(old)) is not old]
    return checked.with_functions(*changed) if changed else checked
