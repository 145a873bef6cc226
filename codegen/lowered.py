"""Programs after each stage of the compiler: ``tilewright.lower``."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, cast

from ..calls import checked_call
from ..display import FOLDED, Language, code_html
from ..errors import Json, TilewrightError, escaped
from ..ir.loop.nodes import PrimFunc
from ..ir.module import Module
from ..nearest import did_you_mean, listed
from ..progress import ProgressOption, Report, progress_of
from ..schedules import Schedule, State
from ..schedules.targets import program_target
from ..target.target import Target
from .build.worker_pool import CancelToken
from .program import module_of
from .stage_results import Form, StageResults
from .stages import HOST, Stage, find_stage, stage_before, stages_of

_LANGUAGES: Final[Mapping[str, Language]] = {
    "loop": "python",
    "thread": "python",
    "host": "python",
    "llvm": "llvm",
    "assembly": "asm",
    "wgsl": "text",
}
_COMMENTS: Final = {"llvm": ";", "assembly": "//", "wgsl": "//"}
_NOTHING: Final = "# the program has no kernels, and {stage} prints kernels only"


class UnknownKernelError(TilewrightError):
    """The name of a kernel or function that does not exist at a stage."""

    title = "Unknown kernel"


@dataclass(frozen=True, slots=True, repr=False)
class LoweredFunction:
    """A function after one stage of the compiler.

    Parameters
    ----------
    name : str
        The name of the kernel or graph function.
    stage : Stage
        The stage.
    function : PrimFunc, GraphFunc, ThreadFunc, FlowFunctions or str
        The function; LLVM IR, assembly, and WGSL are texts.
    text : str
        The function as text.
    """

    name: str
    stage: Stage
    function: Form
    text: str
    _results: StageResults = field(compare=False)

    @property
    def before(self) -> str:
        """The text that the stage transformed; empty if the stage created the function."""
        return self._results.before(self.name, self.stage)

    @property
    def translated(self) -> bool:
        """Whether the stage translated the function to another form, as ``to_thread`` does."""
        previous = stage_before(self.stage, self._results.target)
        return previous is not None and previous.form != self.stage.form

    def diff(self) -> str:
        """Return the change by the stage as a unified diff.

        After a translation to another form, the entire text is returned, because no line is equal.
        """
        if self.translated:
            return self.text
        previous = stage_before(self.stage, self._results.target)
        old = "before" if previous is None else f"after {previous.name}"
        lines = difflib.unified_diff(
            self.before.splitlines(), self.text.splitlines(), old, f"after {self.stage.name}",
            lineterm="",
        )  # fmt: skip
        return "\n".join(lines) or f"{self.stage.name} does not change {self.name!r}"

    def __repr__(self) -> str:
        """Return the name and the stage."""
        return f"<LoweredFunction {self.name!r} after {self.stage.name}>"

    def __str__(self) -> str:
        """Return the text."""
        return self.text.rstrip("\n")

    def to_html(self) -> str:
        """Return static HTML with line numbers and highlighted tokens."""
        title = f"{self.name} after {self.stage.name} ({self.stage.form})"
        return code_html(self.text, language=_LANGUAGES[self.stage.level], title=title)

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_json(self) -> dict[str, Json]:
        """Return the function as JSON data."""
        return {"name": self.name, "stage": self.stage.name, "text": self.text}


@dataclass(frozen=True, slots=True, repr=False)
class Lowered:
    """A program after one stage of the compiler; ``print`` shows all functions.

    Parameters
    ----------
    stage : str
        The name of the stage.
    target : Target
        The target.
    functions : Mapping of str to LoweredFunction
        The functions by name, in the order of the module.
    """

    stage: str
    target: Target
    functions: Mapping[str, LoweredFunction]

    def __getitem__(self, name: str) -> LoweredFunction:
        """Return one function.

        Raises
        ------
        UnknownKernelError
            If the function does not exist at the stage.
        """
        if cast("object", name) not in list(self.functions):
            raise _unknown(name, self.functions, self.stage)
        return self.functions[name]

    def __contains__(self, name: object) -> bool:
        """Return whether a function exists at the stage."""
        return name in self.functions

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the functions, as a mapping does."""
        return iter(self.functions)

    def __len__(self) -> int:
        """Return the number of functions."""
        return len(self.functions)

    def diff(self) -> str:
        """Return the changes of all functions by the stage; see :meth:`LoweredFunction.diff`."""
        return _joined([(f, f.diff()) for f in self.functions.values()], self.stage)

    def __repr__(self) -> str:
        """Return the stage, the target, and the names of the functions."""
        return f"<Lowered after {self.stage} for {self.target}: {', '.join(self.functions)}>"

    def __str__(self) -> str:
        """Return the texts of all functions."""
        return _joined([(f, str(f)) for f in self.functions.values()], self.stage)

    def _repr_html_(self) -> str:
        """Return static HTML; later functions are folded, and counted if they are long."""
        if not self.functions:
            return code_html(str(self), language="text")
        first, *others = self.functions.values()
        parts = [first.to_html()]
        lines = 0
        for k, one in enumerate(others):
            lines += one.text.count("\n")
            if lines > FOLDED:
                parts.append(f"<div>{len(others) - k} more functions; print() shows all</div>")
                break
            name = escaped(one.name)
            summary = f'<summary style="cursor:pointer">{name}</summary>'
            parts.append(f"<details>{summary}{one.to_html()}</details>")
        return f"<div>{''.join(parts)}</div>"

    def to_json(self) -> dict[str, Json]:
        """Return the stage, the target, and the functions as JSON data."""
        return {
            "stage": self.stage,
            "target": str(self.target),
            "functions": [f.to_json() for f in self.functions.values()],
        }


def _joined(parts: Sequence[tuple[LoweredFunction, str]], stage: str) -> str:
    """Return texts with a heading for each function if there is more than one."""
    if not parts:
        return _NOTHING.format(stage=stage)
    if len(parts) == 1:
        return parts[0][1]
    return "\n\n".join(
        f"{_COMMENTS.get(f.stage.level, '#')} {f.name} after {f.stage.name}\n{text}"
        for f, text in parts
    )


def _unknown(name: object, known: Mapping[str, object], stage: str) -> TilewrightError:
    if isinstance(name, str):
        near = did_you_mean(name, known)
        message = f"no kernel {name!r} after {stage!r}" + (f"; {near}" if near else "")
    else:
        message = f"expected the name of a kernel, got {type(name).__name__}"
    return UnknownKernelError(
        message,
        hint=f"functions after {stage!r} are {listed(str(name), known, limit=len(known))}",
        details={"kernel": str(name), "kernels": list(known)},
    )


def _module(program: object) -> Module:
    return Module().with_functions(program) if isinstance(program, PrimFunc) else module_of(program)


@checked_call
def lower(
    program: Module | PrimFunc | Schedule | State,
    target: str | Target | None = None,
    *,
    stop_after: str | None = None,
    kernel: str | None = None,
    progress: ProgressOption = None,
) -> Lowered:
    """Return a program after a stage of the compiler, without running the later ones.

    Unscheduled functions get the default schedules, as by :func:`tilewright.compile`.

    Parameters
    ----------
    program : Module, PrimFunc, Schedule or State
        The program.
    target : str or Target, optional
        The target; by default the target of the schedule, or the host CPU.
    stop_after : str, optional
        The name of the stage; ``tilewright show --passes`` lists all. By default all functions are
        lowered: the kernels to thread IR and the graph functions to host IR.
    kernel : str, optional
        The name of one kernel or graph function; by default all are returned.
    progress : bool or callable, optional
        Whether to show a progress bar, or a function of a fraction from 0 to 1 and the name of the
        next function; by default, as in :func:`tilewright.compile`.

    Returns
    -------
    Lowered
        The functions, which print as text and have a diff to the previous stage.

    Raises
    ------
    UnknownPassError
        If the stage does not exist for the target.
    UnknownKernelError
        If the function does not exist at the stage.

    Examples
    --------
    >>> from ..ir.dtype import f32
    >>> from ..ir.loop.builder import Builder
    >>> b = Builder("copy")
    >>> x, y = b.param("x", (8,), f32), b.param("y", (8,), f32, "out")
    >>> b.compute(y, lambda i: b.load(x, i))
    >>> target = Target("cpu", arch="x86_64", features=("avx2",))
    >>> print(lower(b.finish(), target, stop_after="to_thread")["copy"])
    def copy(table: ptr, x: ptr, y: ptr) -> i32:
        # y_1
        y[0]: f32x8 = load.f32x8(x[0])
        return i32(0)
    """
    module = _module(program)
    machine = program_target(program if isinstance(program, Schedule | State) else module, target)
    if stop_after is not None:
        find_stage(stop_after, machine)  # A misspelled pass is reported before scheduling.
    with progress_of("lowering", progress) as report:
        report(0.0, "scheduling")
        return _lower(StageResults(module, machine), stop_after, kernel, report)


def _lower(
    results: StageResults, stop_after: str | None, kernel: str | None, report: Report | None
) -> Lowered:
    if stop_after is None:
        last = [s for s in stages_of(results.target) if s.level in ("thread", "host")][-2:]
    else:
        last = [find_stage(stop_after, results.target)]
    wanted = {name: stage for stage in last for name in results.names(stage)}
    if kernel is not None:
        if kernel not in list(wanted):
            raise _unknown(kernel, wanted, last[-1].name)
        wanted = {kernel: wanted[kernel]}
    made: dict[str, LoweredFunction] = {}
    for k, (name, stage) in enumerate(wanted.items()):
        if report is not None:
            report(k / len(wanted), name)
        function, text = results.function(name, stage), results.text(name, stage)
        made[name] = LoweredFunction(name, stage, function, text, results)
    return Lowered(last[-1].name, results.target, made)


def stage_text(
    program: Module | PrimFunc | Schedule | State,
    target: str | Target | None,
    kernel: str,
    stage: str,
    *,
    cancel: CancelToken | None = None,
) -> str:
    """Return the text of one function of a program after a stage.

    A loop-level function is lowered without the rest of the program, which is faster, and works
    also if the values of constants are missing.

    Parameters
    ----------
    program : Module, PrimFunc, Schedule or State
        The program.
    target : str or Target, optional
        The target; by default the target of the schedule, or the host CPU.
    kernel : str
        The name of the function.
    stage : str
        The name of the stage.
    cancel : CancelToken, optional
        Token that stops the compile worker from another thread.

    Raises
    ------
    UnknownPassError
        If the stage does not exist for the target.
    UnknownKernelError
        If the function does not exist at the stage.
    """
    module = _module(program)
    machine = program_target(program if isinstance(program, Schedule | State) else module, target)
    find_stage(stage, machine)
    own = module.functions.get(kernel)
    if isinstance(own, PrimFunc) and stage != HOST:
        module = Module().with_functions(own)
    return _lower(StageResults(module, machine, cancel), stage, kernel, None)[kernel].text
