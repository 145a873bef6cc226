"""An exported model, and the parts of its functions that callers see."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..entry_names import public_name
from ..manifest import FunctionSpec, ParamSpec
from .levels import Level
from .states import States
from .web_tables import WebShader
from .weights import Weights


@dataclass(frozen=True, slots=True)
class Model:
    """An exported model.

    ``functions`` are in the order of the tables. ``features`` are the processor features that the
    library requires. ``threads`` is the largest number of threads of a runtime. ``states``
    are the parameters that a call takes from a state instead of arguments. ``shaders`` are the
    kernels of a model for WebGPU; None for other models. ``replaceable`` is whether an open model
    accepts other weights. ``levels`` are the kinds of processors with code of their own, in
    ascending order, or empty; the functions are then those of the first one.
    """

    name: str
    functions: tuple[FunctionSpec, ...]
    weights: Weights
    features: tuple[str, ...]
    threads: int
    states: States = field(default_factory=States)
    shaders: tuple[WebShader, ...] | None = None
    replaceable: bool = False
    levels: tuple[Level, ...] = ()

    @property
    def variants(self) -> tuple[tuple[FunctionSpec, ...], ...]:
        """The functions of each level, or those of a model without levels."""
        return tuple(level.functions for level in self.levels) or (self.functions,)

    @property
    def public(self) -> tuple[FunctionSpec, ...]:
        """The functions that users call."""
        return tuple(f for f in self.functions if not f.prepares)


def takes_state(model: Model, spec: FunctionSpec) -> bool:
    """Return whether a function takes a state."""
    return bool(model.states.params and spec.states)


def passed_params(model: Model, spec: FunctionSpec) -> tuple[ParamSpec, ...]:
    """Return the parameters that are arguments of the C function."""
    return spec.inputs if takes_state(model, spec) else spec.params


def symbol_of(model: Model, spec: FunctionSpec) -> str:
    """Return the C name of a function."""
    return f"{model.name}_{public_name(spec.name)}"


def written_results(spec: FunctionSpec) -> tuple[int, ...]:
    """Return the positions of the results that are new tensors, not parameters written in place."""
    return tuple(k for k, r in enumerate(spec.results) if r.param < 0)
