"""Lookups of a trace on a program with other names than the one it was recorded on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from ..errors import Json
from ..ir.module import Module
from .block_forms import with_form
from .handles import BindingRef, BlockRef, BufferRef, FunctionRef, Handle, LoopRef
from .lookup import find
from .problem import ScheduleError, TraceError
from .state import State
from .step import Step
from .trace import TraceStep


@dataclass(frozen=True, slots=True)
class Renamed:
    """A lookup of a trace that a replay answered with a part of another name.

    Parameters
    ----------
    step : int
        The number of the step in the replayed trace.
    op : str
        The name of the query.
    name : str
        The name in the trace.
    found : str
        The name in the program.
    """

    step: int
    op: str
    name: str
    found: str

    def __str__(self) -> str:
        """Return the lookup with both names."""
        return f"step {self.step} ({self.op}) found {self.found!r} for {self.name!r}"


_NAMED: Final[Mapping[str, type[Handle]]] = {
    "get_function": FunctionRef,
    "get_block": BlockRef,
    "get_loop": LoopRef,
    "get_buffer": BufferRef,
    "get_binding": BindingRef,
}
"""The queries that find a part by its name."""


def checked_names(names: Mapping[str, str] | None) -> Mapping[str, str]:
    """Return a mapping of names of a trace to names of a program.

    Raises
    ------
    TraceError
        If it is not a mapping of texts to texts.
    """
    if names is None:
        return {}
    given = cast("object", names)
    if not isinstance(given, Mapping) or not all(
        isinstance(k, str) and isinstance(v, str)
        for k, v in cast("Mapping[object, object]", given).items()
    ):
        raise TraceError(
            f"names are a mapping of names in the trace to names in the program, got {names!r}",
            hint='pass names={"matmul": "dense"}',
        )
    return names


def adapted(
    state: State,
    recorded: TraceStep,
    step: Step,
    names: Mapping[str, str],
    *,
    renamed: Sequence[Renamed],
    module: Module,
) -> Step:
    """Return a step of a trace, as a query of the name that a part has in this program.

    A name is replaced by the one of the mapping. If the program has no function of the name of
    ``get_function``, and had only one loop-level function before the replay, it is that one. If a
    function has no block of the name of ``get_block``, it is the block with the recorded form, or
    without one, as in a trace that was read as Python, the only block.

    Parameters
    ----------
    state : State
        The program.
    recorded : TraceStep
        The step as recorded.
    step : Step
        The step with operands of this program.
    names : Mapping[str, str]
        Names in the program by names in the trace.
    renamed : sequence of Renamed
        The lookups so far that found a part of another name.
    module : Module
        The program before the replay.
    """
    if recorded.op not in _NAMED:
        return step
    earlier = {r.name: r.found for r in renamed if r.op == recorded.op}
    values = dict(step.values())
    name = values.get("name")
    if not isinstance(name, str):
        return step
    found = names.get(name)
    if found is not None and not _exists(state, recorded.op, found, values.get("function")):
        found = None  # of a part of another kind
    if found is None and recorded.op == "get_function" and name not in state.module.functions:
        kernels = [f.name for f in module.prims]
        found = kernels[0] if len(kernels) == 1 else None
    if found is None and recorded.op == "get_block":
        found = _block(state, name, values.get("function"), recorded.decisions, earlier)
    if found is None or found == name:
        return step
    return cast("Step", replace(cast("Any", step), name=found))


def _exists(state: State, op: str, name: str, function: object) -> bool:
    """Return whether a query finds a part of a name."""
    of = function.function if isinstance(function, FunctionRef) else None
    try:
        find(state, _NAMED[op], name, of)
    except ScheduleError:
        return False
    return True


def _block(
    state: State,
    name: str,
    function: object,
    marks: Mapping[str, Json],
    earlier: Mapping[str, str],
) -> str | None:
    """Return the name of the block with the recorded form if no block has a name."""
    names = [f.name for f in state.module.prims]
    if isinstance(function, FunctionRef | str):
        names = [function if isinstance(function, str) else function.function]
    trees = [state.tree(n) for n in names if n in state.module.functions]
    if any(block.name == name for tree in trees for block in tree.blocks.values()):
        return None
    form, position = marks.get("form"), marks.get("occurrence", 0)
    if isinstance(form, str) and isinstance(position, int):
        found = (with_form(tree, form, position) for tree in trees)
        return next((block.name for block in found if block is not None), None)
    if name in earlier:
        return earlier[name]
    blocks = [block for tree in trees for block in tree.blocks.values()]
    return blocks[0].name if len(blocks) == 1 else None
