"""The process that runs programs: it may be killed at any time, by them or by its owner.

It is started with a socket to its owner as descriptor 0, and answers frames of JSON; arrays come
and go as descriptors of shared memory. Which launch runs is noted in memory that the owner sees.
"""

from __future__ import annotations

import ctypes
import os
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ....ir.dtype import from_numpy
from ....ir.errors import TilewrightError
from ....ir.module import Constant
from ..protocol import PipeClosedError, read_frame, write_frame
from .memory import allow, held
from .notes import Notes, Phase, Watch
from .sampler import Rounds, take_rounds
from .shared import Array, SharedArrays


@dataclass(frozen=True, slots=True)
class Program:
    """A loaded executable, and what keeps its parts alive."""

    executable: Any
    table: Any
    kept: tuple[object, ...]

    def call(self, function: str) -> Any:
        """Give a function of it."""
        return self.executable[function]


class Child:
    """Programs, loaded, and what their owner asks of them."""

    def __init__(self, link: socket.socket) -> None:
        """Load nothing yet."""
        self._link = link
        self._programs: list[Program] = []
        self._notes: Notes | None = None
        self._before = 0

    @property
    def notes(self) -> Notes:
        """Where the owner looks."""
        if self._notes is None:
            raise TilewrightError("nothing was begun")
        return self._notes

    def serve(self) -> None:
        """Answer until the owner closes the socket."""
        while True:
            try:
                request, blob = read_frame(self._link.fileno())
            except PipeClosedError:
                return
            given = self._descriptors(int(request["descriptors"]))
            try:
                answer = self._do(request, blob, given)
            except TilewrightError as error:
                self._refuse(error.to_json())
            except MemoryError as error:
                self._refuse({"kind": "MemoryError", "message": str(error) or "no memory"})
            else:
                self._say({"ok": True, **answer})
                self.notes.begin(Phase.WAITING)

    def _refuse(self, error: dict[str, Any]) -> None:
        """Tell an error, and what memory was taken then; which launch failed stays noted."""
        self._say({"ok": False, "error": error, "held": held(), "before": self._before})

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
            case "begin":
                self._notes = Notes(given[0])
                os.close(given[0])
                return {}
            case "load":
                return self._load(request, blob, given)
            case "run":
                return self._run(request, given)
            case "interpret":
                return self._interpret(request, blob, given)
            case other:
                raise TilewrightError(f"nothing runs {other!r}")

    # ------------------------------------------------------------ programs

    def _load(self, request: dict[str, Any], blob: bytes, given: list[int]) -> dict[str, Any]:
        from ...artifact import Artifact
        from ..executable import Executable
        from ..table import RuntimeTable

        self.notes.begin(Phase.LOADING, len(self._programs))
        weights = SharedArrays(given[0], request["layout"])
        artifact = Artifact.from_bytes(blob)
        own = None if artifact.target.is_gpu else RuntimeTable(threads=artifact.threads)
        executable = Executable(artifact, _constants(request["names"], weights), table=own)
        device = executable.device
        table = own if device is None else device.table
        watch = Watch(self.notes, table.profile if table else 0)
        if table is not None:
            table.profile = watch.address
        self._programs.append(Program(executable, table, (weights, watch)))
        if request["memory"]:
            self._before = allow(int(request["memory"]), artifact.threads)
        return {"before": self._before}

    def _run(self, request: dict[str, Any], given: list[int]) -> dict[str, Any]:
        shared = SharedArrays(given[0], request["layout"])
        words, plan = request["arguments"], request["plan"]
        waiting = iter(shared.arrays())
        arguments: list[Any] = [next(waiting) if w is None else w for w in words]
        calls = [p.call(f) for p, f in zip(self._programs, request["functions"], strict=True)]
        for program in self._programs:
            program.table.limit(int(plan["threads"]) or program.executable.artifact.threads)
        fresh = [_copied(arguments) for _ in calls]
        found = [self._checked(k, call, fresh[k]) for k, call in enumerate(calls)]
        made = SharedArrays.of([array for results in found for array in results])
        counts = [len(results) for results in found]
        self._say({"ok": True, "results": made.layout, "counts": counts})
        socket.send_fds(self._link, [b"\0"], [made.descriptor])
        made.close()
        if not plan["most"]:
            shared.close()
            return {"kernels": [[] for _ in calls]}
        self.notes.begin(Phase.TIMING)
        runs = [_repeating(call, arguments) for call in calls]
        take_rounds(runs, plan, self._tell, self._wanted)
        kernels = [
            self._profiled(k, call, fresh[k], int(plan["profiled"])) for k, call in enumerate(calls)
        ]
        shared.close()
        return {"kernels": kernels}

    def _checked(self, program: int, call: Any, arguments: list[Any]) -> list[Any]:
        """Run once, noting every launch; give the results."""
        self.notes.begin(Phase.CHECKING, program)
        sink = (ctypes.c_int64 * max(3 * len(call.spec.launches), 1))()
        return _listed(call.invoke(arguments, ctypes.addressof(sink)))

    def _profiled(self, program: int, call: Any, arguments: list[Any], times: int) -> Rounds:
        """Nanoseconds of every launch, once a repeat."""
        self.notes.begin(Phase.CHECKING, program)
        return [call.timed(arguments) for _ in range(times)]

    def _tell(self, batch: Rounds) -> None:
        self._say({"ok": True, "samples": batch})

    def _wanted(self) -> bool:
        """Ask whether more samples are wanted; the owner answers every batch."""
        answer, _ = read_frame(self._link.fileno())
        return bool(answer["more"])

    # ------------------------------------------------------------ the interpreter

    def _interpret(self, request: dict[str, Any], blob: bytes, given: list[int]) -> dict[str, Any]:
        from ....ir.interpreter.oracle import interpreted
        from ....ir.script import parse

        self.notes.begin(Phase.INTERPRETING)
        weights = SharedArrays(given[0], request["weights"])
        shared = SharedArrays(given[1], request["layout"])
        if request["memory"]:
            self._before = allow(int(request["memory"]), 1)
        waiting = iter(shared.arrays())
        inputs = [next(waiting) if w is None else w for w in request["arguments"]]
        module = parse(blob.decode(), constants=_constants(request["names"], weights))
        exact = interpreted(module, request["function"], inputs, rounded=bool(request["rounded"]))
        made = SharedArrays.of([*exact.values, *exact.allowed])
        self._say({"ok": True, "results": made.layout, "text": exact.text})
        socket.send_fds(self._link, [b"\0"], [made.descriptor])
        for held_ in (made, weights, shared):
            held_.close()
        return {}


def _constants(names: Sequence[str], weights: SharedArrays) -> dict[str, Constant]:
    return {
        name: Constant(array.shape, from_numpy(array.dtype), _giving(array))
        for name, array in zip(names, weights.arrays(), strict=True)
    }


def _copied(arguments: Sequence[Any]) -> list[Any]:
    """Arguments of their own for a call whose results are kept, as it may write them."""
    return [np.array(cast("Array", a)) if isinstance(a, np.ndarray) else a for a in arguments]


def _repeating(call: Any, arguments: Sequence[Any]) -> Callable[[], object]:
    return lambda: call(*arguments)


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
