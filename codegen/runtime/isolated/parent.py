"""The owner's side: start the process, ask, listen, and say what became of it."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np

from ....ir.errors import TilewrightError
from ..errors import (
    RunCrashedError,
    RunFailedError,
    RunMemoryError,
    RunTimeoutError,
)
from ..executable import Executable
from ..protocol import PipeClosedError, PipeTimeoutError
from ..workers import Cancellation
from .notes import Phase
from .plan import Array, OnRounds, OnSample, Outcome, Plan
from .process import GRACE, Process, signal_name
from .shared import SharedArrays

DEFAULT_TIMEOUT = 120.0
DEFAULT_MEMORY = 0.8
"""The share of the machine's memory that programs may allocate in their process."""

_DOING = {
    Phase.STARTING: "while its process started",
    Phase.LOADING: "while it was loaded",
    Phase.TIMING: "while it was timed",
}

_runners: weakref.WeakSet[Runner] = weakref.WeakSet()


class Runner:
    """Runs executables in a process of their own, which is started again when it has died.

    Parameters
    ----------
    executable : Executable
        What is run; its artefact and weights go over once, the weights as shared memory.
    *others : Executable
        More that take the same arguments, for :meth:`race`.
    memory : int
        Bytes that they may allocate beside what the process holds before they run; 0: a share of
        the machine's. Libraries, weights and arguments are not counted: they are no allocation.
    steps : Mapping of str to str, or a sequence of them
        For a kernel, the steps of the schedule that made it what it is, for errors; where there
        are several executables, one mapping each.

    Examples
    --------
    >>> from ....codegen import compile
    >>> from ....ir.script import parse
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
    >>> runner = Runner(exe)
    >>> runner.run("halve", [np.array([2, 4], np.float32)]).results[0]
    array([1., 2.], dtype=float32)
    >>> runner.close()
    """

    def __init__(
        self,
        executable: Executable,
        *others: Executable,
        memory: int = 0,
        steps: Mapping[str, str] | Sequence[Mapping[str, str]] = (),
    ) -> None:
        """Start nothing yet."""
        self.executables = (executable, *others)
        self._memory = memory or share_of_memory()
        several = (steps,) if isinstance(steps, Mapping) else tuple(steps)
        missing = len(self.executables) - len(several)
        nothing: Mapping[str, str] = {}
        self._steps = (*several, *(nothing for _ in range(missing)))
        self._lock = threading.Lock()
        self._process: Process | None = None
        _runners.add(self)

    @property
    def executable(self) -> Executable:
        """The first of them."""
        return self.executables[0]

    @property
    def pid(self) -> int | None:
        """The process, if one runs."""
        return None if self._process is None else self._process.pid

    def run(
        self,
        function: str,
        arguments: Sequence[Array | int],
        plan: Plan | None = None,
        *,
        on_sample: OnSample | None = None,
        cancel: Cancellation | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> Outcome:
        """Run a function once, and time it as planned.

        Parameters
        ----------
        function : str
            Its name.
        arguments : sequence
            Arrays and integers; arrays are copied into shared memory once, never for a repeat.
        plan : Plan, optional
            How it is timed; not at all if not given.
        on_sample : callable, optional
            Told new samples; may say that there are enough.
        cancel : Cancellation, optional
            Stops it from another thread: the process is gone within moments.
        timeout : float
            Seconds for everything.

        Raises
        ------
        RunError
            If the process crashes, takes too long, has not enough memory, or is cancelled; the
            class says which, the message names the kernel that ran. The next run starts afresh.
        """

        def on_rounds(rounds: Sequence[Sequence[int]]) -> bool:
            return on_sample is None or on_sample([r[0] for r in rounds])

        return self.race(
            [function], arguments, plan, on_rounds=on_rounds, cancel=cancel, timeout=timeout
        )[0]

    def race(
        self,
        functions: Sequence[str],
        arguments: Sequence[Array | int],
        plan: Plan | None = None,
        *,
        on_rounds: OnRounds | None = None,
        cancel: Cancellation | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> tuple[Outcome, ...]:
        """Run one function of each executable, and time them in turns, one sample a round each.

        Parameters and errors are those of :meth:`run`; ``functions`` has a name for each
        executable, and all take the same arguments.
        """
        chosen = plan or Plan(most=0)
        request = {
            "do": "run",
            "functions": list(functions),
            "arguments": [None if isinstance(a, np.ndarray) else int(a) for a in arguments],
            "plan": asdict(chosen),
        }
        shared = SharedArrays.of([a for a in arguments if isinstance(a, np.ndarray)])
        deadline = time.monotonic() + timeout
        with self._lock, contextlib.closing(shared):
            process: Process | None = None
            try:
                process = self._started(deadline, cancel)
                process.send({**request, "layout": shared.layout}, descriptors=[shared.descriptor])
                return self._listen(process, chosen, on_rounds, deadline, cancel)
            except PipeClosedError:
                raise self._death(functions) from None
            except PipeTimeoutError:
                raise self._too_long(functions, timeout) from None
            except (RunFailedError, RunMemoryError) as error:
                # The process told so, and waits for the next run.
                raise self._placed(error, functions) from None
            except BaseException:
                self.close()
                raise

    @staticmethod
    def _listen(
        process: Process,
        plan: Plan,
        on_rounds: OnRounds | None,
        deadline: float,
        cancel: Cancellation | None,
    ) -> tuple[Outcome, ...]:
        first = process.receive(deadline, cancel)
        made = SharedArrays(process.descriptor(), first["results"])
        arrays = iter(made.arrays())
        results = [tuple(next(arrays) for _ in range(count)) for count in first["counts"]]
        made.close()
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

    # ------------------------------------------------------------ life and death

    def _started(self, deadline: float, cancel: Cancellation | None) -> Process:
        if self._process is not None and self._process.alive:
            return self._process
        self.close()
        process = self._process = Process()
        process.budget = self._memory
        process.receive(deadline, cancel)
        last = len(self.executables) - 1
        for k, executable in enumerate(self.executables):
            constants = executable.constants()
            with contextlib.closing(SharedArrays.of(list(constants.values()))) as shared:
                process.send(
                    {
                        "do": "load",
                        "names": list(constants),
                        "layout": shared.layout,
                        # What is loaded afterwards has to fit, too.
                        "memory": self._memory if k == last else 0,
                    },
                    executable.artifact.to_bytes(),
                    [shared.descriptor],
                )
                process.receive(deadline, cancel)
        return process

    def _place(self, functions: Sequence[str]) -> str:
        """Name what ran when the process ended: function, kernel, binding, step."""
        process = self._process
        notes = None if process is None else process.notes
        program = min(notes.program, len(functions) - 1) if notes is not None else 0
        function, executable = functions[program], self.executables[program]
        where = f"function {function!r}"
        if len(self.executables) > 1:
            where += f" of candidate {program}"
        if notes is None:
            return where
        specs = {s.name: s for s in executable.artifact.functions}
        spec = next((specs[n] for n in (function, f"{function}__call") if n in specs), None)
        launches = () if spec is None else spec.launches
        launch = notes.launch - 1
        if launch < 0 and len(launches) == 1 and notes.phase is Phase.TIMING:
            launch = 0  # launches are not noted while the whole is timed, but there is only one
        if 0 <= launch < len(launches):
            found = launches[launch]
            where += f", kernel {found.kernel!r} (binding {found.binding!r})"
            if found.kernel in self._steps[program]:
                where += f", after {self._steps[program][found.kernel]}"
        doing = _DOING.get(notes.phase, "")
        return f"{where}, {doing}" if doing else where

    def _placed(self, error: TilewrightError, functions: Sequence[str]) -> TilewrightError:
        """Say of a kernel that refused to go on which one it is, and the step that made it."""
        place = self._place(functions)
        if "kernel" not in place:
            return error
        where = ", ".join(filter(None, (error.where, place)))
        return type(error)(error.message, where=where, hint=error.hint, details=error.details)

    def _death(self, functions: Sequence[str]) -> TilewrightError:
        where, process = self._place(functions), self._process
        self._process = None
        if process is None:
            return RunCrashedError("its process was closed", where=where)
        words = process.stop(GRACE)
        code, memory = process.exit_code, process.limits()
        ended = f"signal {signal_name(-code)}" if code is not None and code < 0 else f"code {code}"
        if any(sign in words for sign in ("MemoryError", "bad_alloc", "Cannot allocate memory")):
            said = f"the process ran out of memory ({ended})" + (f"; {memory}" if memory else "")
            return RunMemoryError(said, where=where, hint=words)
        hint = words
        if code == -9 and memory:
            hint = f"somebody killed it, or the system had no memory left: {memory}\n{words}"
        said = f"the process that ran it ended by {ended}"
        return RunCrashedError(said, where=where, hint=hint.strip(), details={"ended": ended})

    def _too_long(self, functions: Sequence[str], timeout: float) -> TilewrightError:
        where = self._place(functions)
        self.close()
        return RunTimeoutError(
            f"it took longer than {timeout:g} s", where=where, hint="give a longer timeout"
        )

    def close(self) -> None:
        """End the process, if one runs."""
        process, self._process = self._process, None
        if process is not None:
            process.stop()

    def renew(self) -> None:
        """Forget, in a forked child, what belongs to the process that was forked."""
        self._lock = threading.Lock()
        self._process = None

    def __del__(self) -> None:
        """End the process when nobody can ask it any more."""
        with contextlib.suppress(AttributeError):  # not even begun
            self.close()


def share_of_memory() -> int:
    """Bytes that programs may allocate where nobody says how many."""
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return int(pages * size * DEFAULT_MEMORY)


def _after_fork() -> None:
    for runner in tuple(_runners):
        runner.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
