"""Messages between a session and a page that runs kernels on its GPU.

A session sends calls to one page, and the page answers each of them. Binary buffers follow both,
of at most :data:`MOST_BYTES` bytes each message.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

MOST_BYTES: Final = 4 << 20
"""The bytes of the buffers of a message: servers close connections with larger messages."""

DRAW_WORDS: Final = (0x9E3779B9, 0x85EBCA6B, 0xC2B2AE35)
"""The multipliers of the generator of random elements, of which both sides draw equal ones."""

GpuErrorKind: TypeAlias = Literal[
    "insecure", "old", "disabled", "no_adapter", "no_feature", "not_requested", "module", "lost",
    "closed", "shader", "invalid", "memory",
]  # fmt: skip
"""Why a page cannot run a call.

``insecure``, ``old``, and ``disabled`` are the reasons why a page has no ``navigator.gpu``.
"""


@dataclass(frozen=True, slots=True)
class GpuOpen:
    """A call to open the adapter, with optional features by their names in the standard.

    The buffer is the text of the module that runs the other calls.
    """

    kind: Literal["open"]
    features: list[str]
    language: list[str]


@dataclass(frozen=True, slots=True)
class GpuRun:
    """A call to execute commands in order; the buffer has the bytes that they write."""

    kind: Literal["run"]
    commands: list[GpuCommand]


@dataclass(frozen=True, slots=True)
class GpuRead:
    """A call for bytes of a buffer, in words; the answer has them."""

    kind: Literal["read"]
    buffer: int
    offset: int
    bytes: int


@dataclass(frozen=True, slots=True)
class GpuFind:
    """A call for the hashes of contents that the page does not keep."""

    kind: Literal["find"]
    hashes: list[str]


@dataclass(frozen=True, slots=True)
class GpuKeep:
    """A call to keep a content by its hash; the buffer is the part of it at an offset."""

    kind: Literal["keep"]
    hash: str
    bytes: int
    offset: int


@dataclass(frozen=True, slots=True)
class GpuTime:
    """A call to time the recorded items from ``first`` to before ``stop``.

    ``repeats`` is the number of repetitions in a sample; 0 lets the page choose it. Sampling ends
    after ``most`` samples or after some ``seconds``.
    """

    kind: Literal["time"]
    first: int
    stop: int
    repeats: int
    most: int
    seconds: float


@dataclass(frozen=True, slots=True)
class GpuPing:
    """A call that a page answers at once, also one whose timers are throttled."""

    kind: Literal["ping"]


@dataclass(frozen=True, slots=True)
class GpuClose:
    """A call to destroy the device and all buffers; kept contents remain."""

    kind: Literal["close"]


GpuWork: TypeAlias = GpuOpen | GpuRun | GpuRead | GpuFind | GpuKeep | GpuTime | GpuPing | GpuClose


@dataclass(frozen=True, slots=True)
class GpuCreate:
    """Create a buffer."""

    op: Literal["create"]
    buffer: int
    bytes: int
    usage: Literal["storage", "uniform"]


@dataclass(frozen=True, slots=True)
class GpuDestroy:
    """Destroy a buffer."""

    op: Literal["destroy"]
    buffer: int


@dataclass(frozen=True, slots=True)
class GpuWrite:
    """Write bytes of the call's buffer, from ``start`` on."""

    op: Literal["write"]
    buffer: int
    offset: int
    start: int
    bytes: int


@dataclass(frozen=True, slots=True)
class GpuWriteKept:
    """Write a content that the page keeps."""

    op: Literal["write_kept"]
    buffer: int
    offset: int
    hash: str


@dataclass(frozen=True, slots=True)
class GpuDraw:
    """Write random elements: floats between -1 and 1, or integers from ``low`` to before ``high``.

    Element ``k`` depends on the seed and ``k`` only.
    """

    op: Literal["draw"]
    buffer: int
    offset: int
    count: int
    dtype: Literal["f32", "i32"]
    seed: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class GpuCopy:
    """Copy between buffers; a copy of a record of checks is not ``timed``."""

    op: Literal["copy"]
    source: int
    start: int
    target: int
    offset: int
    bytes: int
    timed: bool


@dataclass(frozen=True, slots=True)
class GpuPipeline:
    """Create the pipeline of a shader with a uniform buffer and ``bindings`` storage buffers."""

    op: Literal["pipeline"]
    pipeline: int
    name: str
    text: str
    bindings: int


@dataclass(frozen=True, slots=True)
class GpuGroup:
    """Create a bind group: the buffer, offset, and bytes of each binding."""

    op: Literal["group"]
    group: int
    pipeline: int
    ranges: list[list[int]]


@dataclass(frozen=True, slots=True)
class GpuLaunch:
    """Launch a kernel with the numbers of the uniform buffer at an offset."""

    op: Literal["launch"]
    pipeline: int
    group: int
    offset: int
    grid: list[int]


@dataclass(frozen=True, slots=True)
class GpuRecord:
    """Record the copies and launches from now on for timing, in place of earlier records."""

    op: Literal["record"]
    on: bool


GpuCommand: TypeAlias = (
    GpuCreate
    | GpuDestroy
    | GpuWrite
    | GpuWriteKept
    | GpuDraw
    | GpuCopy
    | GpuPipeline
    | GpuGroup
    | GpuLaunch
    | GpuRecord
)


@dataclass(frozen=True, slots=True)
class GpuCall:
    """A call of one page, by the name of its client."""

    type: Literal["gpu"]
    client: str
    call: int
    work: GpuWork


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """The adapter of a page.

    ``software`` is true if it runs kernels on the processor. ``step`` is the resolution of
    timestamps in nanoseconds, 0 if there are none. ``browser`` is the name and version.
    """

    name: str
    software: bool
    features: list[str]
    language: list[str]
    limits: dict[str, int]
    step: float
    browser: str


@dataclass(frozen=True, slots=True)
class GpuSamples:
    """Times of calls in nanoseconds, each the mean of ``repeats`` repetitions.

    ``clock`` is ``timestamps`` for times that the GPU takes, and ``submissions`` for those from the
    submission to its completion, taken by the page.
    """

    clock: Literal["timestamps", "submissions"]
    repeats: int
    nanoseconds: list[float]
    items: int


@dataclass(frozen=True, slots=True)
class GpuFailure:
    """The reason of a failed call; ``subject`` is the missing feature or the shader, if any."""

    kind: GpuErrorKind
    message: str
    subject: str


@dataclass(frozen=True, slots=True)
class GpuAnswer:
    """The answer of a page to a call; call 0 is a report, such as a lost device.

    ``page`` identifies the loaded page; ``hidden`` states whether it was hidden during the call.
    """

    type: Literal["gpu_answer"]
    client: str
    call: int
    page: str
    hidden: bool
    failure: GpuFailure | None = None
    facts: GpuFacts | None = None
    missing: list[str] | None = None
    samples: GpuSamples | None = None
