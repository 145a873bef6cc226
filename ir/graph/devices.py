"""Devices and streams of tensors and of operations on memory.

A device is a memory and the processor that computes on it: ``default``, the device that a program
is compiled for, or a kind and an ordinal, such as ``cpu`` (the same as ``cpu:0``) or ``cuda:1``. A
stream is a number: operations of one stream run in program order, and those of different streams
may run at the same time. Stream 0 is that of the caller. A program has the results that it has if
all operations run in program order: operations of different streams that access the same memory
wait for each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from .nodes import (
    DEFAULT_DEVICE,
    AllocStorage,
    Call,
    CallDPSLibrary,
    CallTIR,
    CopyTensor,
    Info,
    LaunchKernel,
    LaunchLibrary,
    Rhs,
    TensorInfo,
    TupleInfo,
    Value,
    ViewTensor,
    operand_info,
)
from .visit import operands_of

KINDS: Final = ("cpu", "cuda")
"""The kinds of devices."""

MOST_STREAMS: Final = 32
"""The number of streams of a device."""

_DEVICE: Final = re.compile(r"(cpu|cuda)(?::(0|[1-9][0-9]{0,4}))?")


@dataclass(frozen=True, slots=True)
class Device:
    """A device by its kind and its ordinal among the devices of this kind."""

    kind: str
    ordinal: int

    def __str__(self) -> str:
        """Return the name; the ordinal 0 is omitted."""
        return f"{self.kind}:{self.ordinal}" if self.ordinal else self.kind


def device_named(name: str) -> Device | None:
    """Return a device by its name; None for ``default`` and for an invalid name.

    Examples
    --------
    >>> device_named("cuda:1"), device_named("cpu"), device_named("cpu:x")
    (Device(kind='cuda', ordinal=1), Device(kind='cpu', ordinal=0), None)
    """
    found = _DEVICE.fullmatch(name)
    return None if found is None else Device(found[1], int(found[2] or 0))


def devices_in(info: Info) -> Iterator[str]:
    """Yield the devices of the tensors of an annotation."""
    match info:
        case TensorInfo(device=device):
            yield device
        case TupleInfo(fields=fields):
            for field in fields:
                yield from devices_in(field)
        case _:
            return


def stream_of(right: Rhs) -> int:
    """Return the stream that a right-hand side runs on."""
    match right:
        case AllocStorage() | LaunchKernel() | CopyTensor():
            return right.stream
        case _:
            return 0


def device_problems(right: Rhs, info: Info, storages: Mapping[Value, str]) -> Iterator[str]:
    """Yield the problems of the devices and of the stream of a binding.

    ``storages`` are the devices of the storages so far.
    """
    from .operators import OPERATORS, get_operator  # operators import this module

    names = [*devices_in(info), *([right.device] if isinstance(right, AllocStorage) else [])]
    for name in dict.fromkeys(names):
        if name != DEFAULT_DEVICE and device_named(name) is None:
            yield f"{name!r} is not a device: expected 'default', 'cpu', 'cpu:1', 'cuda', ..."
    if not 0 <= stream_of(right) < MOST_STREAMS:
        yield f"stream {stream_of(right)} is not in [0, {MOST_STREAMS})"
    match right:
        case Call(op=op) if op in OPERATORS and get_operator(op).is_transfer:
            return
        case Call() | CallTIR() | CallDPSLibrary():
            yield from _different(right, info)
        case LaunchKernel() | LaunchLibrary():
            yield from _different(right, None)
        case ViewTensor(storage=base, info=own):
            of = storages.get(base) or next(devices_in(base.info), own.device)
            if of != own.device:
                yield f"a view on {own.device!r} of {base.name!r}, which is on {of!r}"
        case _:
            return


def _different(right: Rhs, info: Info | None) -> Iterator[str]:
    """Yield a problem if the operands and results of an operation are on different devices."""
    found = [
        (getattr(operand, "name", getattr(operand, "key", "?")), device)
        for operand in operands_of(right)
        for device in devices_in(operand_info(operand))
    ]
    found += [("the result", device) for device in devices_in(info)] if info is not None else []
    if len({device for _, device in found}) > 1:
        listed = ", ".join(f"{name} on {device!r}" for name, device in found)
        yield f"operands and results are on different devices: {listed}"
