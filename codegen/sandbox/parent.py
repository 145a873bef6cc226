"""Runs of executables in a sandbox: requests, answers, and errors of crashed processes."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ...errors import TilewrightError
from ...ir.interpreter.oracle import Verdict
from ...locks import uninterrupted
from ..build.protocol import PipeClosedError, PipeTimeoutError
from ..build.worker_pool import CancelToken
from ..errors import (
    RunCrashedError,
    RunFailedError,
    RunMemoryError,
    RunTimeoutError,
)
from ..runtime.executable import Executable
from .memory_limit import default_memory
from .process import GRACE, Process, signal_name
from .sampling_plan import OnRounds, OnSample, Outcome, Plan
from .sent_inputs import Inputs, sent_inputs
from .shared_arrays import SharedArrays
from .shared_exact import SharedExact
from .shared_programs import require_shared
from .shared_status import Phase

DEFAULT_TIMEOUT = 120.0

_PHASES = {
    Phase.STARTING: "while the process started",
    Phase.LOADING: "while the program was loaded",
    Phase.PREPARING: "while the inputs were prepared",
    Phase.TIMING: "while samples were taken",
}

_runners: weakref.WeakSet[Runner] = weakref.WeakSet()


class Runner:
    """A sandbox process that runs executables, and is restarted after a crash.

    Parameters
    ----------
    executable : Executable
        The executable. Its artifact and weights are passed once, the weights in shared memory.
    *others : Executable
        Executables that take the same arguments, for :meth:`race`.
    process : Process, optional
        A process that was started in advance, which the runner owns from now on.
    memory : int
        The number of bytes that programs may allocate; 0: a fraction of usable memory. The
        memory of the process before the first run is not counted, nor are libraries, weights and
        given arguments.
    steps : Mapping of str to str, or a sequence of them
        The last schedule step of each kernel, for error messages; one mapping per executable.

    Examples
    --------
    >>> from .. import compile
    >>> from ...ir.script import parse
    >>> exe = compile(
    ...     parse('''
    ... n = symbols("n", lower=0)
    ...
    ... @prim_func
    ... def halve(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    ...     for i in range(n):
    ...         y[i] = x[i] * 0.5
    ... ''')
    ... )
    >>> import numpy as np
    >>> runner = Runner(exe)
    >>> runner.run("halve", [np.array([2, 4], np.float32)]).results[0]
    array([1., 2.], dtype=float32)
    >>> runner.close()
    """

    def __init__(
        self,
        executable: Executable,
        *others: Executable,
        process: Process | None = None,
        memory: int = 0,
        steps: Mapping[str, str] | Sequence[Mapping[str, str]] = (),
    ) -> None:
        """Store the executables; the process starts with the first run.

        Raises
        ------
        UnsharedFunctionError
            If an executable calls a library function that is registered in this process only.
        """
        self.executables = (executable, *others)
        self._prepared = process
        for each in self.executables:
            for spec in each.artifact.functions:
                require_shared(spec.libraries, f"function {spec.name!r}")
        self._memory = memory or default_memory()
        several = (steps,) if isinstance(steps, Mapping) else tuple(steps)
        missing = len(self.executables) - len(several)
        empty: Mapping[str, str] = {}
        self._steps = (*several, *(empty for _ in range(missing)))
        self._lock = threading.Lock()
        self._process: Process | None = None
        _runners.add(self)

    @property
    def executable(self) -> Executable:
        """The first executable."""
        return self.executables[0]

    @property
    def pid(self) -> int | None:
        """The process id, or None if no process is running."""
        return None if self._process is None else self._process.pid

    def run(
        self,
        function: str,
        arguments: Inputs,
        plan: Plan | None = None,
        *,
        on_sample: OnSample | None = None,
        cancel: CancelToken | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> Outcome:
        """Run a function once, then take samples as planned.

        Parameters
        ----------
        function : str
            The name of the function.
        arguments : sequence or RandomInputs
            Arrays and integers. Arrays are copied into shared memory once. Random inputs are drawn
            by the process, and count as memory that the program allocates.
        plan : Plan, optional
            The sampling plan; by default no samples are taken.
        on_sample : callable, optional
            A callback that receives new samples, and returns whether more are needed.
        cancel : CancelToken, optional
            A token that stops the run from another thread and kills the process.
        timeout : float
            The time limit in seconds.

        Raises
        ------
        OutOfMemoryError
            If random inputs use more than a share of the memory limit; nothing is allocated.
        RunError
            If the process crashes, exceeds the time or memory limit, or is canceled. The class
            distinguishes these cases, and the location names the kernel. The next run starts a
            new process.
        """

        def on_rounds(rounds: Sequence[Sequence[int]]) -> bool:
            return on_sample is None or on_sample([r[0] for r in rounds])

        return self.race(
            [function], arguments, plan, on_rounds=on_rounds, cancel=cancel, timeout=timeout
        )[0]

    def race(
        self,
        functions: Sequence[str],
        arguments: Inputs,
        plan: Plan | None = None,
        *,
        results: bool = True,
        on_rounds: OnRounds | None = None,
        cancel: CancelToken | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> tuple[Outcome, ...]:
        """Run one function of each executable, and time them interleaved, one sample per round.

        Parameters and errors are those of :meth:`run`. ``functions`` contains a name per
        executable; all functions take the same arguments. Without ``results`` the outcomes have
        none.
        """
        plan = plan or Plan(most=0)
        request = {"do": "run", "plan": asdict(plan), "threads": plan.threads, "results": results}
        deadline = time.monotonic() + timeout
        with self._request(
            request, functions, arguments, timeout=timeout, cancel=cancel
        ) as process:
            return self._outcomes(process, plan, on_rounds, deadline, cancel)

    def verify(
        self,
        function: str,
        arguments: Inputs,
        exact: SharedExact,
        *,
        cancel: CancelToken | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> Verdict:
        """Run a function of the first executable once, and compare its results in the process.

        Parameters and errors are those of :meth:`run`.
        """
        request = {"do": "verify", "threads": 0, "exact": exact.memory.layout, "text": exact.text}
        deadline = time.monotonic() + timeout
        memory = (exact.memory.descriptor,)
        with self._request(
            request, [function], arguments, timeout=timeout, cancel=cancel, memory=memory
        ) as process:
            found: dict[str, Any] = process.receive(deadline, cancel)["verdict"]
        return Verdict(index=tuple(found.pop("index")), **found)

    @contextlib.contextmanager
    def _request(
        self,
        request: dict[str, Any],
        functions: Sequence[str],
        arguments: Inputs,
        *,
        timeout: float,
        cancel: CancelToken | None,
        memory: Sequence[int] = (),
    ) -> Generator[Process]:
        """Send a request, and yield the process to receive its answers; locate its errors."""
        fields, shared = sent_inputs(arguments, self._memory)
        with self._lock, contextlib.closing(shared):
            try:
                process = self._started(time.monotonic() + timeout, cancel)
                process.send(
                    {**request, **fields, "functions": list(functions)},
                    descriptors=[shared.descriptor, *memory],
                )
                yield process
            except PipeClosedError:
                raise self._crash(functions) from None
            except PipeTimeoutError:
                raise self._timeout(functions, timeout) from None
            except (RunFailedError, RunMemoryError) as error:
                # The process reported the error and continues.
                raise self._located(error, functions) from None
            except BaseException:
                self.close()
                raise

    @staticmethod
    def _outcomes(
        process: Process,
        plan: Plan,
        on_rounds: OnRounds | None,
        deadline: float,
        cancel: CancelToken | None,
    ) -> tuple[Outcome, ...]:
        first = process.receive(deadline, cancel)
        shared = SharedArrays(process.descriptor(), first["results"])
        arrays = iter(shared.arrays())
        results = [tuple(next(arrays) for _ in range(count)) for count in first["counts"]]
        shared.close()
        rounds: list[list[int]] = []
        while True:
            answer = process.receive(deadline, cancel)
            if "samples" not in answer:
                break
            rounds += answer["samples"]
            more = on_rounds(answer["samples"]) if on_rounds is not None else True
            if len(rounds) < plan.most:
                process.reply({"more": more})
        return tuple(
            Outcome(own, tuple(r[k] for r in rounds), tuple(map(tuple, answer["kernels"][k])))
            for k, own in enumerate(results)
        )

    def _started(self, deadline: float, cancel: CancelToken | None) -> Process:
        if self._process is not None and self._process.alive:
            return self._process
        with uninterrupted():
            process = self._process = self._replaced()
        process.budget = self._memory
        process.wait_started(deadline, cancel)
        last = len(self.executables) - 1
        for k, executable in enumerate(self.executables):
            constants = executable.constants()
            with contextlib.closing(SharedArrays.of(list(constants.values()))) as shared:
                process.send(
                    {
                        "do": "load",
                        "names": list(constants),
                        "layout": shared.layout,
                        # Programs that are loaded after the limit is set would count.
                        "memory": self._memory if k == last else 0,
                    },
                    executable.artifact.to_bytes(),
                    [shared.descriptor],
                )
                process.receive(deadline, cancel)
        return process

    def _replaced(self) -> Process:
        """Return the process that was started in advance if it still runs, once, else a new one."""
        for ended in (self._process, self._prepared):
            if ended is not None and not ended.alive:
                ended.stop()
        process, self._prepared = self._prepared, None
        return process if process is not None and process.alive else Process()

    def _location(self, functions: Sequence[str]) -> str:
        """Return the location at which the process stopped: function, kernel, binding, step."""
        process = self._process
        status = None if process is None else process.status
        program = min(status.program, len(functions) - 1) if status is not None else 0
        function, executable = functions[program], self.executables[program]
        where = f"function {function!r}"
        if len(self.executables) > 1:
            where += f" of candidate {program}"
        if status is None:
            return where
        specs = {s.name: s for s in executable.artifact.functions}
        spec = next((specs[n] for n in (function, f"{function}__call") if n in specs), None)
        launches = () if spec is None else spec.launches
        launch = status.launch - 1
        if launch < 0 and len(launches) == 1 and status.phase is Phase.TIMING:
            launch = 0  # launches are not recorded while samples are taken, but there is only one
        if 0 <= launch < len(launches):
            current = launches[launch]
            where += f", kernel {current.kernel!r} (binding {current.binding!r})"
            if current.kernel in self._steps[program]:
                where += f", after {self._steps[program][current.kernel]}"
        phase = _PHASES.get(status.phase, "")
        return f"{where}, {phase}" if phase else where

    def _located(self, error: TilewrightError, functions: Sequence[str]) -> TilewrightError:
        """Return the error with the kernel that failed, and its last schedule step."""
        location = self._location(functions)
        if "kernel" not in location:
            return error
        where = ", ".join(filter(None, (error.where, location)))
        return type(error)(error.message, where=where, hint=error.hint, details=error.details)

    def _crash(self, functions: Sequence[str]) -> TilewrightError:
        where, process = self._location(functions), self._process
        self._process = None
        if process is None:
            return RunCrashedError("the sandbox process was closed", where=where)
        output = process.stop(GRACE)
        code, memory = process.exit_code, process.limits()
        ended = f"signal {signal_name(-code)}" if code is not None and code < 0 else f"code {code}"
        if any(text in output for text in ("MemoryError", "bad_alloc", "Cannot allocate memory")):
            message = f"the sandbox process ran out of memory ({ended})"
            message += f"; {memory}" if memory else ""
            return RunMemoryError(message, where=where, hint=output)
        hint = output
        if code == -9 and memory:
            hint = f"it was killed, or the system ran out of memory: {memory}\n{output}"
        message = f"the sandbox process exited with {ended}"
        return RunCrashedError(message, where=where, hint=hint.strip(), details={"ended": ended})

    def _timeout(self, functions: Sequence[str], timeout: float) -> TilewrightError:
        where = self._location(functions)
        self.close()
        return RunTimeoutError(
            f"the run exceeded the time limit of {timeout:g} s",
            where=where,
            hint="increase the timeout",
        )

    def close(self) -> None:
        """Stop the process, if one is running."""
        for process in (self._process, self._prepared):
            if process is not None:
                process.stop()
        self._process = self._prepared = None

    def reset(self) -> None:
        """Forget the process in a forked child, because it belongs to the parent."""
        self._lock = threading.Lock()
        self._process = self._prepared = None

    def __del__(self) -> None:
        """Stop the process."""
        with contextlib.suppress(AttributeError):  # the constructor failed
            self.close()


def _after_fork() -> None:
    for runner in tuple(_runners):
        runner.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
