"""The process that runs compiled programs: it may be killed at any time, by them or by its owner.

It is started with a socket to its owner as descriptor 0, and answers frames of JSON; arrays come
and go as descriptors of shared memory. Which launch runs is noted in memory that the owner sees.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import resource
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from ....ir.dtype import from_numpy
from ....ir.errors import TilewrightError
from ....ir.module import Constant
from ...artifact import Artifact
from ..executable import Executable
from ..protocol import PipeClosedError, read_frame, write_frame
from ..table import RuntimeTable
from .shared import SharedArrays

_PROFILE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_BATCH = 0.05
"""Seconds between frames of samples."""


class Notes:
    """What happens now, written where the owner can read it after this process is gone."""

    def __init__(self, descriptor: int) -> None:
        """Map the words: the launch that runs plus one, 0 for none."""
        self._memory = mmap.mmap(descriptor, mmap.PAGESIZE)
        self._words = np.frombuffer(self._memory, np.int64)
        self.nanoseconds: dict[int, int] = {}
        self._began = 0
        self._callback = _PROFILE(self._take)

    @property
    def address(self) -> int:
        """The provider of the runtime table's slot ``profile``."""
        return ctypes.cast(self._callback, ctypes.c_void_p).value or 0

    def _take(self, _call: int, launch: int, phase: int) -> None:
        if phase == 0:
            self._words[0] = launch + 1
            self._began = time.perf_counter_ns()
        else:
            taken = time.perf_counter_ns() - self._began
            self.nanoseconds[launch] = self.nanoseconds.get(launch, 0) + taken
            self._words[0] = 0


class Child:
    """One program, loaded, and what its owner asks of it."""

    def __init__(self, link: socket.socket) -> None:
        """Load nothing yet."""
        self._link = link
        self._executable: Executable | None = None
        self._notes: Notes | None = None
        self._weights: SharedArrays | None = None

    def serve(self) -> None:
        """Answer until the owner closes the socket."""
        while True:
            try:
                request, blob = read_frame(self._link.fileno())
            except PipeClosedError:
                return
            descriptors = self._descriptors(int(request["descriptors"]))
            try:
                answer = self._do(request, blob, descriptors)
            except TilewrightError as error:
                self._say({"ok": False, "error": error.to_json()})
            except MemoryError:
                self._say({"ok": False, "error": {"kind": "MemoryError", "message": "no memory"}})
            else:
                self._say({"ok": True, **answer})

    def _descriptors(self, count: int) -> list[int]:
        found: list[int] = []
        while len(found) < count:
            _, more, _, _ = socket.recv_fds(self._link, 1, count)
            if not more:
                raise PipeClosedError
            found += more
        return found

    def _say(self, message: dict[str, Any]) -> None:
        write_frame(self._link.fileno(), message)

    def _do(self, request: dict[str, Any], blob: bytes, given: list[int]) -> dict[str, Any]:
        match request["do"]:
            case "load":
                return self._load(request, blob, given)
            case "run":
                return self._run(request, given)
            case other:
                raise TilewrightError(f"nothing runs {other!r}")

    def _load(self, request: dict[str, Any], blob: bytes, given: list[int]) -> dict[str, Any]:
        self._notes = Notes(given[0])
        os.close(given[0])
        self._weights = weights = SharedArrays(given[1], request["layout"])
        constants = {
            name: Constant(array.shape, from_numpy(array.dtype), _giving(array))
            for name, array in zip(request["names"], weights.arrays(), strict=True)
        }
        artifact = Artifact.from_bytes(blob)
        table = None
        if not artifact.target.is_gpu:
            table = RuntimeTable(threads=artifact.threads, profile=self._notes.address)
        self._executable = Executable(artifact, constants, table=table)
        if request["memory"]:
            _, hard = resource.getrlimit(resource.RLIMIT_AS)
            resource.setrlimit(resource.RLIMIT_AS, (int(request["memory"]), hard))
        return {}

    def _run(self, request: dict[str, Any], given: list[int]) -> dict[str, Any]:
        if self._executable is None or self._notes is None:
            raise TilewrightError("no program is loaded")
        shared = SharedArrays(given[0], request["layout"])
        waiting = iter(shared.arrays())
        given_words: list[Any] = request["arguments"]
        arguments: list[Any] = [next(waiting) if x is None else x for x in given_words]
        call = self._executable[request["function"]]
        fresh: list[Any] = [
            np.array(a) if w is None else a for w, a in zip(given_words, arguments, strict=True)
        ]
        self._notes.nanoseconds.clear()
        sink = (ctypes.c_int64 * max(3 * len(call.spec.launches), 1))()
        made = SharedArrays.of(_listed(call.invoke(fresh, ctypes.addressof(sink))))
        self._say({"ok": True, "results": made.layout})
        socket.send_fds(self._link, [b"\0"], [made.descriptor])
        made.close()
        if not request["plan"]["most"]:
            shared.close()
            return {"kernels": []}
        self._time(lambda: call(*arguments), request["plan"])
        kernels = self._kernels(call.invoke, fresh, sink, int(request["plan"]["profiled"]))
        shared.close()
        return {"kernels": kernels}

    def _time(self, run: Callable[[], object], plan: dict[str, Any]) -> None:
        """Repeat until the owner has enough, the budget is spent, or nothing more is allowed."""
        cores = os.sched_getaffinity(0)
        if plan["core"] >= 0:
            os.sched_setaffinity(0, {int(plan["core"])})
        try:
            self._repeat(run, plan)
        finally:
            os.sched_setaffinity(0, cores)

    def _repeat(self, run: Callable[[], object], plan: dict[str, Any]) -> None:
        flush = np.zeros(int(plan["flush"]) // 8) if plan["flush"] else None
        for _ in range(int(plan["warmup"])):
            run()
        batch, told = list[int](), time.monotonic()
        end = told + float(plan["seconds"])
        for count in range(int(plan["most"])):
            if flush is not None:
                flush += 1.0
            start = time.perf_counter_ns()
            run()
            batch.append(time.perf_counter_ns() - start)
            now = time.monotonic()
            over = now > end and count + 1 >= int(plan["least"])
            if now - told > _BATCH or over:
                self._say({"ok": True, "samples": batch})
                batch, told = [], now
                if not self._wanted() or over:
                    return
        self._say({"ok": True, "samples": batch})

    def _wanted(self) -> bool:
        """Ask whether more samples are wanted; the owner answers every batch."""
        answer, _ = read_frame(self._link.fileno())
        return bool(answer["more"])

    def _kernels(
        self, invoke: Callable[..., object], arguments: Sequence[Any], sink: Any, times: int
    ) -> list[list[int]]:
        """Nanoseconds of every launch, once a repeat."""
        notes = self._notes
        if notes is None:
            return []
        found: list[list[int]] = []
        for _ in range(times):
            notes.nanoseconds.clear()
            invoke(arguments, ctypes.addressof(sink))
            found.append([notes.nanoseconds.get(k, 0) for k in range(len(sink) // 3)])
        return found


def _listed(results: Any) -> list[Any]:
    """Give the results of a call as a list of arrays."""
    if isinstance(results, tuple):
        return [np.asarray(r) for r in cast("tuple[Any, ...]", results)]
    return [] if results is None else [np.asarray(results)]


def _giving(array: Any) -> Callable[[], Any]:
    return lambda: array


def _watch(descriptor: int) -> None:
    """End with the owner, also while native code runs."""
    os.read(descriptor, 1)
    os._exit(1)


def main() -> None:
    """Serve the owner at descriptor 0; descriptor 3 is closed when the owner is gone."""
    threading.Thread(target=_watch, args=(3,), daemon=True).start()
    Child(socket.socket(fileno=0)).serve()


if __name__ == "__main__":
    main()
