"""Compilation, verification and measurement of a state of the program.

All of it runs on background threads. Compiled code runs in a sandboxed subprocess, so a kernel
that crashes or does not terminate is reported as an error and does not affect the session.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ..ir.graph.nodes import GraphFunc
from ..ir.module import Array, Function, Module
from ..schedules import State
from ..schedules.history import Node
from ..target.target import Target
from .given_inputs import GivenInputs, digest
from .inputs import random_inputs, shapes_text
from .integer_ranges import integer_ranges
from .jobs import JobCanceledError, Progress
from .protocol_runs import KernelTime, Measurement, Roof, RoofLevel, Verdict
from .rates import with_shares
from .recent_users import RECENT
from .render import Samples

if TYPE_CHECKING:
    from ..codegen import Executable
    from ..codegen.build.worker_pool import CancelToken
    from ..codegen.measure import MeasureOptions
    from ..codegen.sandbox.parent import Runner
    from ..codegen.sandbox.process import PreparedProcess
    from ..codegen.sandbox.sent_inputs import Inputs
    from ..codegen.sandbox.shared_exact import SharedExact
    from ..ir.interpreter.oracle import Verdict as Compared

TIMEOUT = 300.0
"""The time limit of a verification or measurement, in seconds."""

CACHED_BYTES = 1 << 28
"""The size of exact results, in bytes, above which they are computed again for each comparison."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """An executable with its history node and compile time."""

    node: str
    executable: Executable
    milliseconds: float
    runner: Runner


class Bench:
    """A compiler for one target that caches the last executable.

    Parameters
    ----------
    target : Target
        The target to compile for.
    given : GivenInputs, optional
        Inputs of the user, used at the sizes that they have.
    """

    def __init__(self, target: Target, given: GivenInputs | None = None) -> None:
        """Start with an empty cache."""
        self.target = target
        self.given = given
        self._lock = threading.Lock()
        self._last: Compiled | None = None
        self._exact_results: tuple[object, SharedExact] | None = None
        self._prepared: PreparedProcess | None = None

    @property
    def target_text(self) -> str:
        """The target as text."""
        words = [self.target.kind, self.target.arch, *self.target.features]
        count = self.target.threads
        if count:
            words.append("1 thread" if count == 1 else f"{count} threads")
        return " · ".join(word for word in words if word)

    @property
    def threads(self) -> int:
        """The maximum number of threads of a program."""
        from ..target.host import available_threads

        return 1 if self.target.is_gpu else self.target.threads or available_threads()

    def use_page(self, client: str) -> None:
        """Run the next job for the page of a client, which matters to targets in browsers."""

    def close(self) -> None:
        """Stop the process of the cached executable."""
        with self._lock:
            if self._last is not None:
                self._last.runner.close()
            self._last = None
            self._exact_results = None
            if self._prepared is not None:
                self._prepared.close()

    def check(self, options: MeasureOptions) -> None:
        """Check that the options are supported on this machine.

        Raises
        ------
        MeasureOptionsError
            If they are not.
        """
        options.plan(self.threads, self.target)

    def compiled(self, node: Node, progress: Progress) -> Compiled:
        """Return the executable of a state, cached for the last state."""
        with self._lock:
            if self._last is not None and self._last.node == node.id:
                return self._last
            built = self._build(node, node.state, progress)
            if self._last is not None:
                self._last.runner.close()
            self._last = built
            return built

    def _build(self, node: Node, program: Module | State, progress: Progress) -> Compiled:
        from ..codegen.measure.measure import last_steps
        from ..codegen.sandbox.parent import Runner

        started = time.perf_counter()
        prepared = self._prepare()
        executable = self._compile(program, progress)
        milliseconds = (time.perf_counter() - started) * 1e3
        runner = Runner(executable, process=prepared.take(), steps=last_steps(node.state))
        return Compiled(node.id, executable, milliseconds, runner)

    def _prepare(self) -> PreparedProcess:
        """Start the process of the next runner."""
        from ..codegen.sandbox.process import PreparedProcess

        if self._prepared is None:
            self._prepared = PreparedProcess()
        self._prepared.start()
        return self._prepared

    def _compile(self, program: Module | State, progress: Progress) -> Executable:
        """Compile with progress reports; canceling the job stops the compile workers."""
        from ..codegen import compile

        cancel = _cancel_token(progress)
        executable = compile(program, self.target, progress=progress.report, cancel=cancel)
        progress(-1.0, "loading")
        return executable

    def _inputs(self, node: Node, function: Function, samples: Samples) -> Inputs:
        """Return the inputs of the user if they fit, else the recipe of random ones."""
        from ..codegen.compiler import default_scheduled

        if self.given is not None and self.given.fit(function, samples):
            return self.given.values
        program = node.state.module
        if isinstance(function, GraphFunc):
            program = default_scheduled(program, self.target)[1].module
        return random_inputs(function, samples, ranges=integer_ranges(program, function, samples))

    def verify(
        self, node: Node, root: Module, name: str, samples: Samples, progress: Progress
    ) -> Verdict:
        """Compare the compiled state with the interpreted initial program.

        A function that a step created, such as a specialized version, is interpreted as it is now.
        """
        with RECENT.using(self):
            return self._verify(node, root, name, samples, progress)

    def _verify(
        self, node: Node, root: Module, name: str, samples: Samples, progress: Progress
    ) -> Verdict:
        from ..codegen.measure.calls import verify_call

        compiled = self.compiled(node, progress)
        function = node.state.module.functions[name]
        inputs = self._inputs(node, function, samples)
        source = root if name in root.functions else node.state.module
        exact = self._exact(source, name, inputs, progress)
        progress(-1.0, "comparing")
        with _cancelable(f"canceled while {name} was running"):
            verdict = verify_call(
                compiled.runner, name, inputs, exact,
                report=progress, cancel=_cancel_token(progress), timeout=TIMEOUT,
            )  # fmt: skip
        return self._verdict(node, samples, verdict)

    @staticmethod
    def _verdict(node: Node, samples: Samples, found: Compared) -> Verdict:
        return Verdict(
            state=node.id,
            agrees=found.agrees,
            error=_finite(found.error),
            bound=_finite(found.allowed),
            shapes=shapes_text(samples),
            message=str(found),
            derivation=found.derivation,
        )

    def _exact(self, source: Module, name: str, inputs: Inputs, progress: Progress) -> SharedExact:
        """Return the results of the interpreter process, cached for the last call.

        They stay in shared memory, because results of large sizes would fill this process.
        """
        from ..codegen.sandbox.interpreter_process import shared_results
        from ..codegen.sandbox.memory_limit import default_memory
        from ..codegen.sandbox.random_inputs import RandomInputs

        arguments = inputs if isinstance(inputs, RandomInputs) else digest(inputs)
        key = (source.functions[name], arguments)
        if self._exact_results is not None and self._exact_results[0] == key:
            return self._exact_results[1]
        progress(-1.0, "running the interpreter")
        cancel = _cancel_token(progress)
        with _cancelable("canceled while the interpreter was running"):
            exact = shared_results(
                source, name, inputs, memory=default_memory(), cancel=cancel, timeout=TIMEOUT
            )
        self._exact_results = (key, exact) if exact.memory.size <= CACHED_BYTES else None
        return exact

    def roof(
        self, options: MeasureOptions, progress: Progress, *, again: bool = False
    ) -> Roof | None:
        """Return the peak rates of this machine, measured once; None if the target is not a CPU."""
        from ..codegen.measure.peaks import machine_peaks

        if self.target.kind != "cpu":
            return None
        with _cancelable("canceled while the peak rates were measured"):
            peaks = machine_peaks(
                self.target, options.threads or self.threads,
                again=again, report=progress, cancel=_cancel_token(progress),
            )  # fmt: skip
        levels = [RoofLevel(v.name, v.capacity, v.gbytes) for v in peaks.levels]
        return Roof(peaks.instruction, peaks.threads, peaks.gflops, levels)

    def measure(
        self,
        node: Node,
        name: str,
        samples: Samples,
        progress: Progress,
        options: MeasureOptions | None = None,
    ) -> Measurement:
        """Measure the entire compiled state and its kernels."""
        with RECENT.using(self):
            compiled = self.compiled(node, progress)
            function = node.state.module.functions[name]
            inputs = self._inputs(node, function, samples)
            return self._measure(compiled, function, samples, inputs, progress, options=options)

    def measure_kernel(
        self,
        node: Node,
        name: str,
        samples: Samples,
        progress: Progress,
        options: MeasureOptions | None = None,
    ) -> Measurement:
        """Measure one kernel of a state, compiled in isolation."""
        with RECENT.using(self):
            function = node.state.module.prim(name)
            compiled = self._build(node, Module().with_functions(function), progress)
            try:
                inputs = self._inputs(node, function, samples)
                return self._measure(compiled, function, samples, inputs, progress, options=options)
            finally:
                compiled.runner.close()
                self._prepare()  # for the next one, not beside a measurement

    def _measure(
        self,
        compiled: Compiled,
        function: Function,
        samples: Samples,
        inputs: Inputs,
        progress: Progress,
        *,
        options: MeasureOptions | None,
    ) -> Measurement:
        from ..codegen.measure import MeasureOptions
        from ..codegen.measure.calls import measure_calls

        name, options = function.name, options or MeasureOptions()
        with _cancelable(f"canceled while {name} was running"):
            measured = measure_calls(
                compiled.runner, name, inputs, options,
                report=progress, cancel=_cancel_token(progress), timeout=TIMEOUT,
            )  # fmt: skip
        own = self.given is not None and self.given.fit(function, samples)
        kernels = measured.kernels.items()
        found = Measurement(
            state=compiled.node,
            function=name,
            shapes=shapes_text(samples),
            samples=[round(x, 3) for x in measured.samples],
            median=measured.median,
            low=measured.low,
            high=measured.high,
            compile_ms=compiled.milliseconds,
            kernels=[KernelTime(k, measured.launches[k], t, 0.0) for k, t in kernels],
            conditions=options.text(measured.threads) + (", given inputs" if own else ""),
            alone=measured.alone,
            emulated=self.target.kind == "simt",
            total=0.0,
            outside=0.0,
            machine=dict(measured.machine),
        )
        return with_shares(found)


@contextmanager
def _cancelable(message: str) -> Generator[None]:
    """Raise the cancellation of a run as the cancellation of the job."""
    from ..codegen.errors import RunCanceledError

    try:
        yield
    except RunCanceledError as error:
        raise JobCanceledError(message) from error


def _cancel_token(progress: Progress) -> CancelToken:
    """Return a token that is canceled with the job."""
    from ..codegen.build.worker_pool import CancelToken

    cancel = CancelToken()
    progress.on_cancel(cancel.cancel)
    return cancel


def _finite(number: float) -> float:
    """Return a number that JSON can represent."""
    return number if math.isfinite(number) else 1e308


def as_tuple(result: object) -> tuple[Array, ...]:
    """Return the results of a call as a tuple of arrays."""
    if isinstance(result, tuple):
        return cast("tuple[Array, ...]", result)
    return (cast("Array", result),)
