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

from ..ir.interpreter import Exact, compare
from ..ir.module import Array, Function, Module
from ..ir.target import Target
from ..schedules import State
from ..schedules.history import Node
from .inputs import sample_inputs, shapes_text
from .jobs import JobCancelledError, Progress
from .protocol import KernelTime, TextKind, Timing, Verdict
from .render import Samples

if TYPE_CHECKING:
    from ..codegen import Executable
    from ..codegen.runtime.isolated import Conditions, OnSample, Outcome, Plan, Runner
    from ..codegen.runtime.workers import Cancellation

LONGEST = 300.0
"""Seconds that a check or a measurement may take."""


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
        self._known: tuple[object, Exact] | None = None

    @property
    def target_text(self) -> str:
        """The target in words."""
        words = [self.target.kind, self.target.arch, *self.target.features]
        count = self.target.threads
        if count:
            words.append("1 thread" if count == 1 else f"{count} threads")
        return " · ".join(word for word in words if word)

    @property
    def threads(self) -> int:
        """The most threads that a program may use."""
        from ..codegen.runtime.table import available_threads

        return 1 if self.target.is_gpu else self.target.threads or available_threads()

    def check(self, conditions: Conditions) -> None:
        """See that a measurement can be taken so.

        Raises
        ------
        ConditionsError
            If not.
        """
        conditions.plan(self.threads, self.target)

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
        from ..codegen.runtime.isolated.measure import last_steps

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

        name, inputs = call
        plan, on_sample = timing or (None, None)
        progress(-1.0, f"running {name}")
        cancel = _switch(progress)
        try:
            return compiled.runner.run(
                name, inputs, plan, on_sample=on_sample, cancel=cancel, timeout=LONGEST
            )
        except RunCancelledError as error:
            raise JobCancelledError(f"cancelled while {name} ran") from error

    def _compile(self, program: Module | State, progress: Progress) -> Executable:
        """Compile, telling of every stage; a job that is cancelled stops the workers' work."""
        from ..codegen import compile

        cancel = _switch(progress)
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
        source = root if name in root.functions else node.state.module
        exact = self._exact(source, name, inputs, samples, progress)
        progress(-1.0, "comparing")
        got = self._run(compiled, (name, inputs), progress).results
        found = compare(got, exact)
        return Verdict(
            state=node.id,
            agrees=found.agrees,
            error=_finite(found.error),
            bound=_finite(found.allowed),
            shapes=shapes_text(samples),
            message=str(found),
            derivation=found.derivation,
        )

    def _exact(
        self,
        source: Module,
        name: str,
        inputs: Sequence[Array | int],
        samples: Samples,
        progress: Progress,
    ) -> Exact:
        """Interpret in a process of its own; the last results are kept."""
        from ..codegen.runtime.errors import RunCancelledError
        from ..codegen.runtime.isolated.oracle import exact_results

        key = (source.functions[name], tuple(samples.items()))
        if self._known is not None and self._known[0] == key:
            return self._known[1]
        progress(-1.0, "running the interpreter")
        cancel = _switch(progress)
        try:
            exact = exact_results(source, name, inputs, cancel=cancel, timeout=LONGEST)
        except RunCancelledError as error:
            raise JobCancelledError("cancelled while the interpreter ran") from error
        self._known = (key, exact)
        return exact

    # ------------------------------------------------------------ time

    def time(
        self,
        node: Node,
        name: str,
        samples: Samples,
        progress: Progress,
        conditions: Conditions | None = None,
    ) -> Timing:
        """Time the compiled version as a whole, then its kernels."""
        compiled = self.compiled(node, progress)
        function = node.state.module.functions[name]
        return self._measured(compiled, function, samples, progress, conditions)

    def time_kernel(
        self,
        node: Node,
        name: str,
        samples: Samples,
        progress: Progress,
        conditions: Conditions | None = None,
    ) -> Timing:
        """Time one kernel of a version, compiled by itself."""
        function = node.state.module.prim(name)
        compiled = self._made(node, Module().with_functions(function), progress)
        try:
            return self._measured(compiled, function, samples, progress, conditions)
        finally:
            compiled.runner.close()

    def _measured(
        self,
        compiled: Compiled,
        function: Function,
        samples: Samples,
        progress: Progress,
        given: Conditions | None,
    ) -> Timing:
        from ..codegen.runtime.isolated import Conditions, alone, confidence, narrow
        from ..codegen.runtime.machine import machine_facts

        conditions = given or Conditions()
        artifact = compiled.executable.artifact
        plan = conditions.plan(artifact.threads, artifact.target)
        inputs = sample_inputs(function, samples)
        heard, began = list[int](), list[float]()

        def on_sample(new: Sequence[int]) -> bool:
            began.append(time.perf_counter())
            heard.extend(new)
            elapsed = began[-1] - began[0]
            done = max(len(heard) / plan.most, elapsed / plan.seconds)
            progress(min(0.9, 0.9 * done), f"timing, {len(heard)} calls")
            return not narrow(heard)

        cancel = _switch(progress)

        def waiting() -> None:
            progress.tell(-1.0, "waiting for another measurement")

        with alone(cancel, waiting) as undisturbed:
            outcome = self._run(compiled, (function.name, inputs), progress, (plan, on_sample))
        taken = [x / 1e3 for x in outcome.samples]
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
            kernels=_kernels(compiled.executable, function.name, outcome),
            conditions=conditions.text(artifact.threads),
            alone=undisturbed,
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

        options = BuildOptions(progress=progress.tell, cancel=_switch(progress))
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


def _switch(progress: Progress) -> Cancellation:
    """A switch that the job's cancelling throws."""
    from ..codegen.runtime.workers import Cancellation

    cancel = Cancellation()
    progress.on_cancel(cancel.cancel)
    return cancel


def _finite(number: float) -> float:
    """A number that JSON has."""
    return number if math.isfinite(number) else 1e308


def as_tuple(result: object) -> tuple[Array, ...]:
    """The results of a call as a tuple of arrays."""
    if isinstance(result, tuple):
        return cast("tuple[Array, ...]", result)
    return (cast("Array", result),)
