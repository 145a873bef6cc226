"""The effective targets of programs and of their functions."""

from __future__ import annotations

from ..ir.module import Module
from ..target.effective import effective_target
from ..target.target import Target, as_target
from .schedule import Schedule
from .state import State


def program_target(
    program: Module | Schedule | State, target: str | Target | None = None
) -> Target:
    """Return the target that a program is compiled, lowered, exported, and timed for.

    Parameters
    ----------
    program : Module, Schedule or State
        The program.
    target : str or Target, optional
        The target that the caller passed; by default that of the schedule.

    Raises
    ------
    TargetMismatchError
        If a function states another target.
    """
    given = None if target is None else as_target(target)
    if given is None and not isinstance(program, Module):
        given = (program.state if isinstance(program, Schedule) else program).target
    module = program if isinstance(program, Module) else program.module
    return effective_target(given, {p.name: p.target for p in module.prims if p.target is not None})
