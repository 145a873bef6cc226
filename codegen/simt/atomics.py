"""Atomic operations, executed one thread after the other in the order of thread indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir.dtype import DType
from ...ir.thread.nodes import AtomicOp, Reg
from .access import atomic
from .access_resolution import AccessRequest, AccessSpec
from .arrays import spread, where
from .element_operations import binary
from .frame import Frame
from .values import Run

Change = Callable[[Any, Any], Any]


def _change(op: AtomicOp, dtype: DType) -> Change:
    """Return the function of an old value and an operand to the new value."""
    return (lambda _, new: new) if op == "exchange" else binary(op, dtype)


def _spread(frame: Frame, value: Any) -> Any:
    return spread(value, (frame.count,))


def _assign(frame: Frame, reg: Reg | None, value: Any) -> None:
    if reg is None:
        return
    old = frame.registers.get(reg)
    if frame.active is not None and old is not None:
        value = where(frame.active, value, old)
    frame.registers[reg] = value


def reader(access: AccessSpec, address: Run, result: Reg) -> Callable[[Frame], None]:
    """Compile an atomic load."""

    def run(frame: Frame) -> None:
        old = atomic(AccessRequest(frame, access, "read"), address(frame), None)
        _assign(frame, result, old)

    return run


def writer(access: AccessSpec, address: Run, value: Run) -> Callable[[Frame], None]:
    """Compile an atomic store."""

    def run(frame: Frame) -> None:
        values = _spread(frame, value(frame))
        request = AccessRequest(frame, access, "write")
        atomic(request, address(frame), lambda _, thread: values[thread])

    return run


def updater(
    access: AccessSpec, address: Run, change: tuple[AtomicOp, DType, Run], result: Reg | None
) -> Callable[[Frame], None]:
    """Compile an atomic update."""
    op, dtype, value = change
    update = _change(op, dtype)

    def run(frame: Frame) -> None:
        values = _spread(frame, value(frame))
        request = AccessRequest(frame, access, "write")
        old = atomic(request, address(frame), lambda now, k: update(now, values[k]))
        _assign(frame, result, old)

    return run


def exchanger(
    access: AccessSpec, address: Run, pair: tuple[Run, Run], result: Reg
) -> Callable[[Frame], None]:
    """Compile a compare-and-exchange."""

    def run(frame: Frame) -> None:
        expected, desired = (_spread(frame, side(frame)) for side in pair)

        def choose(now: Any, thread: int) -> Any:
            return desired[thread] if now == expected[thread] else now

        request = AccessRequest(frame, access, "write")
        _assign(frame, result, atomic(request, address(frame), choose))

    return run
