"""Measurement of programs from scripts: ``tilewright.measure``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from ...calls import checked_call
from ...errors import TilewrightError
from ...ir.interpreter.oracle import Exact
from ...ir.module import Module, UnknownFunctionError
from ...progress import ProgressOption, Report, part_of, progress_of
from ...schedules import Schedule, State
from ...schedules.python_text import step_lines
from ...target.target import Target
from ..build.worker_pool import CancelToken
from ..runtime.executable import Executable
from ..runtime.state import StateSource, new_state, sizes_of
from ..sandbox.interpreter_process import exact_results
from ..sandbox.parent import Runner
from ..sandbox.sampling_plan import Array
from .calls import TIMEOUT, measure_calls
from .measure_options import Caches, MeasureOptions
from .measurement import Measurement

ProgramLike: TypeAlias = "Executable | Module | Schedule | State"


class MeasureError(TilewrightError):
    """A program or argument that cannot be measured."""

    title = "Invalid measurement"


@checked_call
def measure(
    program: ProgramLike,
    *arguments: Any,
    target: str | Target | None = None,
    function: str = "",
    caches: Caches = "hot",
    threads: int = 0,
    pin: bool = False,
    budget: float = 1.5,
    against: Sequence[ProgramLike] | Mapping[str, ProgramLike] = (),
    check: bool = True,
    cancel: CancelToken | None = None,
    progress: ProgressOption = None,
) -> Measurement:
    """Measure a function in a sandbox, and compare its results with those of the interpreter.

    Parameters
    ----------
    program : Executable, Module, Schedule or State
        The program to measure; it is compiled unless it is an executable.
    *arguments
        Arrays, DLPack tensors and integers, as in a call.
    target : str or Target, optional
        The target to compile for.
    function : str
        The name of the function; by default ``main``, or the only one.
    caches : {"hot", "cold"}
        Whether caches keep the data of the previous call, or are flushed before each call.
    threads : int
        The number of threads of parallel loops; 0: as many as it was compiled for.
    pin : bool
        Whether to pin each thread to a separate core.
    budget : float
        The maximum duration of sampling in seconds. Sampling ends earlier if the confidence
        interval of the median is narrow.
    against : sequence or mapping of programs
        Programs to compare with, which take the same arguments. All programs are timed
        interleaved, in the same process. Keys are their names.
    check : bool
        Whether to compare results with those of the interpreter, which is slow for large loop
        nests. Executables cannot be interpreted; if no other program is given, the result reports
        that it was not checked.
    cancel : CancelToken, optional
        A token that stops the measurement from another thread.
    progress : bool or callable, optional
        Whether to show a progress bar, or a function of a fraction and a message, as in
        :func:`~tilewright.codegen.compile`.

    Returns
    -------
    Measurement
        Times in µs, conditions and verdicts; ``print`` it for a summary.

    Raises
    ------
    MeasureOptionsError
        If this machine or program does not support the options.
    RunError
        If a program crashes, exceeds the time limit, or rejects the arguments. The error names
        the kernel.

    Examples
    --------
    >>> from ...ir.script import parse
    >>> mod = parse('''
    ... n = symbols("n", lower=0)
    ...
    ... @prim_func
    ... def halve(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    ...     for i in range(n):
    ...         y[i] = x[i] * 0.5
    ... ''')
    >>> x = np.ones(1000, np.float32)
    >>> taken = measure(mod, x, budget=0.1, against={"the same": mod})
    >>> taken.low <= taken.median <= taken.high, taken.verdict.agrees
    (True, True)
    >>> 0.2 < taken.compare[0].ratio < 5
    True
    """
    options = MeasureOptions(caches, threads, pin, budget)
    if not isinstance(cast("object", against), Mapping | list | tuple):
        raise MeasureError(
            f"expected programs to compare with, got {type(against).__name__}",
            where="option 'against' of measure",
            hint='pass a list, or a dictionary of names: against={"manual": sch}',
        )
    others = dict(against) if isinstance(against, Mapping) else _numbered(against)
    programs = [program, *others.values()]
    with progress_of("measuring", progress) as report:
        parts = [_part(report, k, len(programs)) for k in range(len(programs))]
        executables = [
            _compiled(p, target, cancel, part) for p, part in zip(programs, parts, strict=True)
        ]
        name = function or _function_of(executables[0])
        _check_functions(name, dict(zip(others, executables[1:], strict=True)))
        inputs = _with_states(executables[0], name, [_argument(a) for a in arguments])
        report(_COMPILED, "interpreting")
        exact = _exact(programs, name, inputs, cancel) if check else None
        runner = Runner(*executables, steps=[_steps(p) for p in programs])
        try:
            return measure_calls(
                runner, name, inputs, options, others=tuple(others), exact=exact, cancel=cancel,
                report=part_of(report, _COMPILED, 1.0),
            )  # fmt: skip
        finally:
            runner.close()


_COMPILED = 0.5
"""The progress of a measurement after the compilation of all programs."""


def _part(report: Report, position: int, count: int) -> Report:
    """Return the function that reports the progress of the compilation of one program."""
    return part_of(report, _COMPILED * position / count, _COMPILED * (position + 1) / count)


def _check_functions(name: str, others: Mapping[str, Executable]) -> None:
    """Raise an error if a program to compare with lacks the measured function."""
    for key, executable in others.items():
        if name not in executable.names:
            raise MeasureError(
                f"{key} does not contain function {name!r}",
                hint=f"its functions are {', '.join(executable.names)}",
            )


def _numbered(programs: Sequence[ProgramLike]) -> dict[str, ProgramLike]:
    return {f"candidate {k}": program for k, program in enumerate(programs, 1)}


def _compiled(
    program: object, target: str | Target | None, cancel: CancelToken | None, report: Report
) -> Executable:
    from ..compiler import compile

    if isinstance(program, Executable):
        if target is not None:
            raise MeasureError(
                "an executable is already compiled for its target",
                hint="pass the module or the schedule, or omit target",
            )
        return program
    if isinstance(program, Module | Schedule | State):
        return compile(program, target, cancel=cancel, progress=report)
    raise MeasureError(
        f"expected a program, got {type(program).__name__}",
        where="argument 'program' of measure",
        hint="pass an Executable, Module, Schedule or State",
    )


def _function_of(executable: Executable) -> str:
    names = executable.names
    if "main" in names or len(names) == 1:
        return "main" if "main" in names else names[0]
    raise UnknownFunctionError(
        "the program contains several functions", hint=f"pass function=, one of {', '.join(names)}"
    )


def _argument(value: object) -> Array | int:
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(cast("int", value))
    if isinstance(value, np.ndarray):
        return cast("Array", value)
    if hasattr(value, "__dlpack__"):
        try:
            return np.from_dlpack(cast("Any", value))
        except (BufferError, RuntimeError, TypeError) as error:
            raise MeasureError(
                f"NumPy cannot convert {type(value).__name__} to an array: {error}",
                where="arguments of measure",
                hint="pass NumPy arrays, or tensors that support DLPack",
            ) from error
    raise MeasureError(
        f"expected an array or an integer, got {type(value).__name__}",
        where="arguments of measure",
        hint="pass the arguments one by one: measure(program, x, y)",
    )


def _with_states(
    executable: Executable, name: str, inputs: Sequence[Array | int]
) -> Sequence[Array | int]:
    """Return the arguments with those of state parameters, which have their initial values."""
    spec = executable.spec(name)
    if not spec.states or len(inputs) != len(spec.inputs):
        return inputs
    source = StateSource(executable, (spec,), executable.initial_value)
    state, given = new_state(source, sizes_of(spec, inputs)), iter(inputs)
    return [state[p.name] if p.access == "state" else next(given) for p in spec.params]


def _exact(
    programs: Sequence[ProgramLike],
    name: str,
    inputs: Sequence[Array | int],
    cancel: CancelToken | None,
) -> Exact | None:
    """Return the exact results of the first program that can be interpreted, if any."""
    for program in programs:
        module = _source(program, name)
        if module is not None:
            return exact_results(module, name, inputs, cancel=cancel, timeout=TIMEOUT)
    return None


def _source(program: ProgramLike, name: str) -> Module | None:
    """Return the initial program, if it is known and contains the function."""
    match program:
        case Module():
            return program
        case State():
            return program.module
        case Schedule():
            root = next(n for n in program.history if n.parent is None).state.module
            return root if name in root.functions else program.module
        case _:
            return None


def _steps(program: ProgramLike) -> Mapping[str, str]:
    if isinstance(program, Schedule | State):
        return last_steps(program.state if isinstance(program, Schedule) else program)
    return {}


def last_steps(state: State) -> dict[str, str]:
    """Return, for each function, the last step that was applied to it."""
    last: dict[str, str] = {}
    lines = step_lines(state.trace)
    for position, (step, line) in enumerate(zip(state.trace.steps, lines, strict=True)):
        if not step.op.startswith("get_"):
            for handle in state.operands(step):
                last[handle.function] = f"step {position}: {line}"
    return last
