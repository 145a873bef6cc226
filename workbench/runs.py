"""Compile, compare and time a version of the program. All of it runs off the main thread."""

from __future__ import annotations

import math
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from ..ir.graph.nodes import GraphFunc
from ..ir.interpreter import call_prim, run_graph
from ..ir.loop.nodes import PrimFunc
from ..ir.module import Array, Function, Module
from ..ir.target import Target
from ..schedules import State
from ..schedules.history import Node
from .inputs import sample_inputs, shapes_text
from .jobs import Progress
from .protocol import KernelTime, TextKind, Timing, Verdict
from .render import Samples

if TYPE_CHECKING:
    from ..codegen import Executable

WARM_UP = 3
FEWEST, MOST, SECONDS = 10, 200, 1.5
"""Calls that are timed: at least, at most, and for how long."""

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
            started = time.perf_counter()
            executable = self._compile(node.state, progress)
            taken = (time.perf_counter() - started) * 1e3
            self._last = Compiled(node.id, executable, taken)
            return self._last

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
        executable = self.compiled(node, progress).executable
        function = node.state.module.functions[name]
        inputs = sample_inputs(function, samples)
        progress(-1.0, "running the interpreter")
        source = root if name in root.functions else node.state.module
        exact = interpreted(source, name, inputs)
        progress(-1.0, "comparing")
        got = as_tuple(executable[name](*(copied(x) for x in inputs)))
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
        started = time.perf_counter()
        executable = self._compile(Module().with_functions(function), progress)
        compiled = Compiled(node.id, executable, (time.perf_counter() - started) * 1e3)
        return self._measured(compiled, function, samples, progress)

    def _measured(
        self, compiled: Compiled, function: Function, samples: Samples, progress: Progress
    ) -> Timing:
        inputs = sample_inputs(function, samples)
        call = compiled.executable[function.name]
        taken = _timed(lambda: call(*inputs), progress)
        progress(0.9, "timing the kernels")
        kernels = self._kernels(compiled.executable, function.name, inputs)
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
        )

    def _kernels(
        self, executable: Executable, name: str, inputs: Sequence[Array | int]
    ) -> list[KernelTime]:
        """Medians of each kernel's launches, summed by kernel, slowest first."""
        profile = executable.profile(*map(copied, inputs), function=name, repeats=PROFILED)
        times = profile.by_kernel()
        calls = Counter(launch.kernel for launch in profile)
        total = sum(times.values()) or 1.0
        return [KernelTime(k, k, calls[k], time, time / total) for k, time in times.items()]

    # ------------------------------------------------------------ lower texts

    def lower(self, node: Node, name: str, kind: TextKind, progress: Progress) -> str:
        """LLVM or assembly text of one kernel, compiled by itself."""
        alone = Module().with_functions(node.state.module.prim(name))
        executable = self._compile(alone, progress)
        return executable.llvm(name) if kind == "llvm" else executable.assembly(name)


def _timed(run: Callable[[], object], progress: Progress) -> list[float]:
    """Times of single calls in microseconds, after some to warm up."""
    for _ in range(WARM_UP):
        run()
    taken: list[float] = []
    started = time.perf_counter()
    while len(taken) < MOST:
        before = time.perf_counter_ns()
        run()
        taken.append((time.perf_counter_ns() - before) / 1e3)
        elapsed = time.perf_counter() - started
        if len(taken) >= FEWEST and elapsed > SECONDS:
            break
        if len(taken) % 8 == 0:
            done = max(len(taken) / MOST, elapsed / SECONDS)
            progress(min(0.9, 0.9 * done), f"timing, {len(taken)} calls")
    return taken


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
