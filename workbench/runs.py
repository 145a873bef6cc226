"""Compile, compare and time a version of the program.

All of it runs off the main thread, and what is compiled runs in a process of its own: a kernel
that crashes or never ends is an error with its name, and nothing else.
"""

from __future__ import annotations

import math
import statistics
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from ..ir.graph.nodes import GraphFunc
from ..ir.interpreter import call_prim, run_graph
from ..ir.loop.nodes import PrimFunc
from ..ir.module import Array, Function, Module
from ..ir.target import Target
from ..schedules import State, to_python
from ..schedules.history import Node
from .inputs import sample_inputs, shapes_text
from .jobs import JobCancelledError, Progress
from .protocol import KernelTime, TextKind, Timing, Verdict
from .render import Samples

if TYPE_CHECKING:
    from ..codegen import Executable
    from ..codegen.runtime.isolated import OnSample, Outcome, Plan, Runner

LONGEST = 300.0
"""Seconds that a check or a measurement may take."""

WARM_UP = 3
FEWEST, MOST, SECONDS = 10, 200, 1.5
"""Calls that are timed: at least, at most, and for how long."""

ENOUGH, WIDTH = 50, 0.005
"""Measuring stops after so many calls where the interval of the median is so narrow, relatively."""

PROFILED = 15
"""Calls whose kernels are timed one by one."""

TOLERANCE = 2e-5
"""Largest difference of float32 results, relative to the largest exact one, that still agrees."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """What a version compiled to, and how long that took."""

    node: str
    executable: Executable
    milliseconds: float
    runner: Runner


class Bench:
    """Compiles for one target, keeping the last executable.

    Parameters
    ----------
    target : Target
        What is compiled for.
    """

    def __init__(self, target: Target) -> None:
        """Begin with nothing compiled."""
        self.target = target
        self._lock = threading.Lock()
        self._last: Compiled | None = None

    @property
    def target_text(self) -> str:
        """The target in words."""
        words = [self.target.kind, self.target.arch, *self.target.features]
        count = self.target.threads
        if count:
            words.append("1 thread" if count == 1 else f"{count} threads")
        return " · ".join(word for word in words if word)

    def compiled(self, node: Node, progress: Progress) -> Compiled:
        """Compile a version; the same one again is free."""
        with self._lock:
            if self._last is not None and self._last.node == node.id:
                return self._last
            made = self._made(node, node.state, progress)
            if self._last is not None:
                self._last.runner.close()
            self._last = made
            return made

    def _made(self, node: Node, program: Module | State, progress: Progress) -> Compiled:
        from ..codegen.runtime.isolated import Runner

        started = time.perf_counter()
        executable = self._compile(program, progress)
        taken = (time.perf_counter() - started) * 1e3
        return Compiled(
            node.id, executable, taken, Runner(executable, steps=last_steps(node.state))
        )

    def _run(
        self,
        compiled: Compiled,
        call: tuple[str, Sequence[Array | int]],
        progress: Progress,
        timing: tuple[Plan, OnSample] | None = None,
    ) -> Outcome:
        """Run a function away from this process, until somebody cancels."""
        from ..codegen.runtime.errors import RunCancelledError
        from ..codegen.runtime.workers import Cancellation

        name, inputs = call
        plan, on_sample = timing or (None, None)
        progress(-1.0, f"running {name}")
        cancel = Cancellation()
        progress.on_cancel(cancel.cancel)
        try:
            return compiled.runner.run(
                name, inputs, plan, on_sample=on_sample, cancel=cancel, timeout=LONGEST
            )
        except RunCancelledError as error:
            raise JobCancelledError(f"cancelled while {name} ran") from error

    def _compile(self, program: Module | State, progress: Progress) -> Executable:
        """Compile, telling of every stage; a job that is cancelled stops the workers' work."""
        from ..codegen import compile
        from ..codegen.runtime.workers import Cancellation

        cancel = Cancellation()
        progress.on_cancel(cancel.cancel)
        executable = compile(program, self.target, progress=progress.tell, cancel=cancel)
        progress(-1.0, "loading")
        return executable

    # ------------------------------------------------------------ correctness

    def verify(
        self, node: Node, root: Module, name: str, samples: Samples, progress: Progress
    ) -> Verdict:
        """Compare the compiled version with the interpreter on the program before any step.

        A function that a step made, such as a version for one row, is interpreted as it is now.
        """
        compiled = self.compiled(node, progress)
        function = node.state.module.functions[name]
        inputs = sample_inputs(function, samples)
        progress(-1.0, "running the interpreter")
        source = root if name in root.functions else node.state.module
        exact = interpreted(source, name, inputs)
        progress(-1.0, "comparing")
        got = self._run(compiled, (name, inputs), progress).results
        error = largest_difference(got, exact)
        return Verdict(
            state=node.id,
            agrees=error <= TOLERANCE,
            error=error if math.isfinite(error) else 1e308,
            bound=TOLERANCE,
            shapes=shapes_text(samples),
            message=f"largest relative difference {error:.1e}, {TOLERANCE:.0e} allowed",
        )

    # ------------------------------------------------------------ time

    def time(self, node: Node, name: str, samples: Samples, progress: Progress) -> Timing:
        """Time the compiled version as a whole, then its kernels."""
        compiled = self.compiled(node, progress)
        return self._measured(compiled, node.state.module.functions[name], samples, progress)

    def time_kernel(self, node: Node, name: str, samples: Samples, progress: Progress) -> Timing:
        """Time one kernel of a version, compiled by itself."""
        function = node.state.module.prim(name)
        compiled = self._made(node, Module().with_functions(function), progress)
        try:
            return self._measured(compiled, function, samples, progress)
        finally:
            compiled.runner.close()

    def _measured(
        self, compiled: Compiled, function: Function, samples: Samples, progress: Progress
    ) -> Timing:
        from ..codegen.runtime.isolated import Plan
        from ..codegen.runtime.machine import machine_facts

        inputs = sample_inputs(function, samples)
        started, heard = time.perf_counter(), list[int]()

        def on_sample(new: Sequence[int]) -> bool:
            heard.extend(new)
            elapsed = time.perf_counter() - started
            done = max(len(heard) / MOST, elapsed / SECONDS)
            progress(min(0.9, 0.9 * done), f"timing, {len(heard)} calls")
            return not _narrow(heard)

        plan = Plan(WARM_UP, FEWEST, MOST, SECONDS, profiled=PROFILED)
        outcome = self._run(compiled, (function.name, inputs), progress, (plan, on_sample))
        taken = [x / 1e3 for x in outcome.samples]
        kernels = _kernels(compiled.executable, function.name, outcome)
        low, high = confidence(taken)
        return Timing(
            state=compiled.node,
            function=function.name,
            shapes=shapes_text(samples),
            samples=[round(x, 3) for x in taken],
            median=statistics.median(taken),
            low=low,
            high=high,
            compile_ms=compiled.milliseconds,
            kernels=kernels,
            machine=machine_facts(),
        )

    # ------------------------------------------------------------ lower texts

    def lower(self, node: Node, name: str, kind: TextKind, progress: Progress) -> str:
        """LLVM or assembly text of one kernel, compiled by itself; of a GPU's what it would run."""
        alone = Module().with_functions(node.state.module.prim(name))
        if self.target.is_gpu:
            return self._lower_for_gpu(alone, name, kind, progress)
        executable = self._compile(alone, progress)
        return executable.llvm(name) if kind == "llvm" else executable.assembly(name)

    def _lower_for_gpu(self, alone: Module, name: str, kind: TextKind, progress: Progress) -> str:
        """LLVM or PTX text, made without a driver: the emulator has neither."""
        from ..codegen.compiler import BuildOptions, make
        from ..codegen.nvidia import Image
        from ..codegen.runtime.workers import Cancellation

        cancel = Cancellation()
        progress.on_cancel(cancel.cancel)
        options = BuildOptions(progress=progress.tell, cancel=cancel)
        artifact, _ = make(alone, Target("cuda", arch=self.target.arch), options)
        if kind == "llvm":
            return artifact.text(name)
        return Image.from_bytes(artifact.images[name]).ptx


def _kernels(executable: Executable, name: str, outcome: Outcome) -> list[KernelTime]:
    """Medians of each kernel's launches, summed by kernel, slowest first."""
    launches = executable.spec(name).launches
    times: dict[str, float] = {}
    calls: Counter[str] = Counter()
    for k, launch in enumerate(launches):
        median = statistics.median(repeat[k] for repeat in outcome.kernels) / 1e3
        if median:
            times[launch.kernel] = times.get(launch.kernel, 0.0) + median
            calls[launch.kernel] += 1
    total = sum(times.values()) or 1.0
    slowest = sorted(times.items(), key=lambda item: -item[1])
    return [KernelTime(k, k, calls[k], time, time / total) for k, time in slowest]


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


def _narrow(taken: Sequence[float]) -> bool:
    """Whether the interval of the median is narrow enough to stop."""
    if len(taken) < ENOUGH:
        return False
    low, high = confidence(taken)
    return high - low <= WIDTH * statistics.median(taken)


def confidence(taken: Sequence[float]) -> tuple[float, float]:
    """A 95 % interval of the median, from order statistics; it assumes no distribution.

    Examples
    --------
    >>> confidence(range(1, 101))
    (40, 61)
    """
    ordered = sorted(taken)
    count = len(ordered)
    half = 0.98 * math.sqrt(count)
    low = max(0, math.floor(count / 2 - half) - 1)
    high = min(count - 1, math.ceil(count / 2 + half))
    return ordered[low], ordered[high]


# ---------------------------------------------------------------- the interpreter


def interpreted(module: Module, name: str, inputs: Sequence[Array | int]) -> tuple[Array, ...]:
    """Run a function of the program in the interpreter, floats in float64."""
    function = module.functions[name]
    if isinstance(function, GraphFunc):
        arguments = cast("list[Array]", [copied(x) for x in inputs])
        return cast("tuple[Array, ...]", run_graph(module, arguments, function=name, precise=True))
    arrays = [x.copy() for x in inputs if isinstance(x, np.ndarray)]
    scalars = _scalars(function, inputs)
    return call_prim(function, arrays, scalars, precise=True)


def _scalars(function: PrimFunc, inputs: Sequence[Array | int]) -> dict[str, int]:
    integers = [x for x in inputs if isinstance(x, int)]
    return {v.name: x for v, x in zip(function.scalar_params, integers, strict=True)}


def copied(value: Array | int) -> Array | int:
    """A copy of an array, so that a call that writes its arguments spoils nothing."""
    return value.copy() if isinstance(value, np.ndarray) else value


def as_tuple(result: object) -> tuple[Array, ...]:
    """The results of a call as a tuple of arrays."""
    if isinstance(result, tuple):
        return cast("tuple[Array, ...]", result)
    return (cast("Array", result),)


def largest_difference(got: Sequence[Array], exact: Sequence[Array]) -> float:
    """The largest difference of two sets of results, relative to the largest exact value.

    Examples
    --------
    >>> largest_difference([np.array([1.0, 2.0])], [np.array([1.0, 2.5])])
    0.2
    """
    return max((_difference(a, b) for a, b in zip(got, exact, strict=True)), default=0.0)


def _difference(got: Array, exact: Array) -> float:
    if got.shape != exact.shape:
        return math.inf
    if exact.dtype.kind not in "fc":
        return 0.0 if np.array_equal(got, exact) else math.inf
    a, b = got.astype(np.float64), exact.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):  # inf - inf, which `same` has looked at already
        apart = np.where(same, 0.0, np.abs(a - b))
    finite = np.abs(b[np.isfinite(b)])
    scale = float(finite.max()) if finite.size else 1.0
    worst = float(apart.max()) if apart.size else 0.0
    return math.inf if math.isnan(worst) else worst / (scale or 1.0)
