"""The sandboxed process, which runs programs on requests of its owner.

It may crash or be killed at any time. It is started with a socket to its owner as descriptor 0,
and answers frames of JSON. Arrays are passed as descriptors of shared memory. Memory that the owner
can read records which launch is running.
"""

from __future__ import annotations

import ctypes
import os
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from ...errors import TilewrightError
from ...ir.dtype import from_numpy
from ...ir.module import Constant
from ..build.protocol import PipeClosedError, read_frame, write_frame
from .memory_limit import (
    allocated_bytes,
    limit_memory,
    require_memory,
    shared_memory_counted,
)
from .sampler import Rounds, take_rounds
from .sent_inputs import received_inputs
from .shared_arrays import Array, SharedArrays
from .shared_status import LaunchRecorder, Phase, SharedStatus


@dataclass(frozen=True, slots=True)
class LoadedProgram:
    """A loaded executable, with the objects that its memory depends on."""

    executable: Any
    table: Any
    owners: tuple[object, ...]

    def call(self, function: str) -> Any:
        """Return a function of the executable."""
        return self.executable[function]


class Child:
    """A server of requests to load and run programs."""

    def __init__(self, link: socket.socket) -> None:
        """Start without programs."""
        self._link = link
        self._programs: list[LoadedProgram] = []
        self._status: SharedStatus | None = None
        self._before = 0

    @property
    def status(self) -> SharedStatus:
        """The status that the owner can read."""
        if self._status is None:
            raise TilewrightError("expected the request 'begin' first")
        return self._status

    def serve(self) -> None:
        """Answer requests until the owner closes the socket."""
        while True:
            try:
                request, blob = read_frame(self._link.fileno())
            except PipeClosedError:
                return
            descriptors = self._descriptors(int(request["descriptors"]))
            try:
                answer = self._do(request, blob, descriptors)
            except TilewrightError as error:
                self._send_error(error.to_json())
            except MemoryError as error:
                message = str(error) or "out of memory"
                self._send_error({"kind": "MemoryError", "message": message})
            else:
                self._send({"ok": True, **answer})
                self.status.begin(Phase.WAITING)

    def _send_error(self, error: dict[str, Any]) -> None:
        """Send an error with the allocated memory; the status still names the failed launch."""
        self._send({"ok": False, "error": error, "held": allocated_bytes(), "before": self._before})

    def _descriptors(self, count: int) -> list[int]:
        found: list[int] = []
        while len(found) < count:
            _, more, _, _ = socket.recv_fds(self._link, 1, count)
            if not more:
                raise PipeClosedError
            found += more
        return found

    def _send(self, message: dict[str, Any]) -> None:
        write_frame(self._link.fileno(), message)

    def _do(self, request: dict[str, Any], blob: bytes, descriptors: list[int]) -> dict[str, Any]:
        match request["do"]:
            case "begin":
                self._status = SharedStatus(descriptors[0])
                os.close(descriptors[0])
                return {}
            case "prepare":
                return self._prepare()
            case "load":
                return self._load(request, blob, descriptors)
            case "run":
                return self._run(request, descriptors)
            case "verify":
                return self._verify(request, descriptors)
            case "interpret":
                return self._interpret(request, blob, descriptors)
            case "peaks":
                return self._peaks(request)
            case other:
                raise TilewrightError(f"unknown request {other!r}")

    @staticmethod
    def _prepare() -> dict[str, Any]:
        """Import the modules that run programs, and load the run-time library."""
        from ..runtime.executable import RuntimeTable

        RuntimeTable(threads=1)
        return {}

    def _load(self, request: dict[str, Any], blob: bytes, descriptors: list[int]) -> dict[str, Any]:
        from ..artifact import Artifact
        from ..runtime.executable import Executable
        from ..runtime.table import RuntimeTable

        self.status.begin(Phase.LOADING, len(self._programs))
        weights = SharedArrays(descriptors[0], request["layout"])
        artifact = Artifact.from_bytes(blob)
        own = None if artifact.target.is_gpu else RuntimeTable(threads=artifact.threads)
        executable = Executable(artifact, _constants(request["names"], weights), table=own)
        device = executable.device
        table = own if device is None else device.table
        recorder = LaunchRecorder(self.status, table.profile if table else 0)
        if table is not None:
            table.profile = recorder.address
        self._programs.append(LoadedProgram(executable, table, (weights, recorder)))
        if request["memory"]:
            self._before = limit_memory(int(request["memory"]), artifact.threads)
        return {"before": self._before}

    def _run(self, request: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
        plan, calls = request["plan"], self._calls(request)
        self.status.begin(Phase.PREPARING)
        with received_inputs(request, descriptors[0]) as arguments:
            copies = [_copied(arguments) for _ in calls]
            results = [self._results(k, call, copies[k]) for k, call in enumerate(calls)]
            self._send_results(results if request["results"] else [[] for _ in calls])
            if not plan["most"]:
                return {"kernels": [[] for _ in calls]}
            self.status.begin(Phase.TIMING)
            runs = [_repeating(call, arguments) for call in calls]
            take_rounds(runs, plan, self._send_samples, self._needs_more)
            kernels = [
                self._profiled(k, call, copies[k], int(plan["profiled"]))
                for k, call in enumerate(calls)
            ]
        return {"kernels": kernels}

    def _verify(self, request: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
        """Run once, and compare the results with exact ones in shared memory."""
        from ...ir.interpreter.oracle import Exact, compare

        (call,) = self._calls(request)
        self.status.begin(Phase.PREPARING)
        with (
            closing(SharedArrays(descriptors[1], request["exact"])) as shared,
            received_inputs(request, descriptors[0]) as arguments,
            shared_memory_counted(shared.size),
        ):
            results = self._results(0, call, arguments)
            exact = Exact.of(shared.arrays(), request["text"])
            return {"verdict": asdict(compare(results, exact))}

    def _calls(self, request: dict[str, Any]) -> list[Any]:
        """Return the functions of a request, and set the number of threads of their programs."""
        threads = int(request["threads"])
        for program in self._programs:
            program.table.limit(threads or program.executable.artifact.threads)
        return [p.call(f) for p, f in zip(self._programs, request["functions"], strict=True)]

    def _send_results(self, results: Sequence[Sequence[Any]]) -> None:
        arrays = [array for own in results for array in own]
        self._send_arrays(arrays, {"counts": [len(own) for own in results]})

    def _send_arrays(self, arrays: Sequence[Any], fields: dict[str, Any]) -> None:
        """Send arrays in shared memory, which the owner keeps as long as it uses them."""
        require_memory(sum(array.nbytes for array in arrays))
        with closing(SharedArrays.of(arrays)) as output:
            self._send({"ok": True, "results": output.layout, **fields})
            socket.send_fds(self._link, [b"\0"], [output.descriptor])

    def _results(self, program: int, call: Any, arguments: list[Any]) -> list[Any]:
        """Run once with the launches recorded, and return the results."""
        self.status.begin(Phase.CHECKING, program)
        sink = (ctypes.c_int64 * max(3 * len(call.spec.launches), 1))()
        return _listed(call.invoke(arguments, ctypes.addressof(sink)))

    def _profiled(self, program: int, call: Any, arguments: list[Any], times: int) -> Rounds:
        """Return the nanoseconds of every launch, per repetition."""
        self.status.begin(Phase.CHECKING, program)
        return [call.timed(arguments) for _ in range(times)]

    def _send_samples(self, batch: Rounds) -> None:
        self._send({"ok": True, "samples": batch})

    def _needs_more(self) -> bool:
        """Return whether the owner needs more samples; it answers every batch."""
        answer, _ = read_frame(self._link.fileno())
        return bool(answer["more"])

    def _interpret(
        self, request: dict[str, Any], blob: bytes, descriptors: list[int]
    ) -> dict[str, Any]:
        from ...ir.interpreter.oracle import interpreted
        from ...ir.script import parse

        self.status.begin(Phase.INTERPRETING)
        weights = SharedArrays(descriptors[0], request["weights"])
        if request["memory"]:
            self._before = limit_memory(int(request["memory"]), 1)
        with closing(weights), received_inputs(request, descriptors[1]) as inputs:
            module = parse(blob.decode(), constants=_constants(request["names"], weights))
            rounded = bool(request["rounded"])
            exact = interpreted(module, request["function"], inputs, rounded=rounded)
            self._send_arrays(exact.arrays, {"text": exact.text})
        return {}

    def _peaks(self, request: dict[str, Any]) -> dict[str, Any]:
        from ...target.target import Target
        from .peak_loops import vector
        from .peak_rates import operation_rate, read_rate

        self.status.begin(Phase.TIMING)
        features, threads = tuple(request["features"]), int(request["threads"])
        target = Target("cpu", arch=request["arch"], features=features, threads=1)
        instruction = vector(target)
        return {
            "instruction": instruction.name,
            "operations": operation_rate(instruction, target, threads),
            "bytes": [read_rate(target, threads, int(size)) for size in request["sizes"]],
        }


def _constants(names: Sequence[str], weights: SharedArrays) -> dict[str, Constant]:
    return {
        name: Constant(array.shape, from_numpy(array.dtype), _returning(array))
        for name, array in zip(names, weights.arrays(), strict=True)
    }


def _copied(arguments: Sequence[Any]) -> list[Any]:
    """Return copies of arguments, because the call may write them and its results are kept."""
    return [np.array(cast("Array", a)) if isinstance(a, np.ndarray) else a for a in arguments]


def _repeating(call: Any, arguments: Sequence[Any]) -> Callable[[], object]:
    return lambda: call.invoke(arguments)


def _listed(results: Any) -> list[Any]:
    """Return the results of a call as a list of arrays."""
    if isinstance(results, tuple):
        return [np.asarray(r) for r in cast("tuple[Any, ...]", results)]
    return [] if results is None else [np.asarray(results)]


def _returning(array: Any) -> Callable[[], Any]:
    return lambda: array


def _exit_with_owner(descriptor: int) -> None:
    """Exit when the owner exits, also while native code runs."""
    os.read(descriptor, 1)
    os._exit(1)


def _be_killed_first() -> None:
    """Let the system kill this process instead of its owner if the memory is exhausted."""
    with suppress(OSError):  # without the file system /proc, the system chooses
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def main() -> None:
    """Serve the owner at descriptor 0; descriptor 3 is closed when the owner exits."""
    _be_killed_first()
    threading.Thread(target=_exit_with_owner, args=(3,), daemon=True).start()
    Child(socket.socket(fileno=0)).serve()


if __name__ == "__main__":
    main()
