"""Devices that run the kernels of GPU targets: interfaces that executables use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from ...errors import TilewrightError
from ...target.target import Target
from ..artifact import Artifact
from ..entry_names import public_name
from ..errors import DeviceUnavailableError
from ..manifest import FunctionSpec
from .device_tensor import DeviceTensor, TensorDevice
from .table import RuntimeTable


class Device(Protocol):
    """A GPU, or its emulation.

    Native code calls it through the slots of its runtime table: ``alloc`` and ``free`` manage its
    memory; ``launch`` launches kernels by the handles that :meth:`load` returns.
    """

    @property
    def table(self) -> RuntimeTable:
        """The runtime table of calls that launch kernels on this device."""
        ...

    def load(self, artifact: Artifact) -> Mapping[str, int]:
        """Load an artifact's kernels; return their handles, which are valid as long as the device.

        The keys are the names of the kernels.
        """
        ...

    def failure(self, kernel: str, code: int) -> TilewrightError | None:
        """Return the error for the code that a launch returned; None if there is no explanation."""
        ...


@runtime_checkable
class RemoteDevice(Device, TensorDevice, Protocol):
    """A device with memory that is separate from host memory."""

    def upload(self, array: NDArray[Any]) -> DeviceTensor:
        """Copy an array to the device, compact in row-major order."""
        ...


@runtime_checkable
class StoppingDevice(Device, Protocol):
    """A device that ends a call at its next launch if the call was asked to stop."""

    @property
    def stops_calls(self) -> bool:
        """Whether it does so."""
        ...


@runtime_checkable
class ReportingDevice(Device, Protocol):
    """A device that records reports of the kernels that a call launches."""

    def begin(self) -> None:
        """Start the reports of a new call on this thread."""
        ...


def require_devices(spec: FunctionSpec, table: RuntimeTable) -> None:
    """Check that a runtime table has the devices of a function.

    Raises
    ------
    DeviceUnavailableError
        If it lacks one; the message lists its devices.
    """
    missing = [device for device in spec.devices if device not in table.devices]
    if missing:
        raise DeviceUnavailableError(
            f"no device {', '.join(map(repr, missing))}; devices are "
            f"{', '.join(map(repr, sorted(table.devices)))}",
            where=f"function {public_name(spec.name)!r}",
            hint="use one of these devices, or pass table=RuntimeTable(devices={...}) to compile",
        )


def device_of(target: Target) -> Device | None:
    """Return the device that runs a target's kernels; None for a CPU, where kernels are functions.

    Raises
    ------
    DeviceUnavailableError
        If this machine has no such device; the message names the missing part.
    """
    match target.kind:
        case "cuda":
            from .cuda.device import cuda_device

            return cuda_device(target)
        case "webgpu" if target.in_browser:
            from .webgpu.pages import page_device

            return page_device(target)
        case "webgpu":
            from .webgpu.device import webgpu_device

            return webgpu_device(target)
        case "simt":
            from .simt_device import SimtDevice

            return SimtDevice(target)
        case _:
            return None
