"""Measure programs from a script: time with its interval, whether it is right, and under what."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from ....ir.errors import TilewrightError
from ....ir.interpreter.oracle import Agreement, Exact, compare
from ....ir.module import Module, UnknownFunctionError
from ....ir.target import Target
from ....schedules import Schedule, State, to_python
from ..executable import Executable
from ..machine import machine_facts
from ..workers import Cancellation
from .conditions import Caches, Conditions
from .measurement import Compared, Measurement
from .oracle import exact_results
from .parent import Runner
from .plan import Array, Outcome
from .statistics import confidence, narrow, ratios
from .turn import alone

Program: TypeAlias = "Executable | Module | Schedule | State"

TIMEOUT = 600.0
"""Seconds that a measurement may take in all."""


class MeasureError(TilewrightError):
    """What is to be measured, or compared with it, is nothing that can be."""

    title = "Cannot be measured"


def measure(
    program: Program,
    *arguments: Any,
    target: str | Target | None = None,
    function: str = "",
    caches: Caches = "hot",
    threads: int = 0,
    pin: bool = False,
    budget: float = 1.5,
    against: Sequence[Program] | Mapping[str, Program] = (),
    check: bool = True,
    cancel: Cancellation | None = None,
) -> Measurement:
    """Time a function in a process of its own, and compare its result with the interpreter's.

    Parameters
    ----------
    program : Executable, Module, Schedule or State
        What is timed; it is compiled unless it is an executable.
    *arguments
        Arrays (or anything with DLPack) and integers, as in a call.
    target : str or Target, optional
        What to compile for.
    function : str
        Which function; ``main`` or the only one if not given.
    caches : {"hot", "cold"}
        Whether data may be in the caches from the call before.
    threads : int
        Workers of parallel loops; 0: as many as it was compiled for.
    pin : bool
        Hold each thread to a core of its own.
    budget : float
        Seconds of sampling; it ends sooner where the interval of the median is narrow.
    against : sequence or mapping of programs
        Others that take the same arguments. All are timed in turns, in the same process; keys are
        their names.
    check : bool
        Compare results with the interpreter's. It is slow: switch it off for large loop nests. An
        executable holds no program to interpret: alone it is not checked, and the result says so.
    cancel : Cancellation, optional
        Stops it from another thread.

    Returns
    -------
    Measurement
        Times in µs; ``print`` it for a summary.

    Raises
    ------
    ConditionsError
        If this machine or program does not have what is asked for.
    RunError
        If a program crashes, never ends, or refuses the arguments; the kernel is named.

    Examples
    --------
    >>> from ....ir.script import parse
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
    conditions = Conditions(caches, threads, pin, budget)
    others = dict(against) if isinstance(against, Mapping) else _numbered(against)
    programs = [program, *others.values()]
    executables = [_compiled(p, target, cancel) for p in programs]
    name = function or _function_of(executables[0])
    for key, executable in zip(others, executables[1:], strict=True):
        if name not in executable.names:
            raise MeasureError(
                f"{key} has no function {name!r} to compare with",
                hint=f"it has {', '.join(executable.names)}",
            )
    inputs = [_argument(a) for a in arguments]
    exact = _exact(programs, name, inputs, cancel) if check else None
    compiled_for = min(e.artifact.threads for e in executables)
    plan = conditions.plan(compiled_for, executables[0].target)
    runner = Runner(*executables, steps=[_steps(p) for p in programs])
    heard = [list[int]() for _ in executables]

    def on_rounds(rounds: Sequence[Sequence[int]]) -> bool:
        for taken in rounds:
            for samples, sample in zip(heard, taken, strict=True):
                samples.append(sample)
        return not all(narrow(samples) for samples in heard)

    try:
        with alone(cancel) as undisturbed:
            outcomes = runner.race(
                [name] * len(executables), inputs, plan,
                on_rounds=on_rounds, cancel=cancel, timeout=TIMEOUT,
            )  # fmt: skip
    finally:
        runner.close()
    own = microseconds(outcomes[0])
    verdicts = [None if exact is None else compare(o.results, exact) for o in outcomes]
    low, high = confidence(own)
    return Measurement(
        name, statistics.median(own), low, high, own, verdicts[0],
        kernel_times(executables[0], name, outcomes[0]), conditions,
        executables[0].artifact.threads, undisturbed, machine_facts(),
        tuple(
            _compared(key, microseconds(outcome), own, verdict)
            for key, outcome, verdict in zip(others, outcomes[1:], verdicts[1:], strict=True)
        ),
    )  # fmt: skip


def _compared(
    name: str, taken: tuple[float, ...], own: tuple[float, ...], verdict: Agreement | None
) -> Compared:
    found = ratios(taken, own)
    low, high = confidence(found)
    median = statistics.median(taken)
    return Compared(name, statistics.median(found), low, high, median, taken, verdict)


def microseconds(outcome: Outcome) -> tuple[float, ...]:
    """Give the samples in µs."""
    return tuple(x / 1e3 for x in outcome.samples)


def kernel_times(executable: Executable, function: str, outcome: Outcome) -> dict[str, float]:
    """Give the medians of each kernel's launches, summed by kernel, slowest first, in µs."""
    sums: dict[str, float] = {}
    for k, launch in enumerate(executable.spec(function).launches):
        median = statistics.median(repeat[k] for repeat in outcome.kernels) / 1e3
        if median:
            sums[launch.kernel] = sums.get(launch.kernel, 0.0) + median
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def _numbered(programs: Sequence[Program]) -> dict[str, Program]:
    return {f"candidate {k}": program for k, program in enumerate(programs, 1)}


def _compiled(
    program: object, target: str | Target | None, cancel: Cancellation | None
) -> Executable:
    from ...compiler import compile

    if isinstance(program, Executable):
        if target is not None:
            raise MeasureError(
                "an executable was compiled for its target already",
                hint="give the module or the schedule, or leave target out",
            )
        return program
    if isinstance(program, Module | Schedule | State):
        return compile(program, target, cancel=cancel)
    raise MeasureError(
        f"a program is measured, not {type(program).__name__}",
        hint="an executable, a module, a schedule or its state",
    )


def _function_of(executable: Executable) -> str:
    names = executable.names
    if "main" in names or len(names) == 1:
        return "main" if "main" in names else names[0]
    raise UnknownFunctionError(
        "several functions to choose from", hint=f"function= one of {', '.join(names)}"
    )


def _argument(given: object) -> Array | int:
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        return int(cast("int", given))
    if isinstance(given, np.ndarray):
        return cast("Array", given)
    if hasattr(given, "__dlpack__"):
        try:
            return np.from_dlpack(cast("Any", given))
        except (BufferError, RuntimeError, TypeError) as error:
            raise MeasureError(
                f"a {type(given).__name__} that NumPy cannot see as an array: {error}"
            ) from error
    raise MeasureError(f"arguments are arrays and integers, not {type(given).__name__}")


def _exact(
    programs: Sequence[Program],
    name: str,
    inputs: Sequence[Array | int],
    cancel: Cancellation | None,
) -> Exact | None:
    """What the first of the programs that can be interpreted has to give."""
    for program in programs:
        module = _source(program, name)
        if module is not None:
            return exact_results(module, name, inputs, cancel=cancel, timeout=TIMEOUT)
    return None


def _source(program: Program, name: str) -> Module | None:
    """The program before any step, where it is known and has the function."""
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


def _steps(program: Program) -> Mapping[str, str]:
    if isinstance(program, Schedule | State):
        return last_steps(program.state if isinstance(program, Schedule) else program)
    return {}


def last_steps(state: State) -> dict[str, str]:
    """Tell for each function the last step that was about it."""
    found: dict[str, str] = {}
    lines = to_python(state.trace).splitlines()
    for position, (step, line) in enumerate(zip(state.trace.steps, lines, strict=True)):
        if not step.op.startswith("get_"):
            for operand in step.operands():
                ref = state.results[operand.step][operand.index]
                found[ref.function] = f"step {position}: {line}"
    return found
