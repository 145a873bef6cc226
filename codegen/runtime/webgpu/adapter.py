"""The WebGPU driver of this machine, by the package ``wgpu``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import DeviceUnavailableError

if TYPE_CHECKING:
    from types import ModuleType

GUIDE = "docs/webgpu.md describes the setup of a machine"


def wgpu_module() -> ModuleType:
    """Return the package ``wgpu``.

    Raises
    ------
    DeviceUnavailableError
        If it is not installed, or its library cannot be loaded.
    """
    try:
        import wgpu
    except ImportError as error:
        raise DeviceUnavailableError(
            "the package 'wgpu' is not installed",
            hint=f"run 'pip install tilewright[webgpu]'; {GUIDE}",
        ) from error
    except (OSError, RuntimeError) as error:
        raise DeviceUnavailableError(
            f"the library of the package 'wgpu' cannot be loaded: {error}", hint=GUIDE
        ) from error
    return wgpu


def request_adapter() -> Any:
    """Return the adapter of this machine with the highest performance.

    Raises
    ------
    DeviceUnavailableError
        If ``wgpu`` is missing, or the machine has no driver.
    """
    module = wgpu_module()
    try:
        adapter = module.gpu.request_adapter_sync(power_preference="high-performance")
    except Exception as error:  # the package raises RuntimeError, or a subclass of its GPUError
        raise _no_adapter(error) from error
    if adapter is None:
        raise _no_adapter(None)
    return adapter


def _no_adapter(error: Exception | None) -> DeviceUnavailableError:
    return DeviceUnavailableError(
        "this machine has no adapter for WebGPU" + (f": {error}" if error else ""),
        hint="install a driver for Vulkan, Metal, or Direct3D 12; without a GPU, Debian's package "
        f"mesa-vulkan-drivers runs kernels on the processor; {GUIDE}",
    )
