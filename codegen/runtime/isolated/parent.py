"""The owner's side: start the process, ask, listen, and say what became of it."""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ....ir.errors import TilewrightError
from ..errors import (
    RunCancelledError,
    RunCrashedError,
    RunFailedError,
    RunMemoryError,
    RunTimeoutError,
)
from ..executable import Executable
from ..protocol import PipeClosedError, PipeTimeoutError, read_frame, write_frame
from ..workers import Cancellation
from .shared import SharedArrays

Array = NDArray[Any]
OnSample = Callable[[Sequence[int]], bool]
"""Told new samples in nanoseconds; answers whether more are wanted."""

DEFAULT_TIMEOUT = 120.0
DEFAULT_MEMORY = 0.8
"""The share of the machine's memory that a process may address, its libraries and weights too."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How a program is timed.

    Parameters
    ----------
    warmup : int
        Calls before the first sample.
    least, most : int
        Samples; ``most`` of 0 only runs it once.
    seconds : float
        When to stop taking samples.
    flush : int
        Bytes that are written between samples, so that caches are cold; 0 leaves them hot.
    core : int
        The core that the process is held to; -1: any.
    profiled : int
        Calls more in which each launch is timed by itself.
    """

    warmup: int = 2
    least: int = 5
    most: int = 1000
    seconds: float = 1.0
    flush: int = 0
    core: int = -1
    profiled: int = 5


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run gave: results, samples in nanoseconds, and each launch's time in every repeat."""

    results: tuple[Array, ...]
    samples: tuple[int, ...] = ()
    kernels: tuple[tuple[int, ...], ...] = ()


class Runner:
    """Runs one executable in a process of its own, which is started again when it has died.

    Parameters
    ----------
    executable : Executable
        What is run; its artefact and weights go over once, the weights as shared memory.
    memory : int
        Bytes that the process may address; 0: a share of the machine's.
    steps : Mapping of str to str
        For a kernel, the steps of the schedule that made it what it is, for errors.

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
        *,
        memory: int = 0,
        steps: Mapping[str, str] | None = None,
    ) -> None:
        """Start nothing yet."""
        self.executable = executable
        self._memory = memory or _share_of_memory()
        self._steps = dict(steps or {})
        self._lock = threading.Lock()
        self._process: _Process | None = None

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
        chosen = plan or Plan(most=0)
        request = {
            "do": "run",
            "function": function,
            "arguments": [None if isinstance(a, np.ndarray) else int(a) for a in arguments],
            "plan": asdict(chosen),
        }
        shared = SharedArrays.of([a for a in arguments if isinstance(a, np.ndarray)])
        deadline = time.monotonic() + timeout
        with self._lock, contextlib.closing(shared):
            process = self._started(deadline, cancel)
            try:
                process.send({**request, "layout": shared.layout}, descriptors=[shared.descriptor])
                return self._listen(process, chosen, on_sample, deadline, cancel)
            except PipeClosedError:
                raise self._death(process, function) from None
            except PipeTimeoutError:
                raise self._too_long(process, function, timeout) from None
            except (RunFailedError, RunMemoryError):
                raise  # the process told so, and waits for the next run
            except BaseException:
                self.close()
                raise

    def _listen(
        self,
        process: _Process,
        plan: Plan,
        on_sample: OnSample | None,
        deadline: float,
        cancel: Cancellation | None,
    ) -> Outcome:
        first = process.receive(deadline, cancel)
        made = SharedArrays(process.descriptor(), first["results"])
        results = tuple(made.arrays())
        made.close()
        samples: list[int] = []
        while True:
            answer = process.receive(deadline, cancel)
            if "samples" not in answer:
                kernels = tuple(tuple(repeat) for repeat in answer["kernels"])
                return Outcome(results, tuple(samples), kernels)
            samples += answer["samples"]
            more = on_sample(answer["samples"]) if on_sample is not None else True
            last = len(samples) >= plan.most
            if not last:
                process.reply({"more": more})

    # ------------------------------------------------------------ life and death

    def _started(self, deadline: float, cancel: Cancellation | None) -> _Process:
        if self._process is not None and self._process.alive:
            return self._process
        self.close()
        process = self._process = _Process()
        artifact = self.executable.artifact
        constants = self.executable.constants()
        shared = SharedArrays.of(list(constants.values()))
        try:
            process.send(
                {
                    "do": "load",
                    "names": list(constants),
                    "layout": shared.layout,
                    "memory": self._memory,
                },
                artifact.to_bytes(),
                [process.notes, shared.descriptor],
            )
            process.receive(deadline, cancel)
        except PipeClosedError:
            raise self._death(process, "loading") from None
        finally:
            shared.close()
        return process

    def _place(self, process: _Process, function: str) -> str:
        """Name what ran when the process ended: function, kernel, binding, step."""
        where = f"function {function!r}"
        launch = process.launch - 1
        specs = {s.name: s for s in self.executable.artifact.functions}
        spec = next((specs[n] for n in (function, f"{function}__call") if n in specs), None)
        if spec is not None and 0 <= launch < len(spec.launches):
            found = spec.launches[launch]
            where += f", kernel {found.kernel!r} (binding {found.binding!r})"
            if found.kernel in self._steps:
                where += f", after {self._steps[found.kernel]}"
        return where

    def _death(self, process: _Process, function: str) -> TilewrightError:
        where, words = self._place(process, function), process.stop()
        self._process = None
        code = process.exit_code
        if code is not None and code < 0:
            name = _signal_name(-code)
            if "MemoryError" in words or "bad_alloc" in words:
                return RunMemoryError(f"no memory ({name})", where=where)
            return RunCrashedError(
                f"the process that ran it ended by signal {name}", where=where, hint=words,
                details={"signal": name},
            )  # fmt: skip
        if "MemoryError" in words or "Cannot allocate memory" in words:
            return RunMemoryError("the process ran out of memory", where=where, hint=words)
        return RunCrashedError(
            f"the process that ran it ended with exit code {code}", where=where, hint=words
        )

    def _too_long(self, process: _Process, function: str, timeout: float) -> TilewrightError:
        where = self._place(process, function)
        self.close()
        return RunTimeoutError(
            f"it took longer than {timeout:g} s", where=where, hint="give a longer timeout"
        )

    def close(self) -> None:
        """End the process, if one runs."""
        process, self._process = self._process, None
        if process is not None:
            process.stop()

    def __del__(self) -> None:
        """End the process when nobody can ask it any more."""
        self.close()


class _Process:
    """One child process, the socket to it, and the memory where it notes what it does."""

    def __init__(self) -> None:
        self.notes = os.memfd_create("tilewright-notes", os.MFD_CLOEXEC)
        os.ftruncate(self.notes, mmap.PAGESIZE)
        self._words = np.frombuffer(mmap.mmap(self.notes, mmap.PAGESIZE), np.int64)
        self.exit_code: int | None = None
        self._link, theirs = socket.socketpair()
        watched, self._alive = os.pipe()
        path = os.pathsep.join(p for p in sys.path if p)
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # until the process ends
        command = "import os,sys;os.dup2(int(sys.argv[1]),3);" if watched != 3 else ""
        module = f"{__package__}.child"
        command += f"from {module} import main;main()"
        self._child = subprocess.Popen(  # noqa: S603  # our own module, no shell
            [sys.executable, "-P", "-c", command, str(watched)],
            stdin=theirs.fileno(),
            stdout=self._log,
            stderr=self._log,
            pass_fds=(watched,),
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,
        )
        os.close(watched)
        theirs.close()

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def alive(self) -> bool:
        return self._child.poll() is None

    @property
    def launch(self) -> int:
        """The launch that runs, plus one; 0: none."""
        return int(self._words[0])

    def send(
        self, message: dict[str, Any], blob: bytes = b"", descriptors: Sequence[int] = ()
    ) -> None:
        """Send a request, then the descriptors that belong to it."""
        self.reply({**message, "descriptors": len(descriptors)}, blob)
        if descriptors:
            with contextlib.suppress(BrokenPipeError):
                socket.send_fds(self._link, [b"\0"], list(descriptors))

    def reply(self, message: dict[str, Any], blob: bytes = b"") -> None:
        """Send a frame."""
        write_frame(self._link.fileno(), message, blob)

    def receive(self, deadline: float, cancel: Cancellation | None) -> dict[str, Any]:
        """Wait for a frame; an error in it is raised."""

        def poll() -> None:
            if cancel is not None and cancel.cancelled:
                raise RunCancelledError("the run was cancelled")

        try:
            answer, _ = read_frame(self._link.fileno(), deadline=deadline, poll=poll)
        except ConnectionResetError:
            raise PipeClosedError from None
        if not answer["ok"]:
            raise _as_error(answer["error"])
        return answer

    def descriptor(self) -> int:
        """Take the descriptor that follows a frame."""
        try:
            _, found, _, _ = socket.recv_fds(self._link, 1, 1)
        except ConnectionResetError:
            found = []
        if not found:
            raise PipeClosedError
        return found[0]

    def stop(self) -> str:
        """End the process and give its last words; nothing of it stays."""
        if self.exit_code is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(0.2)  # it may be ending by itself: for how it does
            self._child.kill()
            self.exit_code = self._child.wait()
            self._log.seek(0)
            self._words_left = self._log.read().decode(errors="replace").strip()[-600:]
            self._log.close()
            self._link.close()
            os.close(self._alive)
            os.close(self.notes)
        return self._words_left


def _as_error(data: Mapping[str, Any]) -> TilewrightError:
    kinds = {"MemoryError": RunMemoryError, "OutOfMemoryError": RunMemoryError}
    kind = kinds.get(str(data.get("kind")), RunFailedError)
    return kind(
        str(data.get("message", "")), where=data.get("where") or "", hint=data.get("hint") or "",
        details={"kind": data.get("kind")},
    )  # fmt: skip


def _signal_name(number: int) -> str:
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return str(number)


def _share_of_memory() -> int:
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return int(pages * size * DEFAULT_MEMORY)
