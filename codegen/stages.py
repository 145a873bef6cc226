"""The stages of the compiler, from scheduled loop IR to assembly, in order.

The loop-level and thread-level stages are the passes of :mod:`tilewright.codegen.lower.pipeline`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast

from ..display import Table
from ..errors import Json, TilewrightError
from ..nearest import did_you_mean
from ..schedules.launch.lowering_pass import Machine, runs_on, snake_case
from ..target.target import KINDS, Target
from .lower.pipeline import PASSES, THREAD_PASSES, TO_THREAD
from .nvidia import assembler, disassembler

Level: TypeAlias = Literal["loop", "thread", "host", "llvm", "assembly", "wgsl"]

SCHEDULED: Final = "scheduled"
HOST: Final = "host"
LLVM: Final = "llvm"
LLVM_OPTIMIZED: Final = "llvm_optimized"
ASSEMBLY: Final = "assembly"
SASS: Final = "sass"
WGSL: Final = "wgsl"

FORMS: Final[dict[Level, str]] = {
    "loop": "loop IR",
    "thread": "thread IR",
    "host": "host IR",
    "llvm": "LLVM IR",
    "assembly": "assembly",
    "wgsl": "WGSL",
}
"""The form of the program at each level."""


class UnknownPassError(TilewrightError):
    """The name of a pass that does not exist, or that does not run for the target."""

    title = "Unknown pass"


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of the compiler, after which a program can be printed.

    Parameters
    ----------
    name : str
        The name; for a pass, its class name in snake case.
    level : {"loop", "thread", "host", "llvm", "assembly", "wgsl"}
        The form of the program after the stage.
    targets : tuple of str
        The kinds of targets that have the stage.
    summary : str
        One line that describes the stage.
    """

    name: str
    level: Level
    targets: tuple[str, ...]
    summary: str

    @property
    def form(self) -> str:
        """The form of the program after the stage, such as ``thread IR``."""
        if self.level == "assembly" and self.targets == ("cuda",):
            return "machine code"
        return FORMS[self.level]

    @property
    def has_kernels(self) -> bool:
        """Whether the stage has a text for each kernel."""
        return self.level != "host"

    @property
    def has_host_code(self) -> bool:
        """Whether the stage has a text for each graph function."""
        return self.level == "host" or self.name in (LLVM, LLVM_OPTIMIZED, ASSEMBLY)

    def to_json(self) -> dict[str, Json]:
        """Return the fields as JSON data."""
        return {
            "name": self.name,
            "level": self.level,
            "targets": list(self.targets),
            "summary": self.summary,
        }


def _kinds(machines: Sequence[Machine]) -> tuple[str, ...]:
    """Return the kinds of targets of machines."""
    return tuple(k for k in KINDS if runs_on(tuple(machines), k))


def _pass_stage(kind: type[object], level: Level, machines: Sequence[Machine]) -> Stage:
    summary = inspect.cleandoc(kind.__doc__ or "").split("\n", 1)[0].replace("``", "")
    return Stage(snake_case(kind.__name__), level, _kinds(machines), summary)


STAGES: Final[tuple[Stage, ...]] = (
    Stage(SCHEDULED, "loop", KINDS, "Apply the default schedules to all unscheduled functions."),
    *(_pass_stage(type(one), "loop", one.targets) for one in PASSES),
    Stage(TO_THREAD, "thread", KINDS, "Translate loop IR to the statements of one thread."),
    *(_pass_stage(one, "thread", one.targets) for one in THREAD_PASSES),
    Stage(HOST, "host", KINDS, "Lower graph functions to checks, memory management and launches."),
    Stage(LLVM, "llvm", ("cpu", "cuda"), "Generate LLVM IR."),
    Stage(LLVM_OPTIMIZED, "llvm", ("cpu", "cuda"), "Run the optimization passes of LLVM."),
    Stage(ASSEMBLY, "assembly", ("cpu", "cuda"), "Generate assembly (PTX on a GPU)."),
    Stage(SASS, "assembly", ("cuda",), "Assemble PTX to the machine code of the GPU."),
    Stage(WGSL, "wgsl", ("webgpu",), "Generate WGSL, the shading language of WebGPU."),
)
"""All stages, in order."""


def stages_of(target: Target | None = None) -> tuple[Stage, ...]:
    """Return the stages of a target in order, without those whose tools are not installed.

    Parameters
    ----------
    target : Target, optional
        The target; by default the stages of all targets are returned.

    Examples
    --------
    >>> [s.name for s in stages_of(Target("cpu")) if s.level == "thread"]
    ['to_thread', 'widen_strided_accesses', 'prefetch_streams', 'narrow_indices']
    """
    return tuple(
        stage
        for stage in STAGES
        if (target is None or target.kind in stage.targets) and _installed(stage)
    )


def _installed(stage: Stage) -> bool:
    return stage.name != SASS or (assembler() is not None and disassembler() is not None)


def find_stage(name: str, target: Target) -> Stage:
    """Return a stage of a target.

    Raises
    ------
    UnknownPassError
        If no stage has the name, or the stage does not exist for the target.
    """
    own = {stage.name: stage for stage in stages_of(target)}
    every = {stage.name: stage for stage in STAGES}
    given = cast("object", name)
    if not isinstance(given, str):
        message = f"expected the name of a pass, got {type(given).__name__}"
    elif name in own:
        return own[name]
    elif name not in every:
        near = did_you_mean(name, own)
        message = f"no pass {name!r}" + (f"; {near}" if near else "")
    elif target.kind not in every[name].targets:
        *first, last = every[name].targets
        kinds = f"{', '.join(first)} and {last}" if first else last
        message = f"pass {name!r} runs for {kinds}, not for {target.kind}"
    else:
        message = f"pass {name!r} requires ptxas and nvdisasm, which are not installed"
    raise UnknownPassError(
        message,
        hint=f"passes for {target.kind} are {', '.join(own)}",
        details={"pass": str(given), "passes": list(own)},
    )


def stage_before(stage: Stage, target: Target) -> Stage | None:
    """Return the stage whose result is the input of a stage; None for the first one.

    The input of the stage ``host`` is a graph function after the stage ``scheduled``.
    """
    if stage.name == HOST:
        return find_stage(SCHEDULED, target)
    earlier = [s for s in _until(stage, stages_of(target)) if s.name != HOST]
    return earlier[-1] if earlier else None


def _until(stage: Stage, stages: Sequence[Stage]) -> Iterator[Stage]:
    for one in stages:
        if one.name == stage.name:
            return
        yield one


def stage_table(stages: Sequence[Stage]) -> Table:
    """Return a table of stages: name, form of the program, targets, and summary."""
    rows = tuple(
        (one.name, one.form, "all" if one.targets == KINDS else ", ".join(one.targets), one.summary)
        for one in stages
    )
    return Table(("pass", "result", "targets", "summary"), rows)
