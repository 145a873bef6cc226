"""A page without a browser: its calls run on a thread, on the WebGPU driver of this machine."""

from __future__ import annotations

import queue
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tilewright.codegen.runtime.webgpu.device import opened_device
from tilewright.codegen.sandbox.random_inputs import ArrayRecipe
from tilewright.ir.dtype import dtype
from tilewright.workbench.page.channel import Pages
from tilewright.workbench.page.drawing import draw
from tilewright.workbench.protocol_gpu import (
    GpuAnswer,
    GpuCall,
    GpuCommand,
    GpuCopy,
    GpuCreate,
    GpuDestroy,
    GpuDraw,
    GpuFacts,
    GpuFailure,
    GpuFind,
    GpuGroup,
    GpuKeep,
    GpuLaunch,
    GpuOpen,
    GpuPing,
    GpuPipeline,
    GpuRead,
    GpuRecord,
    GpuRun,
    GpuSamples,
    GpuTime,
    GpuWork,
    GpuWrite,
    GpuWriteKept,
)
from tilewright.workbench.serialization import to_plain

if TYPE_CHECKING:
    from collections.abc import Callable

CLIENT = "page"


def facts(**changes: Any) -> GpuFacts:
    limits = {
        "max-buffer-size": 1 << 28,
        "max-storage-buffer-binding-size": 1 << 27,
        "min-storage-buffer-offset-alignment": 256,
        "min-uniform-buffer-offset-alignment": 256,
    }
    return GpuFacts(**{
        "name": "fake GPU", "software": True, "features": ["timestamp-query"], "language": [],
        "limits": limits, "step": 1.0, "browser": "Fake 1", **changes,
    })  # fmt: skip


@dataclass
class FakePage:
    """A page that answers the calls of one client.

    ``answers`` is false for a page that is closed without a report, ``name`` differs after a
    reload, and ``before`` runs before each call and may return a failure.
    """

    client: str = CLIENT
    name: str = "first"
    answers: bool = True
    hidden: bool = False
    facts: GpuFacts = field(default_factory=facts)
    before: Callable[[GpuWork], GpuFailure | None] = lambda _work: None
    calls: list[GpuWork] = field(default_factory=list)
    largest: int = 0

    def __post_init__(self) -> None:
        self.pages = Pages(self.send)
        self.others: list[FakePage] = []
        self._queue: queue.Queue[tuple[GpuCall, list[bytes]]] = queue.Queue()
        self._kept: dict[str, bytearray] = {}
        self._gpu = _Gpu(self._kept)
        threading.Thread(target=self._serve, daemon=True).start()

    def send(self, call: GpuCall, buffers: list[bytes]) -> None:
        self.largest = max(self.largest, *map(len, buffers), 0)
        for page in (self, *self.others):
            page._queue.put((call, buffers))

    def _serve(self) -> None:
        while True:
            call, buffers = self._queue.get()
            if call.client != self.client or not self.answers:
                continue
            if not isinstance(call.work, GpuPing):
                self.calls.append(call.work)
            failure = self.before(call.work)
            if failure is not None:
                self.report(failure, call.call)
                continue
            try:
                result, content = self._result(call.work, buffers)
            except Exception as error:  # noqa: BLE001 - reported as the page would
                self.report(
                    GpuFailure("invalid", f"{type(error).__name__}: {error}", ""), call.call
                )
                continue
            self._answer(call.call, result, content)

    def _result(self, work: GpuWork, buffers: list[bytes]) -> tuple[dict[str, Any], bytes]:
        content = buffers[0] if buffers else b""
        match work:
            case GpuOpen():
                self._gpu = _Gpu(self._kept)
                return {"facts": self.facts}, b""
            case GpuRun(commands=commands):
                for command in commands:
                    self._gpu.execute(command, content)
                self._gpu.submit()
            case GpuRead(buffer=buffer, offset=offset, bytes=size):
                return {}, self._gpu.read(buffer, offset, size)
            case GpuFind(hashes=hashes):
                return {"missing": [h for h in hashes if h not in self._kept]}, b""
            case GpuKeep(hash=name, bytes=size, offset=offset):
                whole = self._kept.setdefault(name, bytearray(size))
                whole[offset : offset + len(content)] = content
            case GpuTime():
                return {"samples": self._gpu.time(work, self.facts.step)}, b""
            case _:
                pass
        return {}, b""

    def report(self, failure: GpuFailure, call: int = 0) -> None:
        self._answer(call, {"failure": failure}, b"")

    def _answer(self, call: int, result: dict[str, Any], content: bytes) -> None:
        answer = GpuAnswer("gpu_answer", self.client, call, self.name, self.hidden, **result)
        self.largest = max(self.largest, len(content))
        message: Any = to_plain(answer)
        target = self.others[0].pages if not self.pages._channels and self.others else self.pages
        target.receive(message, [content] if content else [])


class _Gpu:
    """The commands of a page on the device of the package ``wgpu``."""

    def __init__(self, kept: dict[str, bytearray]) -> None:
        own = opened_device()
        self._wgpu, self._device, self._kept = own._wgpu, own._device, kept
        self._objects: dict[int, Any] = {}
        self._layouts: dict[int, Any] = {}
        self._encoder: Any = None
        usage = self._wgpu.BufferUsage
        self._read: Any = self._device.create_buffer(size=4, usage=usage.COPY_SRC)
        self._recorded: list[GpuLaunch | GpuCopy] = []
        self._records = False

    def execute(self, command: GpuCommand, content: bytes) -> None:
        usage, objects = self._wgpu.BufferUsage, self._objects
        match command:
            case GpuCreate(buffer=buffer, bytes=size, usage=kind):
                bits = usage.UNIFORM if kind == "uniform" else usage.STORAGE | usage.COPY_SRC
                objects[buffer] = self._device.create_buffer(size=size, usage=bits | usage.COPY_DST)
            case GpuDestroy(buffer=buffer):
                self.submit()
                objects.pop(buffer).destroy()
            case GpuWrite(buffer=buffer, offset=offset, start=start, bytes=size):
                self._write(buffer, offset, content[start : start + size])
            case GpuWriteKept(buffer=buffer, offset=offset, hash=name):
                self._write(buffer, offset, bytes(self._kept[name]))
            case GpuDraw():
                limits = (command.low, command.high)
                recipe = ArrayRecipe("", (command.count,), dtype(command.dtype), *limits)
                self._write(command.buffer, command.offset, draw(recipe, command.seed).tobytes())
            case GpuPipeline():
                objects[command.pipeline] = self._pipeline(command)
            case GpuGroup(group=group, pipeline=pipeline, ranges=ranges):
                entries = [
                    {"binding": k, "resource": {"buffer": objects[b], "offset": o, "size": s}}
                    for k, (b, o, s) in enumerate(ranges)
                ]
                layout = objects[pipeline][1]
                objects[group] = self._device.create_bind_group(layout=layout, entries=entries)
            case GpuRecord(on=on):
                self._records = on
                self._recorded = [] if on else self._recorded
            case GpuLaunch() | GpuCopy():
                self._encode(command)
                if self._records and (isinstance(command, GpuLaunch) or command.timed):
                    self._recorded.append(command)

    def _encode(self, command: GpuLaunch | GpuCopy) -> None:
        self._encoder = self._encoder or self._device.create_command_encoder()
        objects = self._objects
        if isinstance(command, GpuCopy):
            source, target = objects[command.source], objects[command.target]
            self._encoder.copy_buffer_to_buffer(
                source, command.start, target, command.offset, command.bytes
            )
            return
        run = self._encoder.begin_compute_pass()
        run.set_pipeline(objects[command.pipeline][0])
        run.set_bind_group(0, objects[command.group], [command.offset])
        run.dispatch_workgroups(*command.grid)
        run.end()

    def _write(self, buffer: int, offset: int, data: bytes) -> None:
        self.submit()
        self._device.queue.write_buffer(self._objects[buffer], offset, data)

    def _pipeline(self, command: GpuPipeline) -> tuple[Any, Any]:
        layout = self._layouts.get(command.bindings)
        if layout is None:
            seen = self._wgpu.ShaderStage.COMPUTE
            uniform = {"type": "uniform", "has_dynamic_offset": True}
            kinds = [uniform, *({"type": "storage"} for _ in range(command.bindings))]
            layout = self._layouts[command.bindings] = self._device.create_bind_group_layout(
                entries=[
                    {"binding": k, "visibility": seen, "buffer": b} for k, b in enumerate(kinds)
                ]
            )
        module = self._device.create_shader_module(code=command.text)
        whole = self._device.create_pipeline_layout(bind_group_layouts=[layout])
        compute = {"module": module, "entry_point": "main"}
        return self._device.create_compute_pipeline(layout=whole, compute=compute), layout

    def submit(self) -> None:
        if self._encoder is not None:
            encoder, self._encoder = self._encoder, None
            self._device.queue.submit([encoder.finish()])

    def read(self, buffer: int, offset: int, size: int) -> bytes:
        self.submit()
        return bytes(self._device.queue.read_buffer(self._objects[buffer], offset, size))

    def time(self, work: GpuTime, step: float) -> GpuSamples:
        """Time some items once; the numbers of launches are those of the last submission."""
        fine = 0 < step < 10_000
        start = time.perf_counter_ns()
        for item in self._recorded[work.first : work.stop]:
            self._encode(item)
        self.submit()
        self._device.queue.read_buffer(self._read, 0, 4)  # waits
        taken = float(time.perf_counter_ns() - start)
        count = min(work.most, 60)
        clock = "timestamps" if fine else "submissions"
        repeats = 1 if fine else work.repeats or 8
        return GpuSamples(clock, repeats, [taken] * count, len(self._recorded))
