"""Measurement and verification of calls in a sandbox, the path that all user interfaces share."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

from ...durations import duration
from ...ir.interpreter.oracle import Exact, Verdict, compare
from ...target.host import machine_facts
from ..build.build_objects import versions
from ..build.worker_pool import CancelToken
from ..runtime.executable import Executable
from ..sandbox.parent import Runner
from ..sandbox.sampling_plan import Outcome, Plan
from ..sandbox.sent_inputs import Inputs
from ..sandbox.shared_exact import SharedExact
from .measure_options import MeasureOptions
from .measurement import Compared, Measurement
from .measurement_lock import exclusive_measurement
from .statistics import confidence, narrow, ratios

Report = Callable[[float, str], None]
"""A progress callback: the fraction that is done, or -1 if unknown, and a message."""

TIMEOUT = 600.0
"""The default time limit of a measurement in seconds."""

_SAMPLING_SHARE = 0.9
"""The share of sampling in the progress; profiling of the kernels takes the rest."""


def measure_calls(
    runner: Runner,
    function: str,
    inputs: Inputs,
    options: MeasureOptions,
    *,
    others: Sequence[str] = (),
    exact: Exact | None = None,
    report: Report | None = None,
    cancel: CancelToken | None = None,
    timeout: float = TIMEOUT,
) -> Measurement:
    """Measure a function of the executables of a runner, which are timed interleaved.

    Parameters
    ----------
    runner : Runner
        The first executable is measured, the others are compared with it.
    function : str
        The name of the function, which all executables contain.
    inputs : sequence or RandomInputs
        Arrays and integers, or a recipe of random ones, which the sandbox draws.
    options : MeasureOptions
        The conditions and the time limit of sampling.
    others : sequence of str
        The names of the other executables.
    exact : Exact, optional
        The results of the interpreter; without them there are no verdicts.
    report : callable, optional
        The progress callback; an exception that it raises ends the measurement.
    cancel : CancelToken, optional
        A token that stops the measurement.
    timeout : float
        The time limit in seconds.

    Raises
    ------
    MeasureOptionsError
        If this machine or program does not support the options.
    RunError
        If a run fails, exceeds the time limit, or is canceled.
    """
    notify = report or _ignore
    executables = runner.executables
    first = executables[0]
    plan = options.plan(min(e.artifact.threads for e in executables), first.target)
    sampler = _Sampler(len(executables), plan, notify)

    def waiting() -> None:
        notify(-1.0, "waiting for another measurement")

    with exclusive_measurement(cancel, waiting) as exclusive:
        notify(-1.0, f"running {function}")
        outcomes = runner.race(
            [function] * len(executables), inputs, plan, results=exact is not None,
            on_rounds=sampler.add, cancel=cancel, timeout=timeout,
        )  # fmt: skip
    verdicts = [None if exact is None else compare(o.results, exact) for o in outcomes]
    own = microseconds(outcomes[0])
    low, high = confidence(own)
    kernels, launches = _kernel_times(first, function, outcomes[0])
    return Measurement(
        function=function,
        median=statistics.median(own),
        low=low,
        high=high,
        samples=own,
        verdict=verdicts[0],
        kernels=kernels,
        conditions=options,
        threads=first.artifact.threads,
        alone=exclusive,
        machine={**machine_facts(), "compiler": versions()},
        compare=tuple(
            _compared(name, microseconds(outcome), own, verdict)
            for name, outcome, verdict in zip(others, outcomes[1:], verdicts[1:], strict=True)
        ),
        launches=launches,
    )


def verify_call(
    runner: Runner,
    function: str,
    inputs: Inputs,
    exact: SharedExact,
    *,
    report: Report | None = None,
    cancel: CancelToken | None = None,
    timeout: float = TIMEOUT,
) -> Verdict:
    """Run a function once and compare its results with those of the interpreter, in the sandbox.

    Parameters are those of :func:`measure_calls`; the results of the interpreter are shared.

    Raises
    ------
    RunError
        If the run fails, exceeds the time limit, or is canceled.
    """
    (report or _ignore)(-1.0, f"running {function}")
    return runner.verify(function, inputs, exact, cancel=cancel, timeout=timeout)


class _Sampler:
    """A collector of samples, which ends sampling when all medians are known precisely."""

    def __init__(self, count: int, plan: Plan, report: Report) -> None:
        self._samples = [list[int]() for _ in range(count)]
        self._plan = plan
        self._report = report
        self._started = 0.0

    def add(self, rounds: Sequence[Sequence[int]]) -> bool:
        """Add rounds of samples; return whether more are needed."""
        now = time.perf_counter()
        self._started = self._started or now
        for taken in rounds:
            for samples, sample in zip(self._samples, taken, strict=True):
                samples.append(sample)
        count = len(self._samples[0])
        done = max(count / self._plan.most, (now - self._started) / self._plan.seconds)
        median = duration(statistics.median(self._samples[0]) / 1e3)
        calls = "1 call" if count == 1 else f"{count} calls"
        self._report(_SAMPLING_SHARE * min(1.0, done), f"measuring: {median}, {calls}")
        return not all(narrow(samples) for samples in self._samples)


def _ignore(_fraction: float, _message: str) -> None:
    """Ignore a progress report."""


def _compared(
    name: str, taken: tuple[float, ...], own: tuple[float, ...], verdict: Verdict | None
) -> Compared:
    found = ratios(taken, own)
    low, high = confidence(found)
    median = statistics.median(taken)
    return Compared(name, statistics.median(found), low, high, median, taken, verdict)


def microseconds(outcome: Outcome) -> tuple[float, ...]:
    """Return the samples in µs."""
    return tuple(x / 1e3 for x in outcome.samples)


def _kernel_times(
    executable: Executable, function: str, outcome: Outcome
) -> tuple[dict[str, float], dict[str, int]]:
    """Return the medians of all launches summed by kernel in µs, slowest first, and the counts."""
    sums: dict[str, float] = {}
    counts: dict[str, int] = {}
    for k, launch in enumerate(executable.spec(function).launches):
        median = statistics.median(repeat[k] for repeat in outcome.kernels) / 1e3
        if median:
            sums[launch.kernel] = sums.get(launch.kernel, 0.0) + median
            counts[launch.kernel] = counts.get(launch.kernel, 0) + 1
    return dict(sorted(sums.items(), key=lambda item: -item[1])), counts
