"""The checks of a program before its compilation."""

from __future__ import annotations

from ..ir.analysis.bounds import with_kernel_checks
from ..ir.graph.libraries import (
    LIBRARY_FUNCTIONS,
    UnknownLibraryFunctionError,
    get_library_function,
)
from ..ir.graph.nodes import CallDPSLibrary, LaunchLibrary
from ..ir.graph.visit import all_bindings
from ..ir.module import Module
from ..ir.verify import accepted, check_proved


def checked_program(module: Module) -> Module:
    """Return a well-formed module whose accesses are proved to be in bounds or checked.

    A check runs once at entry, or in the kernel before each access.

    Raises
    ------
    UnknownLibraryFunctionError
        If library functions are not registered; the error lists all of them.
    IllFormedProgramError
        If the module violates a well-formedness rule.
    UnprovedAccessError
        If a divisor, a clamped range, or a declared range is neither proved nor checked at entry.
    """
    _check_libraries(module)
    checked = accepted(module)
    check_proved(checked)
    changed = [new for old in checked.prims if (new := with_kernel_checks(old)) is not old]
    return checked.with_functions(*changed) if changed else checked


def _check_libraries(module: Module) -> None:
    """Require that all library functions that a module calls are registered."""
    called = [
        b.right.symbol
        for graph in module.graphs
        for b in all_bindings(graph.bindings)
        if isinstance(b.right, CallDPSLibrary | LaunchLibrary)
    ]
    unknown = [name for name in dict.fromkeys(called) if name not in LIBRARY_FUNCTIONS]
    if len(unknown) == 1:
        get_library_function(unknown[0])
    if unknown:
        raise UnknownLibraryFunctionError(
            f"no library functions {', '.join(map(repr, unknown))}",
            hint="register functions of these names with tw.library_function; a model that is "
            "imported with allow_unsupported=True calls its unsupported operators by name",
            details={"functions": list(unknown)},
        )
