"""Where the kernels of a GPU target run: what an executable asks of a device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from ...ir.errors import TilewrightError
from ...ir.target import Target
from ..artifact import Artifact
from .device_tensor import DeviceTensor, Holder
from .table import RuntimeTable


class Device(Protocol):
    """A GPU, or its emulation.

    Native code reaches it through the slots of its table: ``alloc`` and ``free`` give its memory,
    ``launch`` starts kernels by the handles that :meth:`load` gave.
    """

    @property
    def table(self) -> RuntimeTable:
        """The runtime table of calls whose kernels run here."""
        ...

    def load(self, artifact: Artifact) -> Mapping[str, int]:
        """Load an artefact's kernels; give the handle of each, valid as long as the device."""
        ...

    def failure(self, kernel: str, code: int) -> TilewrightError | None:
        """Explain the code that a launch returned; None leaves it to the caller."""
        ...


@runtime_checkable
class RemoteDevice(Device, Holder, Protocol):
    """A device with memory of its own."""

    def upload(self, array: NDArray[Any]) -> DeviceTensor:
        """Copy an array to the device, its elements one after the other."""
        ...


@runtime_checkable
class WatchedDevice(Device, Protocol):
    """A device that gives an account of what a call's kernels did."""

    def begin(self) -> None:
        """Start the account of a call on this thread."""
        ...


def device_of(target: Target) -> Device | None:
    """Give the device that runs a target's kernels; None for a CPU, which calls them by name.

    Raises
    ------
    DeviceUnavailableError
        If there is no such device here; the message says what is missing.
    """
    match target.kind:
        case "cuda":
            from .cuda.device import cuda_device

            return cuda_device(target)
        case "simt":
            from ..simt.device import SimtDevice

            return SimtDevice(target)
        case _:
            return None
