"""Well-formedness checks of modules and functions."""

from __future__ import annotations

from typing import Final, TypeAlias
from weakref import WeakSet

from ..errors import Excerpt, MalformedProgramError
from .graph import rules
from .graph.nodes import GraphFunc
from .graph.unify import depends_on_values
from .graph.verify import graph_violations, module_violations
from .loop import rules as loop_rules
from .loop.nodes import PrimFunc
from .loop.verify import loop_violations
from .module import Module
from .script.excerpt import excerpt
from .violations import Rule, Violation

__all__ = ["IllFormedProgramError", "Rule", "Violation", "check_program", "verify", "violations"]

_MAX_EXCERPTS: Final = 3
"""The number of violations whose lines an error shows."""

_MAX_LISTED: Final = 12
"""The number of violations that a message lists."""

_LATER: Final = (rules.SYMBOLS, rules.CONSTANTS, rules.FACTS, rules.RECURSION)
"""Rules that later parts of the compilation check, or that are checked at run time."""

_VALID_NAMES: Final = (rules.VALID_NAMES, loop_rules.VALID_NAMES)

_CHECKED: WeakSet[Module] = WeakSet()
"""Modules that `check_program` accepted; modules are immutable."""

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


class IllFormedProgramError(MalformedProgramError):
    """A program that violates well-formedness rules; ``violations`` lists them.

    Parameters
    ----------
    program : Module, PrimFunc or GraphFunc
        The program.
    violations : tuple of Violation
        The violations, at least one.
    """

    title = "Ill-formed program"

    def __init__(self, program: Program, violations: tuple[Violation, ...]) -> None:
        """Build the message from the violations."""
        first = violations[0]
        self.violations = violations
        self._program = program
        super().__init__(
            _message(violations),
            where=first.location,
            hint=first.rule.fix,
            details={"violations": [v.to_json() for v in violations]},
        )

    def excerpts(self) -> tuple[Excerpt, ...]:
        """Return the lines of the first violations, with the parts at fault underlined."""
        made = (_lines(self._program, v) for v in self.violations[:_MAX_EXCERPTS])
        return tuple(dict.fromkeys(e for e in made if e is not None))


def _message(violations: tuple[Violation, ...]) -> str:
    first, *rest = violations
    more = f" (and {len(rest)} more)" if rest else ""
    lines = [f"{first.message}{more}", f"  requires: {first.rule}"]
    lines += [f"- {violation}" for violation in rest[:_MAX_LISTED]]
    return "\n".join(lines + (["- ..."] if len(rest) > _MAX_LISTED else []))


def _lines(program: Program, violation: Violation) -> Excerpt | None:
    """Return the lines of a violation; None if the function cannot be printed."""
    module = program if isinstance(program, Module) else None
    function = program
    if isinstance(program, Module):
        found = program.functions.get(violation.function)
        if found is None:
            return None
        function = found
    if isinstance(function, Module):
        return None
    for uid in dict.fromkeys((violation.uid, violation.within, None)):
        made = excerpt(function, [uid], module=module, within=violation.within)
        if made is not None:
            return made
    return None


def verify(program: Program) -> None:
    """Check that a program is well formed.

    Raises
    ------
    IllFormedProgramError
        If it is not; the error lists all violations with their rules and locations.
    """
    found = violations(program)
    if found:
        raise IllFormedProgramError(program, found)


def check_program(module: Module, *, names: bool = True) -> None:
    """Check the rules without which a module can be neither scheduled nor lowered.

    Dimensions that are equal for some values of the symbols are compared at run time. A module
    that was accepted before is not checked again.

    Parameters
    ----------
    module : Module
        The module.
    names : bool
        Whether names that the text format cannot express are errors; schedules accept them.

    Raises
    ------
    IllFormedProgramError
        If the module violates one of these rules.
    """
    if module in _CHECKED:
        return
    later = _LATER if names else (*_LATER, *_VALID_NAMES)
    found = tuple(
        v
        for v in violations(module)
        if v.rule not in later and not (v.rule is rules.SHAPES and depends_on_values(v.message))
    )
    if found:
        raise IllFormedProgramError(module, found)
    if names:
        _CHECKED.add(module)
