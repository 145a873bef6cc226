"""Well-formedness checks of modules and functions."""

from __future__ import annotations

from typing import TypeAlias

from .graph.nodes import GraphFunc
from .graph.verify import graph_violations, module_violations
from .loop.nodes import PrimFunc
from .loop.verify import loop_violations
from .module import Module
from .violations import Rule, Violation, raise_all

__all__ = ["Rule", "Violation", "verify", "violations"]

Program: TypeAlias = "Module | PrimFunc | GraphFunc"


def violations(program: Program) -> tuple[Violation, ...]:
    r"""Return all violations of the well-formedness rules in a program.

    Rules ``L1``, ``L2``, ... apply to loop-level functions (`loop.rules`), rules ``G1``, ``G2``,
    ... to graph-level functions and modules (`graph.rules`). Rules about callees and constants are
    checked only if a module is given.

    Examples
    --------
    >>> from .script import parse
    >>> bad = parse("@prim_func\ndef f(y: Buffer[(8,), f32]):\n    for i in range(8): y[i] = 0.0")
    >>> for violation in violations(bad):
    ...     print(violation)
    [L14 access modes] function 'f', loop 'i': parameter 'y' has access mode 'in' but is written
    """
    match program:
        case PrimFunc():
            return loop_violations(program)
        case GraphFunc():
            return graph_violations(program)
        case Module():
            return module_violations(program)


def verify(program: Program) -> None:
    """Check that a program is well formed.

    Raises
    ------
    MalformedProgramError
        If it is not; the error lists all violations with their rules and locations.
    """
    raise_all(violations(program))
