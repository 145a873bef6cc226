"""The programs that can be compiled: modules, schedules, and states."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import TilewrightError
from ..ir.graph.nodes import GraphFunc
from ..ir.loop.nodes import PrimFunc
from ..ir.module import CALL_ATTRIBUTE, Module
from ..schedules import Schedule
from ..schedules.state import State

if TYPE_CHECKING:
    from ..ir.importers.torch_call import TorchCall


class NotAProgramError(TilewrightError):
    """A program to compile that is not a module, a schedule, or a state."""

    title = "Invalid program type"


def module_of(program: object) -> Module:
    """Return the module of a module, a schedule, or a state.

    Raises
    ------
    NotAProgramError
        If ``program`` is none of them.
    """
    if isinstance(program, Module):
        return program
    if isinstance(program, Schedule | State):
        return program.module
    raise NotAProgramError(
        f"expected a Module, a Schedule or a State, got {type(program).__name__}",
        where="argument 'program'",
        hint=_program_hint(program),
    )


def _program_hint(program: object) -> str:
    """Return how to create a module from another object."""
    if isinstance(program, PrimFunc | GraphFunc):
        return "create a module of the function with tilewright.script.module(function)"
    if type(program).__name__ == "ExportedProgram":
        return "import it first: from_exported_program(program)"
    if type(program).__module__.partition(".")[0] == "torch":
        return "import the model first: from_torch(model.eval(), example_inputs)"
    return "create a module with parse(text), from_exported_program(program) or from_onnx(path)"


def state_of(program: Module | Schedule | State) -> State | None:
    """Return the state of a schedule; None for a module."""
    if isinstance(program, Module):
        return None
    return program.state if isinstance(program, Schedule) else program


def convention_of(module: Module) -> TorchCall | None:
    """Return how to call an imported PyTorch module, if ``main`` still has its parameters."""
    text, main = module.attributes.get(CALL_ATTRIBUTE), module.functions.get("main")
    if text is None or not isinstance(main, GraphFunc):
        return None
    from ..ir.importers.torch_call import TorchCall

    call = TorchCall.from_text(text)
    names = tuple(p.value.name for p in main.params if p.access != "state")
    return call if names == call.params else None
