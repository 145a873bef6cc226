"""Well-formedness checks of modules and functions."""

from __future__ import annotations

from typing import Final, TypeAlias
from weakref import WeakSet

from ..errors import Excerpt, MalformedProgramError
from .analysis.entry_checks import Obligation, obligations, with_entry_checks
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

__all__ = [
    "IllFormedProgramError",
    "Rule",
    "UnprovedAccessError",
    "Violation",
    "accepted",
    "check_declared",
    "check_program",
    "check_proved",
    "verify",
    "violations",
]

_MAX_EXCERPTS: Final = 3
"""The number of violations whose lines an error shows."""

_MAX_LISTED: Final = 12
"""The number of violations that a message lists."""

_LATER: Final = (rules.CONSTANTS, rules.FACTS, rules.RECURSION)
"""Rules that later parts of the compilation check, or that are checked at run time."""

_COMPARED: Final = (rules.SHAPES, rules.LAST_VALUES)
"""Rules about dimensions, which are compared at run time if they may be equal."""

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
    >>> from dataclasses import replace
    >>> from .script import parse
    >>> text = "@prim_func\ndef f(y: Out[(8,), f32]):\n    for i in range(8): y[i] = 0.0"
    >>> good = parse(text).prim("f")
    >>> bad = replace(good, params=tuple(replace(p, access="in") for p in good.params))
    >>> for violation in violations(bad):
    ...     print(violation)
    [L14 access modes] function 'f', loop 'i', block 'y': parameter 'y' has access mode 'in' but is
    written
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
            hint=first.fix or first.rule.fix,
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


class UnprovedAccessError(MalformedProgramError):
    """A divisor, clamped range, or declared range that is neither proved nor checked at entry.

    Parameters
    ----------
    function : PrimFunc
        The function.
    obligations : tuple of Obligation
        Its parts without a proof, at least one.
    """

    title = "Unproved access"

    def __init__(self, function: PrimFunc, obligations: tuple[Obligation, ...]) -> None:
        """Build the message from the parts."""
        first, *rest = obligations
        self.obligations = obligations
        self._function = function
        more = f" (and {len(rest)} more)" if rest else ""
        lines = [f"cannot prove the {first.kind} {first.text}{more}"]
        lines += [f"- {o.kind} {o.text}" for o in rest[:_MAX_LISTED]]
        super().__init__(
            "\n".join(lines + (["- ..."] if len(rest) > _MAX_LISTED else [])),
            where=f"function {function.name!r}",
            hint="omit the bounds of the variable, or state the missing condition: fact(...)"
            if first.kind == "declared range"
            else "guard the statement: if i * i < n:, or state the missing condition: fact(...)",
            details={"function": function.name, "unproved": [o.text for o in obligations]},
        )

    def excerpts(self) -> tuple[Excerpt, ...]:
        """Return the lines of the loop or block around the first access."""
        made = excerpt(self._function, [self.obligations[0].uid])
        return () if made is None else (made,)


def check_proved(module: Module) -> None:
    """Check that every divisor and range is proved, or is checked at entry.

    Accesses without a proof are checked in the kernel.

    Raises
    ------
    UnprovedAccessError
        If a divisor, a clamped range, or a declared range depends on values in a way that neither
        a proof nor a condition at entry covers.
    """
    for func in module.prims:
        found = tuple(o for o in obligations(func) if o.status == "unknown")
        if found:
            raise UnprovedAccessError(func, found)


def check_declared(module: Module) -> None:
    """Check that the declared ranges of all variables are proved or checked at run time.

    Raises
    ------
    UnprovedAccessError
        If a declared range is a claim that neither a proof nor a condition at entry covers.
    """
    for func in module.prims:
        unknown = (o for o in obligations(func) if o.status == "unknown")
        found = tuple(o for o in unknown if o.kind == "declared range")
        if found:
            raise UnprovedAccessError(func, found)


def accepted(module: Module, *, names: bool = True) -> Module:
    """Return a module that satisfies the rules of `check_program`, with its entry checks as facts.

    Raises
    ------
    IllFormedProgramError
        If the module violates one of the rules.
    """
    changed = [new for old in module.prims if (new := with_entry_checks(old)) is not old]
    checked = module.with_functions(*changed) if changed else module
    check_program(checked, names=names)
    return checked


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
        if v.rule not in later and not (v.rule in _COMPARED and depends_on_values(v.message))
    )
    if found:
        raise IllFormedProgramError(module, found)
    if names:
        _CHECKED.add(module)
