"""CUDA devices: context, memory, modules, and runtime table."""

from __future__ import annotations

import atexit
import ctypes
import threading
import weakref
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ....errors import TilewrightError
from ....ir.dtype import from_numpy
from ....ir.graph.devices import MOST_STREAMS, Device
from ....ir.packing import from_storage, storage_of
from ....target.gpus import STATIC_SHARED
from ....target.target import GPU_ARCHS, Target
from ...artifact import Artifact
from ...build.rtlib_object import rtlib_address
from ...errors import LaunchError, OutOfMemoryError
from ...nvidia import Image
from ...rtlib import devices, layout, providers
from ..device_tensor import DeviceTensor, Owner
from ..table import MemoryProvider, RuntimeTable
from .driver import REJECTED, WrongArchError, driver, pycuda

Array = NDArray[Any]

_MAX_DYNAMIC_SHARED: Final = 8
"""``CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES``."""


_NON_BLOCKING: Final = 1
"""``CU_STREAM_NON_BLOCKING``."""
_WITHOUT_TIMING: Final = 2
"""``CU_EVENT_DISABLE_TIMING``."""


class CudaDevice:
    """A GPU of this machine, opened once per process.

    It uses the primary context, which is shared with other libraries in the process, so PyTorch
    tensors on the same GPU are passed without a copy. Work is queued on the legacy default stream.
    """

    def __init__(self, ordinal: int = 0) -> None:
        """Open the GPU."""
        module = pycuda()
        self.kind = "cuda"
        gpu = module.Device(ordinal)
        self.ordinal = ordinal
        self.name: str = gpu.name()
        major, minor = gpu.compute_capability()
        self.capability: int = 10 * major + minor
        self.total_memory: int = gpu.total_memory()
        self._context = gpu.retain_primary_context()
        self._module = module
        self._lock = threading.RLock()
        self._pool = self._make_pool()
        self._blocks: dict[int, Any] = {}
        self._loaded: dict[tuple[tuple[str, ...], bytes, int], Mapping[str, int]] = {}
        self._streams = (ctypes.c_int64 * (layout.STREAM_BYTES // 8 * MOST_STREAMS))()
        self._description = self._describe()
        self.table = RuntimeTable(
            memory=MemoryProvider(self._allocate, self._free),
            launch=rtlib_address(devices.launch_with_cuda),
            profile=rtlib_address(devices.take_cuda_time),
            device=ctypes.addressof(self._description),
            copy=rtlib_address(devices.copy_with_cuda),
            devices={str(Device("cuda", ordinal)): None},
        )
        atexit.register(self.close)

    def _make_pool(self) -> Any:
        from pycuda.tools import DeviceMemoryPool

        with self._entered():
            return DeviceMemoryPool()

    @contextmanager
    def _entered(self) -> Generator[None]:
        """Push the context for PyCUDA, on one thread at a time."""
        with self._lock:
            self._context.push()
            try:
                yield
            finally:
                self._context.pop()

    def close(self) -> None:
        """Free all memory at process exit, while the context that PyCUDA's pool needs exists."""
        with self._entered():
            for block in self._blocks.values():
                block.free()
            self._blocks.clear()
            self._pool.stop_holding()
            del self._pool

    def _describe(self) -> ctypes.Array[ctypes.c_int64]:
        """Return the device description that generated code reads through its runtime table."""
        words = (ctypes.c_int64 * (layout.DEVICE_SIZE // 8))()
        cuda = driver()
        description = {
            layout.DEVICE_TYPE: layout.CUDA,
            layout.DEVICE_ORDINAL: self.ordinal,
            layout.DEVICE_HOST_ALLOC: rtlib_address(providers.provide_memory),
            layout.DEVICE_HOST_FREE: rtlib_address(providers.take_memory),
            layout.DEVICE_DRIVER_COPY_ASYNC: cuda.address("cuMemcpyAsync"),
            layout.DEVICE_DRIVER_LAUNCH: cuda.address("cuLaunchKernel"),
            layout.DEVICE_DRIVER_COPY: cuda.address("cuMemcpy"),
            layout.DEVICE_DRIVER_ENTER: cuda.address("cuCtxSetCurrent"),
            layout.DEVICE_DRIVER_WAIT: cuda.address("cuStreamSynchronize"),
            layout.DEVICE_CONTEXT: self._context.handle,
            layout.DEVICE_STREAMS: ctypes.addressof(self._streams),
            layout.DEVICE_STREAM_COUNT: 1,
            layout.DEVICE_DRIVER_RECORD: cuda.address("cuEventRecord"),
            layout.DEVICE_DRIVER_AWAIT: cuda.address("cuStreamWaitEvent"),
        }
        for offset, word in description.items():
            words[offset // 8] = word
        return words

    def open_streams(self, count: int) -> None:
        """Create streams, and events that other streams wait for, until there are ``count``.

        Streams other than 0 do not wait for the legacy default stream implicitly.
        """
        if count == 1:
            return
        self.enter()
        with self._lock:
            for k in range(count):
                stream, event = ctypes.c_void_p(self._streams[2 * k]), ctypes.c_void_p()
                if self._streams[2 * k + 1]:
                    continue
                if k:
                    driver().call("cuStreamCreate", ctypes.byref(stream), _NON_BLOCKING)
                driver().call("cuEventCreate", ctypes.byref(event), _WITHOUT_TIMING)
                self._streams[2 * k], self._streams[2 * k + 1] = stream.value or 0, event.value or 0
            at = layout.DEVICE_STREAM_COUNT // 8
            self._description[at] = max(self._description[at], count)

    def _allocate(self, size: int, _alignment: int) -> int:
        """Allocate memory from the pool, aligned to 256 bytes; return 0 on failure."""
        with self._entered():
            try:
                block = self._pool.allocate(max(size, 1))
            except self._module.MemoryError:
                return 0
            self._blocks[int(block)] = block
            return int(block)

    def _free(self, address: int) -> None:
        with self._entered():
            block = self._blocks.pop(address, None)
            if block is not None:
                block.free()

    @property
    def allocated(self) -> int:
        """The number of memory blocks in use."""
        return len(self._blocks)

    def trim(self) -> None:
        """Return unused memory of the pool to the driver."""
        with self._entered():
            self._pool.free_held()

    def upload(self, array: Array) -> DeviceTensor:
        """Copy an array to the GPU, compact in row-major order."""
        element = from_numpy(array.dtype)
        compact = storage_of(array, element)
        address = self._allocate(compact.nbytes, layout.ALIGNMENT)
        if not address:
            raise OutOfMemoryError(
                f"cannot allocate {compact.nbytes} bytes on {self.name}",
                hint=f"the GPU has {self.total_memory} bytes of memory in total",
                details={"bytes": compact.nbytes, "total": self.total_memory},
            )
        owner = Owner()
        weakref.finalize(owner, self._free, address).atexit = False
        tensor = DeviceTensor(address, array.shape, element, self, owner)
        self._copy(address, compact.ctypes.data, compact.nbytes)
        return tensor

    def download(self, tensor: DeviceTensor) -> Array:
        """Copy a tensor to a new array after all kernels that write it have finished."""
        content = np.empty(tensor.nbytes, np.uint8)
        self._copy(content.ctypes.data, tensor.address, content.nbytes)
        return from_storage(content, tensor.shape, tensor.dtype)

    def _copy(self, target: int, source: int, size: int) -> None:
        if size:
            self.enter()
            to, of, count = ctypes.c_uint64(target), ctypes.c_uint64(source), ctypes.c_size_t(size)
            driver().call("cuMemcpy", to, of, count)

    def enter(self) -> None:
        """Set the GPU's context for this thread."""
        driver().call("cuCtxSetCurrent", ctypes.c_void_p(self._context.handle))

    def wait(self) -> None:
        """Wait until all launched kernels have finished."""
        self.enter()
        driver().call("cuStreamSynchronize", ctypes.c_void_p(0))

    def load(self, artifact: Artifact) -> Mapping[str, int]:
        """Load an artifact's kernels, each image once; return their handles by name."""
        self.open_streams(max((f.streams for f in artifact.functions), default=1))
        handles: dict[str, int] = {}
        for spec in artifact.kernel_specs:
            names = tuple(filter(None, (spec.name, spec.narrow)))
            image = Image.from_bytes(artifact.images[spec.name])
            handles |= self._load(names, image, spec.shared)
        return handles

    def _load(self, names: tuple[str, ...], image: Image, shared: int) -> Mapping[str, int]:
        key = (names, image.loadable, shared)
        with self._lock:
            if key not in self._loaded:
                self._loaded[key] = self._load_functions(names, image, shared)
            return self._loaded[key]

    def _load_functions(
        self, names: tuple[str, ...], image: Image, shared: int
    ) -> Mapping[str, int]:
        """Load an image; return the handles of its functions, the versions of one kernel."""
        self.enter()
        module = self._load_module(names[0], image)
        handles: dict[str, int] = {}
        for name in names:
            function = ctypes.c_void_p()
            driver().call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
            if shared > STATIC_SHARED:
                driver().call("cuFuncSetAttribute", function, _MAX_DYNAMIC_SHARED, shared)
            handles[name] = function.value or 0
        return handles

    def _load_module(self, name: str, image: Image) -> ctypes.c_void_p:
        """Load the machine code if the GPU and its driver accept it, otherwise the PTX."""
        rejection = ""
        for content in self._loadable(name, image):
            module = ctypes.c_void_p()
            try:
                driver().call("cuModuleLoadData", ctypes.byref(module), content)
            except LaunchError as error:
                if error.details.get("code") not in REJECTED:
                    raise
                rejection = error.message
            else:
                return module
        raise WrongArchError(
            f"{self.name} cannot load kernel {name!r}: {rejection}",
            hint="update the driver if it is too old for the PTX version of the kernel",
        )

    def _loadable(self, name: str, image: Image) -> tuple[bytes, ...]:
        """Return the images that this GPU can load, in order of preference: machine code, PTX.

        Machine code runs on one generation of GPUs only. The driver may reject machine code of a
        newer toolkit but accept the PTX.
        """
        if not runs(self.capability, image.arch):
            raise WrongArchError(
                f"kernel {name!r} was compiled for {image.arch}, but {self.name} is "
                f"sm_{self.capability}",
                hint=f"compile for Target('cuda', arch='sm_{self.capability}')",
                details={"expected": image.arch, "actual": f"sm_{self.capability}"},
            )
        ptx = image.ptx.encode() + b"\0"
        same = self.capability // 10 == _number(image.arch) // 10
        return (image.cubin, ptx) if same and image.cubin else (ptx,)

    def failure(self, kernel: str, code: int) -> TilewrightError:
        """Return the error for the code that the driver returned for a launch or a copy."""
        message = driver().message(code)
        return LaunchError(
            f"{kernel!r} failed on {self.name}: {message}",
            hint="CUDA errors are asynchronous; an earlier kernel may be the cause",
            details={"kernel": kernel, "code": code},
        )

    def targets(self) -> str:
        """Return the target architectures that this GPU can run, as text."""
        return ", ".join(a for a in GPU_ARCHS if runs(self.capability, a))

    def __repr__(self) -> str:
        """Return index, name and architecture of the GPU as text."""
        return f"CudaDevice({self.ordinal}: {self.name}, sm_{self.capability})"


def _number(arch: str) -> int:
    return int(arch.removeprefix("sm_").rstrip("a"))


def runs(capability: int, arch: str) -> bool:
    """Return whether a GPU with a compute capability can run code for an architecture.

    Examples
    --------
    >>> runs(90, "sm_80"), runs(90, "sm_90a"), runs(100, "sm_90a")
    (True, True, False)
    """
    exact = arch.endswith("a")
    return capability == _number(arch) if exact else capability >= _number(arch)


@cache
def opened_device() -> CudaDevice:
    """Return the GPU of this process.

    Raises
    ------
    DeviceUnavailableError
        If PyCUDA, the driver, or a GPU is missing.
    """
    return CudaDevice()


def cuda_device(target: Target) -> CudaDevice:
    """Return the GPU that runs a target's kernels.

    Raises
    ------
    DeviceUnavailableError
        If PyCUDA, the driver, or a GPU is missing.
    WrongArchError
        If the GPU is older than the target.
    """
    device = opened_device()
    if not runs(device.capability, target.arch):
        raise WrongArchError(
            f"{target} does not run on {device.name}, which is sm_{device.capability}",
            hint=f"the GPU supports {device.targets()}",
            details={"expected": target.arch, "actual": f"sm_{device.capability}"},
        )
    return device
