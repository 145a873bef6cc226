"""The device of target ``simt``, which launches kernels with :func:`run_kernel`."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import count
from typing import Any, Final
from weakref import WeakValueDictionary

import numpy as np

from ...errors import TilewrightError
from ...ir.loop.nodes import Buffer
from ...ir.sizes import storage_bytes
from ...ir.symbolic import Var, as_expr, evaluate
from ...ir.thread.function import ThreadFunc
from ...target.target import Target
from ..artifact import Artifact
from ..errors import KernelError
from ..rtlib import layout
from ..simt.frame import ALL_CHECKS, Checks
from ..simt.kernel import run_kernel
from ..simt.memory_model import Argument, BufferArgument
from ..simt.program import SimtProgram
from ..simt.provenance import Steps
from ..simt.report import Report
from .table import RuntimeTable

CODE_FINDINGS: Final = 1
CODE_FAILED: Final = 2

_LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64
)


class SimtDevice:
    """A GPU emulated on the CPU, with checks.

    Parameters
    ----------
    target : Target
        The emulated GPU.

    Attributes
    ----------
    checks : Checks
        The checks of a launch.
    collect : bool
        If true, findings are only recorded in :attr:`reports` and do not fail the call.
    """

    def __init__(self, target: Target) -> None:
        """Create a device without kernels."""
        self.target = target
        self.checks: Checks = ALL_CHECKS
        self.collect = False
        self._local = threading.local()
        self._last: tuple[Report, ...] = ()

    @property
    def table(self) -> RuntimeTable:
        """The runtime table of calls that launch kernels on this device."""
        return _table()

    @property
    def reports(self) -> tuple[Report, ...]:
        """The reports of the launches of the last call, in order."""
        return self._last

    def begin(self) -> None:
        """Delete the reports of earlier calls, at the beginning of a call on this thread."""
        self._local.reports = []
        self._local.failed = None
        self._last = ()

    def load(self, artifact: Artifact) -> Mapping[str, int]:
        """Load an artifact's kernels; return their handles by name."""
        self._kernels = [
            _SimtKernel(self, program, function)
            for _, program in sorted(artifact.programs.items())
            for function in program.lowered.function.versions
        ]
        for kernel in self._kernels:
            _KERNELS[kernel.handle] = kernel
        return {k.function.name: k.handle for k in self._kernels}

    def failure(self, kernel: str, code: int) -> TilewrightError | None:
        """Return the error of the last failed launch on this thread."""
        failed: BaseException | None = getattr(self._local, "failed", None)
        if failed is None or isinstance(failed, TilewrightError):
            return failed
        error = KernelError(
            f"emulation failed with code {code}: {type(failed).__name__}: {failed}",
            where=f"kernel {kernel!r}",
        )
        error.__cause__ = failed
        return error

    def record(self, report: Report) -> TilewrightError | None:
        """Record the report of a launch; return its error, if any."""
        reports: list[Report] = getattr(self._local, "reports", [])
        reports.append(report)
        self._local.reports = reports
        self._last = tuple(reports)
        return None if self.collect else report.error()

    def fail(self, error: BaseException) -> None:
        """Record the error of a launch, which the call raises later."""
        self._local.failed = error


class _SimtKernel:
    """A loaded kernel, launched with a launch record and the addresses of its arguments."""

    def __init__(self, device: SimtDevice, program: SimtProgram, function: ThreadFunc) -> None:
        self.device = device
        self.program = program
        self.function = function
        self.handle = next(_HANDLES)
        self.steps = Steps(named=program.steps)

    def launch(self, record: Sequence[int], addresses: Sequence[int]) -> int:
        """Run the kernel; return 0, or an error code for :meth:`SimtDevice.failure`."""
        grid, block = (record[at // 8 : at // 8 + 3] for at in _GRID_AND_BLOCK)
        report = run_kernel(
            self.function,
            (grid[0], grid[1], grid[2]),
            (block[0], block[1], block[2]),
            self._arguments(addresses),
            checks=self.device.checks,
            steps=self.steps,
        )
        error = self.device.record(report)
        if error is None:
            return 0
        self.device.fail(error)
        return CODE_FINDINGS

    def _arguments(self, addresses: Sequence[int]) -> list[Argument]:
        lowered = self.program.lowered
        words = [ctypes.c_int64.from_address(a).value for a in addresses]
        split = len(lowered.buffers)
        count = len(lowered.symbols)
        values = dict(zip(self.program.symbols, words[split : split + count], strict=True))
        sizes = {symbol: values[symbol.name] for symbol in lowered.symbols}
        access = {p.uid: a for p, a in _accesses(self.program)}
        buffers = [
            _memory(buffer, word, sizes, access[buffer.uid])
            for buffer, word in zip(lowered.buffers, words[:split], strict=True)
        ]
        scratch = [self._scratch(sizes, word) for word in words[split + count :]]
        return [*buffers, *(sizes[s] for s in lowered.symbols), *scratch]

    def _scratch(self, sizes: Mapping[Var, int], address: int) -> BufferArgument:
        """Return the scratch memory of the launch as a buffer argument."""
        size = self.program.lowered.scratch
        length = 0 if size is None else int(evaluate(size, sizes))
        memory: Any = (ctypes.c_uint8 * length).from_address(address)
        raw = np.frombuffer(memory, np.uint8)
        return BufferArgument(raw, 1, (length,), defined=False, temporary=True)


_GRID_AND_BLOCK: Final = (layout.RECORD_GRID, layout.RECORD_BLOCK)
_HANDLES = count(1)
_KERNELS: WeakValueDictionary[int, _SimtKernel] = WeakValueDictionary()


def _accesses(program: SimtProgram) -> list[tuple[Buffer, str]]:
    from ...ir.loop.nodes import BufferParam

    return [(p.buffer, p.access) for p in program.source.params if isinstance(p, BufferParam)]


def _memory(buffer: Buffer, address: int, sizes: Mapping[Var, int], access: str) -> BufferArgument:
    """Return the memory of a buffer parameter as a buffer argument."""
    shape = tuple(int(evaluate(as_expr(d), sizes)) for d in buffer.shape)
    elements = int(np.prod(shape, dtype=np.int64))
    if buffer.strides is not None and elements:
        steps = (int(evaluate(as_expr(s), sizes)) for s in buffer.strides)
        elements = 1 + sum((d - 1) * s for d, s in zip(shape, steps, strict=True))
        shape = (elements,)
    size = storage_bytes(elements, buffer.dtype)
    if not size:
        return BufferArgument(np.zeros(0, np.uint8), buffer.dtype.alignment, shape)
    raw: Any = (ctypes.c_uint8 * size).from_address(address)
    return BufferArgument(
        np.frombuffer(raw, np.uint8),
        buffer.dtype.alignment,
        shape,
        defined=access != "out" or buffer.dtype.is_packed,
        writable=access != "in",
    )


def _launch(_context: int, record: int, arguments: int, number: int) -> int:
    """Launch a kernel; function ``LAUNCH`` of the runtime table, which must not raise."""
    words = (ctypes.c_int64 * (layout.RECORD_SIZE // 8)).from_address(record)
    addresses = (ctypes.c_int64 * max(number, 1)).from_address(arguments)
    kernel = _KERNELS.get(words[layout.RECORD_HANDLE // 8])
    if kernel is None:
        return CODE_FAILED
    try:
        return kernel.launch(list(words), list(addresses)[:number])
    except Exception as error:  # noqa: BLE001 - the call raises it by `failure`
        kernel.device.fail(error)
        return CODE_FAILED


_CALLBACK = _LAUNCH(_launch)
"""The callback of the runtime table, which is never destroyed."""


@cache
def _table() -> RuntimeTable:
    return RuntimeTable(launch=ctypes.cast(_CALLBACK, ctypes.c_void_p).value or 0)
