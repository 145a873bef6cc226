"""One GPU: its context, memory, modules, and the runtime table whose kernels run on it."""

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

from ....ir.dtype import from_numpy
from ....ir.errors import TilewrightError
from ....ir.host import layout
from ....ir.host.support import devices, providers
from ....ir.target import GPU_ARCHS, Target
from ...artifact import Artifact
from ...nvidia import STATIC_SHARED, Image
from ..device_tensor import DeviceTensor, Owner
from ..errors import LaunchError, OutOfMemoryError
from ..support import support_address
from ..table import Memory, RuntimeTable
from .driver import REFUSED, WrongArchError, driver, pycuda

Array = NDArray[Any]

_MAX_DYNAMIC_SHARED: Final = 8
"""``CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES``."""


class CudaDevice:
    """A GPU of this machine, opened once a process.

    It shares its primary context with everything else in the process, so tensors of PyTorch on the
    same GPU are used where they are. Work is queued on the legacy default stream.
    """

    def __init__(self, ordinal: int = 0) -> None:
        """Open the GPU."""
        module = pycuda()
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
        self._loaded: dict[tuple[str, bytes, int], int] = {}
        self._description = self._describe()
        self.table = RuntimeTable(
            memory=Memory(self._allocate, self._free),
            launch=support_address(devices.launch_with_cuda),
            profile=support_address(devices.take_cuda_time),
            device=ctypes.addressof(self._description),
        )
        atexit.register(self.close)

    def _make_pool(self) -> Any:
        from pycuda.tools import DeviceMemoryPool

        with self._entered():
            return DeviceMemoryPool()

    @contextmanager
    def _entered(self) -> Generator[None]:
        """Let PyCUDA know the context, one thread at a time."""
        with self._lock:
            self._context.push()
            try:
                yield
            finally:
                self._context.pop()

    def close(self) -> None:
        """Free all memory, at the end of the process: PyCUDA's pool wants the context for it."""
        with self._entered():
            for block in self._blocks.values():
                block.free()
            self._blocks.clear()
            self._pool.stop_holding()
            del self._pool

    def _describe(self) -> ctypes.Array[ctypes.c_int64]:
        """Write the description that generated code finds through its table."""
        words = (ctypes.c_int64 * (layout.DEVICE_SIZE // 8))()
        known = driver()
        described = {
            layout.DEVICE_TYPE: layout.CUDA,
            layout.DEVICE_ORDINAL: self.ordinal,
            layout.DEVICE_HOST_ALLOC: support_address(providers.provide_memory),
            layout.DEVICE_HOST_FREE: support_address(providers.take_memory),
            layout.DEVICE_COPY: support_address(devices.copy_with_cuda),
            layout.DEVICE_DRIVER_LAUNCH: known.address("cuLaunchKernel"),
            layout.DEVICE_DRIVER_COPY: known.address("cuMemcpy"),
            layout.DEVICE_DRIVER_ENTER: known.address("cuCtxSetCurrent"),
            layout.DEVICE_DRIVER_WAIT: known.address("cuStreamSynchronize"),
            layout.DEVICE_CONTEXT: self._context.handle,
            layout.DEVICE_STREAM: 0,
        }
        for offset, word in described.items():
            words[offset // 8] = word
        return words

    # ------------------------------------------------------------ memory

    def _allocate(self, size: int, _alignment: int) -> int:
        """Take memory of the pool, whose blocks are aligned to 256 bytes; 0 where there is none."""
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
        """How many blocks of memory are in use."""
        return len(self._blocks)

    def trim(self) -> None:
        """Give what the pool keeps for later back to the driver."""
        with self._entered():
            self._pool.free_held()

    def upload(self, array: Array) -> DeviceTensor:
        """Copy an array to the GPU, its elements one after the other."""
        compact = np.ascontiguousarray(array).reshape(array.shape)
        address = self._allocate(compact.nbytes, layout.ALIGNMENT)
        if not address:
            raise OutOfMemoryError(
                f"no memory on {self.name} for {compact.nbytes} bytes",
                hint=f"it has {self.total_memory} bytes in all",
                details={"bytes": compact.nbytes, "total": self.total_memory},
            )
        owner = Owner()
        weakref.finalize(owner, self._free, address).atexit = False
        tensor = DeviceTensor(address, array.shape, from_numpy(array.dtype), self, owner)
        self._copy(address, compact.ctypes.data, compact.nbytes)
        return tensor

    def download(self, tensor: DeviceTensor) -> Array:
        """Copy a tensor to a new array, once all that writes it has run."""
        array: Array = np.empty(tensor.shape, tensor.dtype.numpy)
        self._copy(array.ctypes.data, tensor.address, array.nbytes)
        return array

    def _copy(self, target: int, source: int, size: int) -> None:
        if size:
            self.enter()
            to, of, count = ctypes.c_uint64(target), ctypes.c_uint64(source), ctypes.c_size_t(size)
            driver().call("cuMemcpy", to, of, count)

    def enter(self) -> None:
        """Make the GPU's context the one of this thread."""
        driver().call("cuCtxSetCurrent", ctypes.c_void_p(self._context.handle))

    def wait(self) -> None:
        """Wait until all that was launched has run."""
        self.enter()
        driver().call("cuStreamSynchronize", ctypes.c_void_p(0))

    # ------------------------------------------------------------ kernels

    def load(self, artifact: Artifact) -> Mapping[str, int]:
        """Load an artefact's kernels, each image once; give the handle of each."""
        shared = {k.name: k.shared for k in artifact.kernel_specs}
        return {
            name: self._load(name, Image.from_bytes(data), shared[name])
            for name, data in artifact.images.items()
        }

    def _load(self, name: str, image: Image, shared: int) -> int:
        key = (name, image.loadable, shared)
        with self._lock:
            if key not in self._loaded:
                self._loaded[key] = self._load_function(name, image, shared)
            return self._loaded[key]

    def _load_function(self, name: str, image: Image, shared: int) -> int:
        self.enter()
        function = ctypes.c_void_p()
        module = self._load_module(name, image)
        driver().call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        if shared > STATIC_SHARED:
            driver().call("cuFuncSetAttribute", function, _MAX_DYNAMIC_SHARED, shared)
        return function.value or 0

    def _load_module(self, name: str, image: Image) -> ctypes.c_void_p:
        """Load machine code where the GPU and its driver take it, else have them take the PTX."""
        refused = ""
        for content in self._loadable(name, image):
            module = ctypes.c_void_p()
            try:
                driver().call("cuModuleLoadData", ctypes.byref(module), content)
            except LaunchError as error:
                if error.details.get("code") not in REFUSED:
                    raise
                refused = error.message
            else:
                return module
        raise WrongArchError(
            f"{self.name} does not take kernel {name!r}: {refused}",
            hint="its driver is older than what was compiled: update it",
        )

    def _loadable(self, name: str, image: Image) -> tuple[bytes, ...]:
        """Give what this GPU may be handed, in order: its machine code, and PTX.

        Machine code is of one generation; one that was made by a newer toolkit than the driver's
        may be refused, the PTX then is not.
        """
        if not runs(self.capability, image.arch):
            raise WrongArchError(
                f"kernel {name!r} is for {image.arch}, {self.name} is sm_{self.capability}",
                hint=f"compile for Target('cuda', arch='sm_{self.capability}')",
                details={"wanted": image.arch, "found": f"sm_{self.capability}"},
            )
        ptx = image.ptx.encode() + b"\0"
        same = self.capability // 10 == _number(image.arch) // 10
        return (image.cubin, ptx) if same and image.cubin else (ptx,)

    def failure(self, kernel: str, code: int) -> TilewrightError:
        """Explain the code that the driver returned for a launch, or for a copy."""
        message = driver().message(code)
        return LaunchError(
            f"{kernel!r} on {self.name}: {message}",
            hint="an earlier kernel may be the cause: the driver tells late",
            details={"kernel": kernel, "code": code},
        )

    def targets(self) -> str:
        """List the arches of targets that this GPU runs."""
        return ", ".join(a for a in GPU_ARCHS if runs(self.capability, a))

    def __repr__(self) -> str:
        """Print which GPU it is."""
        return f"CudaDevice({self.ordinal}: {self.name}, sm_{self.capability})"


def _number(arch: str) -> int:
    return int(arch.removeprefix("sm_").rstrip("a"))


def runs(capability: int, arch: str) -> bool:
    """Whether a GPU of a compute capability runs what is made for an arch.

    Examples
    --------
    >>> runs(90, "sm_80"), runs(90, "sm_90a"), runs(100, "sm_90a")
    (True, True, False)
    """
    exact = arch.endswith("a")
    return capability == _number(arch) if exact else capability >= _number(arch)


@cache
def opened_device() -> CudaDevice:
    """Give this process's GPU.

    Raises
    ------
    DeviceUnavailableError
        If PyCUDA, the driver, or a GPU is missing.
    """
    return CudaDevice()


def cuda_device(target: Target) -> CudaDevice:
    """Give the GPU that a target's kernels run on.

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
            hint=f"it runs {device.targets()}",
            details={"wanted": target.arch, "found": f"sm_{device.capability}"},
        )
    return device
