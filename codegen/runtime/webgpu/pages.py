"""The GPU of a page: the device of target ``webgpu`` in a browser, which a workbench opens."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from ....target.target import Target
from ...errors import DeviceUnavailableError

if TYPE_CHECKING:
    from ..device import Device

_CURRENT: ContextVar[Device | None] = ContextVar("page_device", default=None)


@contextmanager
def used_page(device: Device) -> Generator[None]:
    """Load the executables for browsers on this thread for the GPU of a page."""
    token = _CURRENT.set(device)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def page_device(target: Target) -> Device:
    """Return the GPU of the page for which this thread loads an executable.

    Raises
    ------
    DeviceUnavailableError
        If there is none: only the page of a workbench runs kernels in a browser.
    """
    device = _CURRENT.get()
    if device is None:
        raise DeviceUnavailableError(
            f"{target} runs kernels in the page of a workbench, and this call has none",
            hint='display tw.Workbench(program, target) in a notebook, or use Target("webgpu") '
            "for the GPU of this machine",
        )
    return device
