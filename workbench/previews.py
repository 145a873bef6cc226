"""Previews: the program after a step that is not applied."""

from __future__ import annotations

from ..errors import TilewrightError
from ..ir import script
from ..ir.module import Module
from ..schedules import State
from ..schedules.apply import apply
from .problem_view import invalid_value_view
from .protocol_steps import FunctionChange, Previewed, StepData
from .step_data import to_step

MAX_CHANGES = 8
"""The number of changed functions whose texts are sent."""

WHOLE = 4000
"""The number of lines up to which a text is sent as a whole."""

CONTEXT = 20
"""The number of equal lines that are kept around the changes of longer texts."""


def previewed(state: State, head: str, key: str, data: StepData) -> Previewed:
    """Return the functions that a step would change, or the reason why it is illegal.

    Parameters
    ----------
    state : State
        The state to try the step on.
    head : str
        Its history node.
    key : str
        The key of the request.
    data : StepData
        The step.
    """
    try:
        after = apply(state, to_step(data, state)).state
    except TilewrightError as error:
        return Previewed(key, head, [], 0, invalid_value_view(error))
    changes = changed_functions(state.module, after.module)
    texts = [_change(name, state.module, after.module) for name in changes[:MAX_CHANGES]]
    return Previewed(key, head, texts, max(0, len(changes) - MAX_CHANGES), None)


def changed_functions(before: Module, after: Module) -> list[str]:
    """Return the functions that differ between two programs, and those in one of them only."""
    names = dict.fromkeys([*after.functions, *before.functions])
    return [n for n in names if before.functions.get(n) is not after.functions.get(n)]


def _change(name: str, before: Module, after: Module) -> FunctionChange:
    old, new = _lines(name, before), _lines(name, after)
    if max(len(old), len(new)) <= WHOLE or not old or not new:
        return FunctionChange(name, 1, "\n".join(old), "\n".join(new))
    shared = min(len(old), len(new))
    start = next((k for k in range(shared) if old[k] != new[k]), shared)
    end = next((k for k in range(shared - start) if old[-1 - k] != new[-1 - k]), shared - start)
    start, end = max(0, start - CONTEXT), max(0, end - CONTEXT)
    parts = (lines[start : len(lines) - end] for lines in (old, new))
    return FunctionChange(name, start + 1, *("\n".join(part) for part in parts))


def _lines(name: str, module: Module) -> list[str]:
    function = module.functions.get(name)
    return [] if function is None else script.to_text(function, module=module).splitlines()
