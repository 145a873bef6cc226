"""The device of target ``simt``: launches of the host flow end in :func:`run_kernel`."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import count
from typing import Any, Final
from weakref import WeakValueDictionary

import numpy as np

from ...ir.errors import TilewrightError
from ...ir.host import layout
from ...ir.loop.nodes import Buffer
from ...ir.symbolic import Var, as_expr, evaluate
from ...ir.target import Target
from ..artifact import Artifact
from ..runtime.errors import KernelError
from ..runtime.table import RuntimeTable
from .frame import ALL_CHECKS, Checks
from .kernel import run_kernel
from .memory import Argument, BufferArgument
from .program import Program
from .report import Report
from .sites import Steps

CODE_FINDINGS: Final = 1
CODE_FAILED: Final = 2

_LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64
)


class SimtDevice:
    """Executes kernels on this machine's processor, and checks them.

    Parameters
    ----------
    target : Target
        The machine that is emulated.

    Attributes
    ----------
    checks : Checks
        What launches are checked for.
    collect : bool
        Keep findings in :attr:`reports` alone; a call does not fail for them.
    """

    def __init__(self, target: Target) -> None:
        """Load nothing yet."""
        self.target = target
        self.checks: Checks = ALL_CHECKS
        self.collect = False
        self._local = threading.local()
        self._last: tuple[Report, ...] = ()

    @property
    def table(self) -> RuntimeTable:
        """The runtime table of calls whose kernels run here."""
        return _table()

    @property
    def reports(self) -> tuple[Report, ...]:
        """The launches of the last call, in order."""
        return self._last

    def begin(self) -> None:
        """Forget the reports of earlier calls: a call begins on this thread."""
        self._local.reports = []
        self._local.failed = None
        self._last = ()

    def load(self, artifact: Artifact) -> Mapping[str, int]:
        """Take an artefact's kernels; give the handle of each."""
        self._kernels = [_Kernel(self, p) for _, p in sorted(artifact.programs.items())]
        for kernel in self._kernels:
            _KERNELS[kernel.handle] = kernel
        return {k.program.lowered.name: k.handle for k in self._kernels}

    def failure(self, kernel: str, code: int) -> TilewrightError | None:
        """Give the error of the launch that failed last on this thread."""
        failed: BaseException | None = getattr(self._local, "failed", None)
        if failed is None or isinstance(failed, TilewrightError):
            return failed
        error = KernelError(
            f"executing it failed with code {code}: {type(failed).__name__}: {failed}",
            where=f"kernel {kernel!r}",
        )
        error.__cause__ = failed
        return error

    def note(self, report: Report) -> TilewrightError | None:
        """Keep the report of a launch; give the error that it amounts to."""
        kept: list[Report] = getattr(self._local, "reports", [])
        kept.append(report)
        self._local.reports = kept
        self._last = tuple(kept)
        return None if self.collect else report.error()

    def fail(self, error: BaseException) -> None:
        """Keep what a launch failed with, for the call that made it."""
        self._local.failed = error


class _Kernel:
    """A loaded kernel: called with the launch record and the addresses of its arguments."""

    def __init__(self, device: SimtDevice, program: Program) -> None:
        self.device = device
        self.program = program
        self.handle = next(_HANDLES)
        self.steps = Steps(named=program.steps)

    def launch(self, record: Sequence[int], addresses: Sequence[int]) -> int:
        """Run it; give 0, or the code that :meth:`SimtDevice.failure` explains."""
        grid, block = (record[at // 8 : at // 8 + 3] for at in _GRID_AND_BLOCK)
        report = run_kernel(
            self.program.lowered.function,
            (grid[0], grid[1], grid[2]),
            (block[0], block[1], block[2]),
            self._arguments(addresses),
            checks=self.device.checks,
            steps=self.steps,
        )
        error = self.device.note(report)
        if error is None:
            return 0
        self.device.fail(error)
        return CODE_FINDINGS

    def _arguments(self, addresses: Sequence[int]) -> list[Argument]:
        lowered = self.program.lowered
        words = [ctypes.c_int64.from_address(a).value for a in addresses]
        split = len(lowered.buffers)
        count = len(lowered.symbols)
        given = dict(zip(self.program.symbols, words[split : split + count], strict=True))
        sizes = {symbol: given[symbol.name] for symbol in lowered.symbols}
        access = {p.uid: a for p, a in _accesses(self.program)}
        buffers = [
            _memory(buffer, word, sizes, access[buffer.uid])
            for buffer, word in zip(lowered.buffers, words[:split], strict=True)
        ]
        scratch = [self._scratch(sizes, word) for word in words[split + count :]]
        return [*buffers, *(sizes[s] for s in lowered.symbols), *scratch]

    def _scratch(self, sizes: Mapping[Var, int], address: int) -> BufferArgument:
        """View the memory of temporaries that neither a thread nor a block holds."""
        wanted = self.program.lowered.scratch
        length = 0 if wanted is None else int(evaluate(wanted, sizes))
        held: Any = (ctypes.c_uint8 * length).from_address(address)
        return BufferArgument(np.frombuffer(held, np.uint8), 1, (length,), defined=False)


_GRID_AND_BLOCK: Final = (layout.RECORD_GRID, layout.RECORD_BLOCK)
_HANDLES = count(1)
_KERNELS: WeakValueDictionary[int, _Kernel] = WeakValueDictionary()


def _accesses(program: Program) -> list[tuple[Buffer, str]]:
    from ...ir.loop.nodes import BufferParam

    return [(p.buffer, p.access) for p in program.source.params if isinstance(p, BufferParam)]


def _memory(buffer: Buffer, address: int, sizes: Mapping[Var, int], access: str) -> BufferArgument:
    """View the memory of a buffer parameter."""
    shape = tuple(int(evaluate(as_expr(d), sizes)) for d in buffer.shape)
    elements = int(np.prod(shape, dtype=np.int64))
    if buffer.strides is not None and elements:
        steps = (int(evaluate(as_expr(s), sizes)) for s in buffer.strides)
        elements = 1 + sum((d - 1) * s for d, s in zip(shape, steps, strict=True))
        shape = (elements,)
    size = elements * buffer.dtype.bytes
    if not size:
        return BufferArgument(np.zeros(0, np.uint8), buffer.dtype.bytes, shape)
    raw: Any = (ctypes.c_uint8 * size).from_address(address)
    return BufferArgument(
        np.frombuffer(raw, np.uint8),
        buffer.dtype.bytes,
        shape,
        defined=access != "out",
        writable=access != "in",
    )


def _start(_context: int, record: int, arguments: int, number: int) -> int:
    """Answer the table's ``launch``; nothing may be raised into native code."""
    words = (ctypes.c_int64 * (layout.RECORD_SIZE // 8)).from_address(record)
    addresses = (ctypes.c_int64 * max(number, 1)).from_address(arguments)
    kernel = _KERNELS.get(words[layout.RECORD_HANDLE // 8])
    if kernel is None:
        return CODE_FAILED
    try:
        return kernel.launch(list(words), list(addresses)[:number])
    except Exception as error:  # noqa: BLE001 - told to the caller by `failure`
        kernel.device.fail(error)
        return CODE_FAILED


_CALLBACK = _LAUNCH(_start)
"""Lives as long as the process, as the table that points to it does."""


@cache
def _table() -> RuntimeTable:
    return RuntimeTable(launch=ctypes.cast(_CALLBACK, ctypes.c_void_p).value or 0)
