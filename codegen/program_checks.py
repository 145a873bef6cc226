"""The checks of a program before its compilation."""

from __future__ import annotations

from ..ir.module import Module
from ..ir.verify import accepted, check_proved


def checked_program(module: Module) -> Module:
    """Return a well-formed module whose accesses are proved to be in bounds or checked at entry.

    Raises
    ------
    IllFormedProgramError
        If the module violates a well-formedness rule.
    UnprovedAccessError
        If an access is neither proved to be in bounds nor checked at run time.
    """
    checked = accepted(module)
    check_proved(checked)
    return checked
