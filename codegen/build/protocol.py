"""The protocol of compile workers: frames of JSON and bytes on pipes."""

from __future__ import annotations

import json
import os
import select
import struct
import time
from collections.abc import Callable
from typing import Any

_HEADER = struct.Struct("<II")
LARGEST = 1 << 30


class PipeClosedError(Exception):
    """A pipe that the other process closed."""


class PipeTimeoutError(Exception):
    """A process that did not answer before the deadline."""


def write_frame(descriptor: int, message: dict[str, Any], blob: bytes = b"") -> None:
    """Write one frame: the lengths of both parts, JSON, bytes."""
    text = json.dumps(message).encode()
    data = memoryview(_HEADER.pack(len(text), len(blob)) + text + blob)
    while data:
        try:
            data = data[os.write(descriptor, data) :]
        except BrokenPipeError as error:
            raise PipeClosedError from error


def _read_exactly(
    descriptor: int, count: int, deadline: float | None, poll: Callable[[], None] | None
) -> bytes:
    parts: list[bytes] = []
    while count:
        if deadline is not None or poll is not None:
            _wait(descriptor, deadline, poll)
        part = os.read(descriptor, min(count, 1 << 20))
        if not part:
            raise PipeClosedError
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _wait(descriptor: int, deadline: float | None, poll: Callable[[], None] | None) -> None:
    while not select.select([descriptor], [], [], 0.05)[0]:
        if poll is not None:
            poll()
        if deadline is not None and time.monotonic() > deadline:
            raise PipeTimeoutError


def read_frame(
    descriptor: int, *, deadline: float | None = None, poll: Callable[[], None] | None = None
) -> tuple[dict[str, Any], bytes]:
    """Read one frame; ``poll`` is called while waiting and may raise to stop waiting.

    Raises
    ------
    PipeClosedError
        If the other process closes the pipe, also in the middle of a frame.
    PipeTimeoutError
        If the deadline (of ``time.monotonic``) passes.
    """
    header = _read_exactly(descriptor, _HEADER.size, deadline, poll)
    text_length, blob_length = _HEADER.unpack(header)
    if max(text_length, blob_length) > LARGEST:
        raise PipeClosedError
    text = _read_exactly(descriptor, text_length, deadline, poll)
    blob = _read_exactly(descriptor, blob_length, deadline, poll)
    return json.loads(text), blob
