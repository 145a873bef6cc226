"""WebGPU devices: memory, submissions, errors of kernels, and the runtime table."""

from __future__ import annotations

import ctypes
import os
import threading
import time
import weakref
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import cache
from itertools import count
from typing import Any, Final
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from ....errors import TilewrightError
from ....ir.dtype import from_numpy
from ....ir.packing import from_storage, storage_of
from ....target.target import Target
from ....target.webgpu import FEATURES, LANGUAGE_FEATURES
from ...artifact import Artifact
from ...build.rtlib_object import rtlib_address
from ...errors import DeviceUnavailableError, LaunchError, OutOfMemoryError, StoppedError
from ...rtlib import layout, providers
from ...wgsl import from_bytes
from ..device_tensor import DeviceTensor, Owner
from ..table import MemoryProvider, RuntimeTable
from .adapter import request_adapter, wgpu_module
from .kernel import ERROR_BYTES, Bound, WebGpuKernel
from .loop_limit import LoopRecord, ends_loops
from .memory import Block, BlockTable
from .pace import Pace

Array = NDArray[Any]

CODE_FAILED: Final = 1
"""The code of a launch or a copy whose error is recorded."""

MOST_LAUNCHES: Final = 64
"""The number of launches of a submission."""

_LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64
)
_COPY = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, *(ctypes.c_int64,) * 4
)
_PROFILE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)

_HANDLES = count(1)


class WebGpuDevice:
    """A GPU of this machine, opened once per process.

    Launches are recorded and submitted together. A read of a result waits for them.

    Parameters
    ----------
    module : module
        The package ``wgpu``, or an object with the parts of its interface that are used here.
    adapter : GPUAdapter
        The adapter to open.
    """

    def __init__(self, module: Any, adapter: Any) -> None:
        """Open the adapter with its own limits, and all optional features that targets name."""
        self._wgpu = module
        self.kind = "webgpu"
        self.stops_calls = True
        self.ordinal = 0
        self.name = str(adapter.info.get("device") or adapter.info.get("description") or "WebGPU")
        available = [f for f, name in FEATURES.items() if name in adapter.features]
        required = [FEATURES[f] for f in available]
        limits = {name: adapter.limits[name] for name in _RAISED_LIMITS if name in adapter.limits}
        self._device: Any = adapter.request_device_sync(
            required_features=required, required_limits=limits
        )
        known = getattr(self._wgpu.gpu, "wgsl_language_features", frozenset[str]())
        available += [f for f, name in LANGUAGE_FEATURES.items() if name in known]
        self.features = frozenset(available)
        self.errors: tuple[type[Exception], ...] = (self._wgpu.GPUError, RuntimeError, ValueError)
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._local = threading.local()
        self._blocks = BlockTable(self._create)
        self._alignment = int(self._device.limits["min-storage-buffer-offset-alignment"])
        self._most_bound = int(self._device.limits["max-storage-buffer-binding-size"])
        unit = int(self._device.limits["min-uniform-buffer-offset-alignment"])
        self._slot = -(-_SIZES_BYTES // unit) * unit
        usage = self._wgpu.BufferUsage
        self._sizes: Any = self._device.create_buffer(
            size=self._slot * MOST_LAUNCHES, usage=usage.UNIFORM | usage.COPY_DST
        )
        self._record: Any = self._device.create_buffer(
            size=32, usage=usage.STORAGE | usage.COPY_DST | usage.COPY_SRC
        )
        self._loops: LoopRecord | None = None
        self._pace = Pace(str(adapter.info.get("adapter_type", "")))
        self._staged = bytearray()
        self._encoder: Any = None
        self._pass: Any = None
        self._kernels: WeakValueDictionary[int, WebGpuKernel] = WeakValueDictionary()
        self._loaded: dict[bytes, tuple[WebGpuKernel, ...]] = {}
        self._handles: dict[int, int] = {}
        self._layouts: dict[int, Any] = {}
        self._callbacks = (_LAUNCH(self._launch), _COPY(self._copied), _PROFILE(self._profile))
        self._description = self._describe()
        launch, copy, profile = (
            ctypes.cast(c, ctypes.c_void_p).value or 0 for c in self._callbacks
        )
        self._take_time = _PROFILE(rtlib_address(providers.take_time))
        self.table = RuntimeTable(
            memory=MemoryProvider(self._allocate, self._free),
            launch=launch,
            profile=profile,
            device=ctypes.addressof(self._description),
            copy=copy,
        )

    def guard_loops(self) -> None:
        """Record the loops that the driver ends before their conditions do, if it does so.

        A read of results raises the error of a kernel with such a loop.
        """
        with self._entered():
            if ends_loops(self._wgpu, self._device):
                self._loops = LoopRecord(self._wgpu, self._device, self.name)

    def _describe(self) -> ctypes.Array[ctypes.c_int64]:
        """Return the device description that generated code reads through its runtime table."""
        words = (ctypes.c_int64 * (layout.DEVICE_SIZE // 8))()
        description = {
            layout.DEVICE_TYPE: layout.WEBGPU,
            layout.DEVICE_ORDINAL: self.ordinal,
            layout.DEVICE_HOST_ALLOC: rtlib_address(providers.provide_memory),
            layout.DEVICE_HOST_FREE: rtlib_address(providers.take_memory),
            layout.DEVICE_STREAM_COUNT: 1,
        }
        for offset, word in description.items():
            words[offset // 8] = word
        return words

    @contextmanager
    def _entered(self) -> Generator[None]:
        """Use the device on one thread at a time, and only in the process that opened it."""
        if os.getpid() != self._process:
            raise DeviceUnavailableError(
                f"{self.name} was opened by process {self._process}, and this is a fork of it",
                hint="start the process with the method 'spawn', or open the device in it first",
            )
        with self._lock:
            yield

    def _create(self, size: int) -> Any:
        usage = self._wgpu.BufferUsage
        return self._device.create_buffer(
            size=size, usage=usage.STORAGE | usage.COPY_DST | usage.COPY_SRC
        )

    def _allocate(self, size: int, _alignment: int) -> int:
        """Allocate a buffer; return its address, or 0 on failure."""
        if size > int(self._device.limits["max-buffer-size"]):
            return 0
        try:
            with self._entered():
                return self._blocks.allocate(size).address
        except (TilewrightError, *self.errors):
            return 0

    def _free(self, address: int) -> None:
        if os.getpid() != self._process:
            return
        with self._lock:
            block = self._blocks.free(address)
            if block is not None:
                self._destroy([block])

    def _destroy(self, blocks: list[Block]) -> None:
        if blocks:
            self._submit()
        for block in blocks:
            for kernel in self._kernels.values():
                kernel.forget(block.address)
            block.buffer.destroy()

    @property
    def allocated(self) -> int:
        """The number of buffers in use."""
        return self._blocks.count

    def trim(self) -> None:
        """Destroy all unused buffers."""
        with self._entered():
            self._destroy(self._blocks.trim())

    def upload(self, array: Array) -> DeviceTensor:
        """Copy an array to the device, compact in row-major order."""
        element = from_numpy(array.dtype)
        compact = storage_of(array, element)
        address = self._allocate(compact.nbytes, layout.ALIGNMENT)
        if not address:
            with self._entered():
                most = int(self._device.limits["max-buffer-size"])
            raise OutOfMemoryError(
                f"cannot allocate {compact.nbytes} bytes on {self.name}",
                hint=f"a buffer of this adapter has at most {most} bytes",
                details={"bytes": compact.nbytes, "limit": most},
            )
        owner = Owner()
        weakref.finalize(owner, self._free, address).atexit = False
        tensor = DeviceTensor(address, array.shape, element, self, owner)
        with self._entered():
            self._write(address, compact.ctypes.data, compact.nbytes)
        return tensor

    def download(self, tensor: DeviceTensor) -> Array:
        """Copy a tensor to a new array after all kernels that write it have finished."""
        content = np.empty(tensor.nbytes, np.uint8)
        with self._entered():
            self._read(content.ctypes.data, tensor.address, content.nbytes)
        return from_storage(content, tensor.shape, tensor.dtype)

    def wait(self) -> None:
        """Wait until all launched kernels have finished.

        A read of a few bytes waits for them: the function of the package that waits raises a
        ``TypeError`` in some versions.
        """
        with self._entered():
            self._submit()
            self._device.queue.read_buffer(self._record, 0, ERROR_BYTES)
            self._check_loops()

    def _check_loops(self) -> None:
        if self._loops is not None:
            self._loops.check()

    def _at(self, address: int) -> tuple[Block, int]:
        found = self._blocks.find(address)
        if found is None:
            raise LaunchError(
                f"address {address:#x} is not in a buffer of {self.name}",
                hint="this is a bug in the memory plan; report it with the program",
            )
        return found

    def _write(self, target: int, source: int, size: int) -> None:
        """Copy host memory to a buffer, in words; other bytes of the edge words are kept."""
        if not size:
            return
        self._submit()
        block, start = self._at(target)
        first, last = start // 4 * 4, -(-(start + size) // 4) * 4
        content = ctypes.string_at(source, size)
        if first < start or (last > start + size and last - start - size and start % 4):
            old = bytes(self._device.queue.read_buffer(block.buffer, first, last - first))
            content = old[: start - first] + content + old[start - first + size :]
        else:
            content += bytes(last - start - size)
        self._device.queue.write_buffer(block.buffer, first, content)

    def _read(self, target: int, source: int, size: int) -> None:
        """Copy a buffer to host memory after all kernels have finished."""
        if not size:
            return
        self._submit()
        self._check_loops()
        block, start = self._at(source)
        first, last = start // 4 * 4, -(-(start + size) // 4) * 4
        content = bytes(self._device.queue.read_buffer(block.buffer, first, last - first))
        ctypes.memmove(target, content[start - first : start - first + size], size)

    def _move(self, target: int, source: int, size: int) -> None:
        """Copy between buffers; one copy of whole words if both starts are words."""
        if not size:
            return
        to, start = self._at(target)
        of, first = self._at(source)
        if start % 4 == first % 4 == size % 4 == 0 and to is not of:
            self._end_pass()
            self._begin()
            self._encoder.copy_buffer_to_buffer(of.buffer, first, to.buffer, start, size)
            return
        memory = ctypes.create_string_buffer(size)
        self._read(ctypes.addressof(memory), source, size)
        self._write(target, ctypes.addressof(memory), size)

    def _begin(self) -> None:
        if self._encoder is None:
            self._encoder = self._device.create_command_encoder()

    def _end_pass(self) -> None:
        if self._pass is not None:
            self._pass.end()
            self._pass = None

    def _wait_for_earlier(self) -> None:
        """Wait for the launches that were submitted, not for those that are only recorded."""
        if self._pace.running:
            start = time.perf_counter()
            self._device.queue.read_buffer(self._record, 0, 4)
            self._pace.waited(start, time.perf_counter())

    def _submit(self, last: float = 0.0) -> None:
        """Submit all recorded launches and copies; ``last`` is the work of one not yet recorded."""
        self._end_pass()
        self._pace.submitted(time.perf_counter(), last)
        if self._encoder is None:
            return
        encoder, self._encoder = self._encoder, None
        staged, self._staged = self._staged, bytearray()
        if staged:
            self._device.queue.write_buffer(self._sizes, 0, staged)
        self._device.queue.submit([encoder.finish()])

    def bind(self, kernel: str, address: int, size: int) -> Bound:
        """Return the binding of a buffer argument.

        Raises
        ------
        LaunchError
            If it has more bytes than a shader can access.
        """
        if size > self._most_bound:
            raise LaunchError(
                f"an argument has {size} bytes; a shader on {self.name} can access "
                f"{self._most_bound} bytes of a buffer",
                where=f"kernel {kernel!r}",
                hint="pass smaller tensors, or compile for another target",
                details={"bytes": size, "limit": self._most_bound},
            )
        if size <= 0:
            empty = self._empty()
            return Bound(empty, 0, 4, 0)
        block, offset = self._at(address)
        start = offset // self._alignment * self._alignment
        if offset % 4:
            raise LaunchError(
                f"an argument starts at byte {offset} of a buffer, which is not a multiple of 4",
                where=f"kernel {kernel!r}",
            )
        whole = -(-(offset - start + size) // 4) * 4
        return Bound(block, start, min(whole, block.size - start), (offset - start) // 4)

    def _empty(self) -> Block:
        """Return a buffer for the bindings of tensors without elements."""
        if not hasattr(self, "_nothing"):
            self._nothing = self._blocks.allocate(1)
        return self._nothing

    def pipeline(self, name: str, text: str, bindings: int) -> tuple[Any, Any]:
        """Return the pipeline of a shader and the layout of its bind group."""
        if self._loops is not None:
            bindings += 1
            text = self._loops.guarded(name, text, bindings)
        group = self._layouts.get(bindings)
        if group is None:
            group = self._layouts[bindings] = self._make_layout(bindings)
        module = self._device.create_shader_module(label=name, code=text)
        pipeline = self._device.create_compute_pipeline(
            label=name,
            layout=self._device.create_pipeline_layout(bind_group_layouts=[group]),
            compute={"module": module, "entry_point": "main"},
        )
        return pipeline, group

    def _make_layout(self, bindings: int) -> Any:
        visibility = self._wgpu.ShaderStage.COMPUTE
        entries: list[dict[str, Any]] = [
            {
                "binding": 0,
                "visibility": visibility,
                "buffer": {"type": "uniform", "has_dynamic_offset": True},
            }
        ]
        entries += [
            {"binding": k + 1, "visibility": visibility, "buffer": {"type": "storage"}}
            for k in range(bindings)
        ]
        return self._device.create_bind_group_layout(entries=entries)

    def bind_group(self, layout_: Any, bound: list[Bound], *, checked: bool) -> Any:
        """Return a bind group: the sizes, the buffers, and the records of checks and loops."""
        ranges = [(self._sizes, 0, self._slot)]
        ranges += [(b.block.buffer, b.start, b.size) for b in bound]
        ranges += [(self._record, 0, 32)] if checked else []
        ranges += [] if self._loops is None else [(self._loops.buffer, 0, 4)]
        entries = [
            {"binding": k, "resource": {"buffer": buffer, "offset": start, "size": size}}
            for k, (buffer, start, size) in enumerate(ranges)
        ]
        return self._device.create_bind_group(layout=layout_, entries=entries)

    def record(
        self,
        pipeline: Any,
        group: Any,
        numbers: bytes,
        dispatch: tuple[int, int, int],
        *,
        checked: bool,
        work: int = 0,
    ) -> None:
        """Record a launch; one with checks starts with an empty record.

        Earlier launches are submitted first if they take long, and they wait for those before them,
        so that an interrupt of the call leaves little work to the device.
        """
        if len(numbers) > self._slot:
            raise LaunchError(
                f"a launch has {len(numbers)} bytes of sizes; at most {self._slot} are supported",
                hint="use fewer symbols in one kernel",
            )
        if self._pace.is_full(work):
            self._wait_for_earlier()
            self._submit(work)
        if len(self._staged) + self._slot > self._slot * MOST_LAUNCHES:
            self._submit(work)
        if checked:
            self._submit(work)
            self._device.queue.write_buffer(self._record, 0, bytes(32))
        self._begin()
        if self._pass is None:
            self._pass = self._encoder.begin_compute_pass()
        offset = len(self._staged)
        self._staged += numbers + bytes(self._slot - len(numbers))
        self._pass.set_pipeline(pipeline)
        self._pass.set_bind_group(0, group, [offset])
        self._pass.dispatch_workgroups(*dispatch)

    def load(self, artifact: Artifact) -> Mapping[str, int]:
        """Load an artifact's kernels; return the handles of all versions by name."""
        found: dict[str, int] = {}
        with self._entered():
            for spec in artifact.kernel_specs:
                content = artifact.images[spec.name]
                kernels = self._loaded.get(content)
                if kernels is None:
                    kernels = tuple(WebGpuKernel(self, s) for s in from_bytes(content))
                    self._loaded[content] = kernels
                    for kernel in kernels:
                        handle = next(_HANDLES)
                        self._handles[id(kernel)] = handle
                        self._kernels[handle] = kernel
                found |= {k.shader.name: self._handles[id(k)] for k in kernels}
        return found

    def failure(self, kernel: str, code: int) -> TilewrightError | None:
        """Return the error of the last failed launch or copy of this thread."""
        failed: BaseException | None = getattr(self._local, "failed", None)
        self._local.failed = None
        if isinstance(failed, KeyboardInterrupt):
            raise failed
        if failed is None or isinstance(failed, TilewrightError):
            return failed
        error = LaunchError(
            f"{kernel!r} failed on {self.name}: {type(failed).__name__}: {failed}",
            details={"kernel": kernel, "code": code},
        )
        error.__cause__ = failed
        return error

    def _guarded(self, action: Callable[[], None]) -> int:
        """Run an action of native code, which cannot raise; record its error."""
        try:
            with self._entered():
                action()
        except BaseException as error:  # noqa: BLE001 - the call raises it by `failure`
            self._local.failed = error
            return CODE_FAILED
        return 0

    def _launch(self, call: int, record: int, arguments: int, number: int) -> int:
        """Launch a kernel unless the call is stopped; function ``LAUNCH`` of the runtime table."""
        words = (ctypes.c_int64 * (layout.RECORD_SIZE // 8)).from_address(record)
        addresses = (ctypes.c_int64 * max(number, 1)).from_address(arguments)

        def start() -> None:
            if ctypes.c_int64.from_address(call + layout.CALL_STOP).value:
                raise StoppedError("the call was stopped before it launched all its kernels")
            kernel = self._kernels[words[layout.RECORD_HANDLE // 8]]
            at = layout.RECORD_GRID // 8
            values = [ctypes.c_int64.from_address(a).value for a in addresses[:number]]
            kernel.launch(words[at : at + 3], values)
            if kernel.shader.messages:
                self._check(kernel)

        return self._guarded(start)

    def _check(self, kernel: WebGpuKernel) -> None:
        """Raise the error of the first failed check of a launch."""
        self._submit()
        record = bytes(self._device.queue.read_buffer(self._record, 0, ERROR_BYTES))
        self._check_loops()
        error = kernel.failed_check(record)
        if error is not None:
            raise error

    def _copied(
        self, _call: int, target: int, source: int, size: int, _to: int, _of: int, _stream: int
    ) -> int:
        """Copy between memories; function ``COPY`` of the runtime table."""

        def move() -> None:
            to, of = self._blocks.find(target), self._blocks.find(source)
            if to is not None and of is not None:
                self._move(target, source, size)
            elif to is not None:
                self._write(target, source, size)
            elif of is not None:
                self._read(target, source, size)
            else:
                ctypes.memmove(target, source, size)

        return self._guarded(move)

    def _profile(self, call: int, launch: int, phase: int) -> None:
        """Record the time of a launch including the kernel; function ``PROFILE`` of the table."""
        self._guarded(self.wait)
        self._take_time(call, launch, phase)

    def __repr__(self) -> str:
        """Return the name of the adapter as text."""
        return f"WebGpuDevice({self.name})"


_SIZES_BYTES: Final = 1024
"""The bytes of the sizes of one launch."""

_RAISED_LIMITS: Final = (
    "max-buffer-size",
    "max-storage-buffer-binding-size",
    "max-storage-buffers-per-shader-stage",
)
"""The limits of the adapter that replace the portable ones."""


@cache
def opened_device() -> WebGpuDevice:
    """Return the GPU of this process.

    Raises
    ------
    DeviceUnavailableError
        If the package ``wgpu`` or a driver is missing.
    """
    device = WebGpuDevice(wgpu_module(), request_adapter())
    device.guard_loops()
    return device


def webgpu_device(target: Target) -> WebGpuDevice:
    """Return the GPU that runs a target's kernels.

    Raises
    ------
    DeviceUnavailableError
        If the package or a driver is missing, or the adapter lacks a feature of the target.
    """
    device = opened_device()
    missing = [f for f in target.features if f not in device.features]
    if missing:
        raise DeviceUnavailableError(
            f"{device.name} has no {', '.join(missing)}, which {target} requires",
            hint=f"its features are {', '.join(sorted(device.features)) or 'none'}",
            details={"missing": list(missing)},
        )
    return device
