"""The CUDA driver: PyCUDA where it does, its C interface where generated code calls it itself.

PyCUDA opens the device, keeps its context and its pool of memory. The address of a kernel is not
to be had from it, and generated code starts kernels without Python, so modules are loaded through
the driver's library itself.
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

from ....ir.errors import TilewrightError
from ..errors import DeviceUnavailableError, LaunchError, OutOfMemoryError

if TYPE_CHECKING:
    from types import ModuleType

LIBRARY: Final = "libcuda.so.1"

_CALLED: Final = (
    "cuCtxPopCurrent_v2", "cuCtxPushCurrent_v2", "cuCtxSetCurrent", "cuDeviceGetCount",
    "cuDevicePrimaryCtxRetain", "cuDriverGetVersion", "cuFuncSetAttribute", "cuGetErrorString",
    "cuInit", "cuLaunchKernel", "cuMemAlloc_v2", "cuMemFree_v2", "cuMemcpy",
    "cuModuleGetFunction", "cuModuleLoadData", "cuStreamSynchronize",
)  # fmt: skip
"""What is called of the driver, by PyCUDA or from here."""

OUT_OF_MEMORY: Final = 2
REFUSED: Final = (200, 209, 218, 222)
"""Codes of an image that the driver does not take: invalid, for another GPU, PTX that is newer."""

GUIDE: Final = "docs/gpu.md says how to set a machine up, also without network"


class WrongArchError(TilewrightError):
    """Kernels were compiled for another GPU than the one here."""

    title = "Wrong GPU"


@dataclass(frozen=True, slots=True)
class Driver:
    """The driver's library, and the functions of it that are called from here."""

    library: ctypes.CDLL

    def address(self, name: str) -> int:
        """Give the address of a function of the driver, for generated code."""
        return ctypes.cast(getattr(self.library, name), ctypes.c_void_p).value or 0

    def version(self) -> str:
        """Give the version of CUDA that the driver is of."""
        number = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(number))
        return f"{number.value // 1000}.{number.value % 1000 // 10}"

    def message(self, code: int) -> str:
        """Say what a code of the driver means."""
        text = ctypes.c_char_p()
        self.library.cuGetErrorString(code, ctypes.byref(text))
        return f"{(text.value or b'unknown error').decode(errors='replace')} (CUDA error {code})"

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of the driver.

        Raises
        ------
        OutOfMemoryError
            If the GPU's memory is exhausted.
        LaunchError
            If it fails in another way; what ran before may be the cause.
        """
        code = int(getattr(self.library, name)(*arguments))
        if code == OUT_OF_MEMORY:
            raise OutOfMemoryError(f"{name}: {self.message(code)}")
        if code:
            raise LaunchError(f"{name}: {self.message(code)}", details={"code": code})


@cache
def driver() -> Driver:
    """Give the driver's library.

    Raises
    ------
    DeviceUnavailableError
        If there is none.
    """
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise DeviceUnavailableError(
            f"no CUDA driver: {error}", hint=f"install NVIDIA's driver; {GUIDE}"
        ) from error
    absent = [name for name in _CALLED if not hasattr(library, name)]
    if absent:
        raise DeviceUnavailableError(
            f"the CUDA driver lacks {', '.join(absent)}",
            hint="Tilewright needs a driver of CUDA 11 or newer",
        )
    return Driver(library)


@contextmanager
def lazily_bound() -> Generator[None]:
    """Load libraries so that functions newer than the driver matter only where they are called."""
    flags = sys.getdlopenflags()
    sys.setdlopenflags(os.RTLD_LAZY | os.RTLD_LOCAL)
    try:
        yield
    finally:
        sys.setdlopenflags(flags)


@cache
def pycuda() -> ModuleType:
    """Give ``pycuda.driver``, initialised.

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
            hint=f"pip install pycuda builds it where the CUDA headers are; {GUIDE}",
        ) from error
    except ImportError as error:
        raise DeviceUnavailableError(
            f"PyCUDA cannot be loaded: {error}", hint=f"build it again for this driver; {GUIDE}"
        ) from error
    try:
        module.init()
    except module.Error as error:
        raise DeviceUnavailableError(
            f"the CUDA driver does not start: {error}",
            hint="nvidia-smi tells whether there is a GPU that this process may use",
        ) from error
    if not module.Device.count():
        raise DeviceUnavailableError(
            "the CUDA driver has no GPU", hint="CUDA_VISIBLE_DEVICES may hide it"
        )
    return module
