"""The part of the interface of the package ``wgpu`` that devices use, executed by a page.

Operations are collected, and sent in one call before a result is read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from types import SimpleNamespace
from typing import Any, Final, Literal, TypeAlias

from ...errors import TilewrightError
from ..protocol_gpu import (
    MOST_BYTES,
    GpuCommand,
    GpuCopy,
    GpuCreate,
    GpuDestroy,
    GpuFacts,
    GpuFind,
    GpuGroup,
    GpuKeep,
    GpuLaunch,
    GpuOpen,
    GpuPipeline,
    GpuRead,
    GpuRecord,
    GpuRun,
    GpuSamples,
    GpuTime,
    GpuWrite,
    GpuWriteKept,
)
from .channel import PageChannel
from .errors import PageMessageError

KEPT_BYTES: Final = 1 << 17
"""The bytes from which on a content is kept by the page by its hash."""

MOST_COMMANDS: Final = 1000
"""The number of commands from which on they are sent."""

MOST_TEXT: Final = 1 << 20
"""The characters of shaders from which on commands are sent."""

UNIFORM: Final = 1
OTHER: Final = 2


@dataclass(eq=False, slots=True)
class Buffer:
    """A buffer of the page."""

    gpu: PageGpu
    number: int

    def destroy(self) -> None:
        """Destroy the buffer."""
        self.gpu.add(GpuDestroy("destroy", self.number))


@dataclass(frozen=True, slots=True)
class Item:
    """A recorded launch or copy: the name of the shader, empty for a copy, and its key.

    Launches with equal keys take equal times.
    """

    name: str
    key: tuple[object, ...]


@dataclass(eq=False, slots=True)
class Pipeline:
    """A pipeline of the page."""

    number: int
    name: str


@dataclass(eq=False, slots=True)
class Group:
    """A bind group of the page; it is created by the first launch, which knows the pipeline."""

    ranges: list[list[int]]
    number: int = 0


Command: TypeAlias = "tuple[GpuLaunch | GpuCopy, Item]"


@dataclass(eq=False, slots=True)
class Encoder:
    """Recorded launches and copies; a pass is the encoder itself."""

    gpu: PageGpu
    commands: list[Command] = field(default_factory=list[Command])
    _pipeline: Pipeline | None = None
    _group: Group | None = None
    _offset: int = 0

    def begin_compute_pass(self) -> Encoder:
        """Begin a pass."""
        return self

    def set_pipeline(self, pipeline: Pipeline) -> None:
        """Choose the shader of the next launch."""
        self._pipeline = pipeline

    def set_bind_group(self, _index: int, group: Group, offsets: Sequence[int]) -> None:
        """Choose the buffers of the next launch."""
        self._group, (self._offset,) = group, offsets

    def dispatch_workgroups(self, x: int, y: int, z: int) -> None:
        """Launch."""
        pipeline, group = self._pipeline, self._group
        if pipeline is None or group is None:
            raise PageMessageError("a launch needs a pipeline and a bind group")
        self.gpu.create_group(group, pipeline)
        launch = GpuLaunch("launch", pipeline.number, group.number, self._offset, [x, y, z])
        sizes = tuple(size for _, _, size in group.ranges)
        self.commands.append((launch, Item(pipeline.name, (pipeline.number, x, y, z, sizes))))

    def end(self) -> None:
        """End a pass."""

    def copy_buffer_to_buffer(
        self, source: Buffer, start: int, target: Buffer, offset: int, size: int
    ) -> None:
        """Copy between buffers."""
        self.copy(source, start, target, offset, size, timed=True)

    def copy(
        self, source: Buffer, start: int, target: Buffer, offset: int, size: int, *, timed: bool
    ) -> None:
        """Copy between buffers; only a copy of the program is timed."""
        made = GpuCopy("copy", source.number, start, target.number, offset, size, timed)
        self.commands.append((made, Item("", ("copy", size))))

    def finish(self) -> list[Command]:
        """Return the commands."""
        return self.commands


class PageGpu:
    """A GPU of a page: module, adapter, device, and queue of the package ``wgpu`` in one object.

    Parameters
    ----------
    channel : PageChannel
        The page.
    facts : GpuFacts
        The adapter.
    """

    def __init__(self, channel: PageChannel, facts: GpuFacts) -> None:
        """Start without buffers."""
        self.channel = channel
        self.facts = facts
        self.recorded: list[Item] = []
        self._records = False
        self._numbers = count(1)
        self._commands: list[GpuCommand] = []
        self._content = bytearray()
        self._text = 0
        # Names of the package.
        self.queue = self
        self.BufferUsage = SimpleNamespace(UNIFORM=UNIFORM, STORAGE=OTHER, COPY_DST=0, COPY_SRC=0)
        self.ShaderStage = SimpleNamespace(COMPUTE=0)
        self.GPUError = TilewrightError
        self.gpu = SimpleNamespace(wgsl_language_features=frozenset(facts.language))
        self.info = {"device": facts.name}
        self.features = frozenset(facts.features)
        self.limits = facts.limits

    @classmethod
    def opened(
        cls, channel: PageChannel, module: str, features: Sequence[str], language: Sequence[str]
    ) -> PageGpu:
        """Open the GPU of a page, with features by their names in the standard.

        Raises
        ------
        PageGpuMissingError
            If the page has none, or it lacks a feature.
        TilewrightError
            As :meth:`.PageChannel.call`.
        """
        work = GpuOpen("open", list(features), list(language))
        answer = channel.open(work, module.encode())
        if answer.facts is None:
            raise PageMessageError("the page opened a GPU without describing it")
        return cls(channel, answer.facts)

    def request_device_sync(self, **_options: object) -> PageGpu:
        """Return the device, which was opened with the limits of the adapter."""
        return self

    def add(self, command: GpuCommand) -> None:
        """Add a command to the next call."""
        self._commands.append(command)

    def flush(self) -> None:
        """Execute all commands in the page.

        Raises
        ------
        TilewrightError
            As :meth:`.PageChannel.call`.
        """
        if not self._commands:
            return
        commands, self._commands = self._commands, []
        content, self._content = bytes(self._content), bytearray()
        self._text = 0
        self.channel.call(GpuRun("run", commands), content)

    def create_buffer(self, *, size: int, usage: int) -> Buffer:
        """Return a new buffer."""
        buffer = Buffer(self, next(self._numbers))
        kind: Literal["storage", "uniform"] = "uniform" if usage & UNIFORM else "storage"
        self.add(GpuCreate("create", buffer.number, size, kind))
        return buffer

    def write_buffer(self, buffer: Buffer, offset: int, data: bytes | bytearray) -> None:
        """Write bytes; long contents are sent once, and kept by the page by their hash."""
        if len(data) >= KEPT_BYTES:
            name = self._kept(bytes(data))
            self.add(GpuWriteKept("write_kept", buffer.number, offset, name))
            return
        if (
            len(self._content) + len(data) > MOST_BYTES
            or len(self._commands) > MOST_COMMANDS
            or self._text > MOST_TEXT
        ):
            self.flush()
        start = len(self._content)
        self._content += data
        self.add(GpuWrite("write", buffer.number, offset, start, len(data)))

    def _kept(self, data: bytes) -> str:
        """Return the hash of a content after the page has it."""
        name = hashlib.sha256(data).hexdigest()
        answer, _ = self.channel.call(GpuFind("find", [name]))
        if answer.missing:
            for start in range(0, len(data), MOST_BYTES):
                work = GpuKeep("keep", name, len(data), start)
                self.channel.call(work, data[start : start + MOST_BYTES])
        return name

    def read_buffer(self, buffer: Buffer, offset: int, size: int) -> bytes:
        """Return words of a buffer after all commands."""
        self.flush()
        parts: list[bytes] = []
        for start in range(offset, offset + size, MOST_BYTES):
            length = min(MOST_BYTES, offset + size - start)
            _, content = self.channel.call(GpuRead("read", buffer.number, start, length))
            if len(content) != length:
                raise PageMessageError(
                    f"expected {length} bytes of a buffer, the page sent {len(content)}"
                )
            parts.append(content)
        return b"".join(parts)

    def create_command_encoder(self) -> Encoder:
        """Return an encoder."""
        return Encoder(self)

    def submit(self, several: Sequence[list[Command]]) -> None:
        """Add the commands of encoders."""
        for commands in several:
            for command, item in commands:
                self.add(command)
                timed = isinstance(command, GpuLaunch) or command.timed
                if self._records and timed:
                    self.recorded.append(item)

    def create_shader_module(self, *, label: str, code: str) -> tuple[str, str]:
        """Return the name and the text of a shader."""
        return label, code

    def create_pipeline_layout(self, *, bind_group_layouts: Sequence[int]) -> int:
        """Return the number of storage buffers."""
        return bind_group_layouts[0]

    def create_bind_group_layout(self, *, entries: Sequence[object]) -> int:
        """Return the number of storage buffers; the first entry is the uniform buffer."""
        return len(entries) - 1

    def create_compute_pipeline(
        self, *, label: str, layout: int, compute: dict[str, Any]
    ) -> Pipeline:
        """Return a pipeline; the page reports errors of the shader with the next call."""
        name, text = compute["module"]
        self._text += len(text)
        pipeline = Pipeline(next(self._numbers), label.partition("$")[0])
        self.add(GpuPipeline("pipeline", pipeline.number, name.partition("$")[0], text, layout))
        return pipeline

    def create_bind_group(self, *, layout: int, entries: Sequence[dict[str, Any]]) -> Group:
        """Return a bind group."""
        del layout
        resources = [entry["resource"] for entry in entries]
        return Group([[r["buffer"].number, r["offset"], r["size"]] for r in resources])

    def create_group(self, group: Group, pipeline: Pipeline) -> None:
        """Create a bind group in the page, once."""
        if not group.number:
            group.number = next(self._numbers)
            self.add(GpuGroup("group", group.number, pipeline.number, group.ranges))

    def record(self, *, on: bool) -> None:
        """Begin or end the record of the launches and copies to time."""
        self._records = on
        if on:
            self.recorded = []
        self.add(GpuRecord("record", on))

    def time(self, first: int, stop: int, *, repeats: int, most: int, seconds: float) -> GpuSamples:
        """Return times of recorded items.

        Raises
        ------
        TilewrightError
            As :meth:`.PageChannel.call`.
        """
        self.flush()
        work = GpuTime("time", first, stop, repeats, most, seconds)
        answer, _ = self.channel.call(work)
        samples = answer.samples
        if samples is None or not samples.nanoseconds:
            raise PageMessageError("the page timed kernels without sending times")
        if samples.items != len(self.recorded):
            raise PageMessageError(
                f"expected {len(self.recorded)} recorded items, the page has {samples.items}"
            )
        return samples
