"""A fake CUDA driver, with which PyCUDA and the runtime run on a machine without a GPU."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import tilewright as tw
from tilewright.codegen.runtime.simt_device import SimtDevice
from tilewright.ir.thread.index_width import SUFFIX

SOURCE = Path(__file__).with_name("fake_driver.c")
LAUNCHED = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint), ctypes.POINTER(ctypes.c_void_p)
)


def compiler() -> list[str]:
    """Return the command of the C compiler of the machine, or of the ``ziglang`` package."""
    path = shutil.which("gcc") or shutil.which("cc")
    return [path] if path else [sys.executable, "-m", "ziglang", "cc"]


def build(folder: Path) -> Path:
    """Compile the driver under the library name that PyCUDA and the runtime load."""
    library = folder / "libcuda.so.1"
    flags = ["-shared", "-fPIC", "-O1", "-w", "-Wl,-soname,libcuda.so.1"]
    subprocess.run([*compiler(), *flags, "-o", str(library), str(SOURCE)], check=True)
    return library


@dataclass
class FakeDriver:
    """The library of the fake driver; ``calls`` is the log of driver calls."""

    library: ctypes.CDLL

    def __post_init__(self) -> None:
        self.library.fake_calls.restype = ctypes.c_char_p
        self.library.fake_used.restype = ctypes.c_size_t
        self.library.fake_limit.argtypes = [ctypes.c_size_t]
        self.kept: list[object] = []

    @property
    def calls(self) -> list[str]:
        return self.library.fake_calls().decode().splitlines()

    @property
    def used(self) -> int:
        return self.library.fake_used()

    def reset(self) -> None:
        self.library.fake_reset()

    def emulate(self, program: tw.Schedule | tw.Module) -> None:
        """Execute the kernels of a program with the SIMT emulation."""
        simt = tw.compile(program, tw.Target("simt", arch="sm_80"))
        emulator = SimtDevice(simt.target)
        emulator.load(simt.artifact)
        kernels = {k.program.lowered.name: k for k in emulator._kernels}
        counts = {n: len(k.program.lowered.function.params) for n, k in kernels.items()}
        self.on_launch(lambda name, dims, params: kernels[name].launch([0, *dims], params), counts)
        self.kept.append(emulator)

    def on_launch(
        self, function: Callable[[str, list[int], list[int]], int], counts: Mapping[str, int] | int
    ) -> None:
        """Set the callback of launches, ``function(kernel, dimensions, argument addresses)``."""

        def launched(name, dims, params) -> int:
            kernel = name.decode().removesuffix(SUFFIX)  # both versions have the same parameters
            count = counts if isinstance(counts, int) else counts[kernel]
            return function(kernel, list(dims[:7]), [params[k] for k in range(count)])

        callback = LAUNCHED(launched)
        self.kept.append(callback)
        self.library.fake_on_launch(callback)


@cache
def loaded() -> FakeDriver:
    """Load the fake driver once per process, before the real driver is loaded."""
    folder = Path(tempfile.mkdtemp(prefix="tilewright-driver-"))
    try:
        return FakeDriver(ctypes.CDLL(str(build(folder)), ctypes.RTLD_GLOBAL))
    finally:
        shutil.rmtree(folder)
