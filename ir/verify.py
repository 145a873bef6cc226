"""Well-formedness of modules and functions: every rule at once, with the place of each mistake."""

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
    r"""Find everything in which a program is not well formed.

    Rules ``L1``, ``L2``, ... are those of loop-level functions (`loop.rules`), ``G1``, ... those
    of graph-level functions and modules (`graph.rules`). Rules that look at callees and constants
    need the whole module.

    Examples
    --------
    >>> from .script import parse
    >>> bad = parse("@prim_func\ndef f(y: Buffer[(8,), f32]):\n    for i in range(8): y[i] = 0.0")
    >>> for violation in violations(bad):
    ...     print(violation)
    [L14 access modes] function 'f', loop 'i': parameter 'y' is passed in, and written
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
        With all violations, each with its rule and place.
    """
    raise_all(violations(program))
