"""The CUDA driver, by PyCUDA and by its C interface.

PyCUDA opens the device and manages its context and its memory pool. Generated code launches kernels
without Python and needs their addresses, which PyCUDA does not provide. So modules are loaded with
the C interface of the driver.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from ....errors import TilewrightError
from ...errors import DeviceUnavailableError, LaunchError, OutOfMemoryError

if TYPE_CHECKING:
    from types import ModuleType

LIBRARY: Final = "libcuda.so.1"

_CALLED: Final = (
    "cuCtxPopCurrent_v2", "cuCtxPushCurrent_v2", "cuCtxSetCurrent", "cuDeviceGetCount",
    "cuDevicePrimaryCtxRetain", "cuDriverGetVersion", "cuFuncSetAttribute", "cuGetErrorString",
    "cuEventCreate", "cuEventRecord", "cuInit", "cuLaunchKernel", "cuMemAlloc_v2", "cuMemFree_v2",
    "cuMemcpy", "cuMemcpyAsync", "cuModuleGetFunction", "cuModuleLoadData", "cuStreamCreate",
    "cuStreamSynchronize", "cuStreamWaitEvent",
)  # fmt: skip
"""The driver functions that PyCUDA or this package call."""

OUT_OF_MEMORY: Final = 2
REJECTED: Final = (200, 209, 218, 222)
"""Error codes of an image that the driver rejects: invalid, for another GPU, newer PTX version."""

GUIDE: Final = "docs/gpu.md describes the setup of a machine, also without network"


class WrongArchError(TilewrightError):
    """A kernel or target that the GPU of this machine, or its driver, does not support."""

    title = "Wrong GPU"


@dataclass(frozen=True, slots=True)
class Driver:
    """The library of the CUDA driver."""

    library: ctypes.CDLL

    def address(self, name: str) -> int:
        """Return the address of a driver function, for generated code."""
        return ctypes.cast(getattr(self.library, name), ctypes.c_void_p).value or 0

    def version(self) -> str:
        """Return the CUDA version that the driver supports."""
        number = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(number))
        return f"{number.value // 1000}.{number.value % 1000 // 10}"

    def message(self, code: int) -> str:
        """Return the message of a driver error code."""
        text = ctypes.c_char_p()
        self.library.cuGetErrorString(code, ctypes.byref(text))
        return f"{(text.value or b'unknown error').decode(errors='replace')} (CUDA error {code})"

    def call(self, name: str, *arguments: Any) -> None:
        """Call a driver function.

        Raises
        ------
        OutOfMemoryError
            If the GPU's memory is exhausted.
        LaunchError
            If the function returns another error code; an earlier kernel may be the cause.
        """
        code = int(getattr(self.library, name)(*arguments))
        if code == OUT_OF_MEMORY:
            raise OutOfMemoryError(f"{name}: {self.message(code)}")
        if code:
            raise LaunchError(f"{name}: {self.message(code)}", details={"code": code})


@cache
def driver() -> Driver:
    """Return the CUDA driver.

    Raises
    ------
    DeviceUnavailableError
        If the driver is not installed or too old.
    """
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise DeviceUnavailableError(
            f"no CUDA driver: {error}", hint=f"install the NVIDIA driver; {GUIDE}"
        ) from error
    missing = [name for name in _CALLED if not hasattr(library, name)]
    if missing:
        raise DeviceUnavailableError(
            f"the CUDA driver does not have the functions {', '.join(missing)}",
            hint="install a driver for CUDA 11 or newer",
        )
    return Driver(library)


@contextmanager
def lazily_bound() -> Generator[None]:
    """Load libraries with lazy binding, so that unused functions missing in the driver are fine."""
    flags = sys.getdlopenflags()
    sys.setdlopenflags(os.RTLD_LAZY | os.RTLD_LOCAL)
    try:
        yield
    finally:
        sys.setdlopenflags(flags)


@cache
def pycuda() -> ModuleType:
    """Return the initialized module ``pycuda.driver``.

    Raises
    ------
    DeviceUnavailableError
        If PyCUDA, the driver, or a GPU is missing.
    """
    driver()
    try:
        with lazily_bound():
            import pycuda.driver as module
    except ModuleNotFoundError as error:
        raise DeviceUnavailableError(
            f"PyCUDA is not installed ({error})",
            hint=f"'pip install pycuda' builds it and requires the CUDA headers; {GUIDE}",
        ) from error
    except ImportError as error:
        raise DeviceUnavailableError(
            f"PyCUDA cannot be loaded: {error}", hint=f"rebuild PyCUDA for this driver; {GUIDE}"
        ) from error
    try:
        module.init()
    except module.Error as error:
        raise DeviceUnavailableError(
            f"the CUDA driver cannot be initialized: {error}",
            hint="check with nvidia-smi that this process can use a GPU",
        ) from error
    if not module.Device.count():
        raise DeviceUnavailableError(
            "the CUDA driver reports no GPU",
            hint="check that CUDA_VISIBLE_DEVICES does not hide the GPU",
        )
    return module
