"""A CUDA driver that is none: PyCUDA and the runtime run against it on a machine without a GPU."""

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
from tilewright.codegen.simt.device import SimtDevice

SOURCE = Path(__file__).with_name("fake_driver.c")
LAUNCHED = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint), ctypes.POINTER(ctypes.c_void_p)
)


def compiler() -> list[str]:
    """The C compiler of the machine, or that of the ``ziglang`` package."""
    found = shutil.which("gcc") or shutil.which("cc")
    return [found] if found else [sys.executable, "-m", "ziglang", "cc"]


def build(folder: Path) -> Path:
    """Compile the driver; its name is what PyCUDA and the runtime ask the system for."""
    made = folder / "libcuda.so.1"
    flags = ["-shared", "-fPIC", "-O1", "-w", "-Wl,-soname,libcuda.so.1"]
    subprocess.run([*compiler(), *flags, "-o", str(made), str(SOURCE)], check=True)
    return made


@dataclass
class FakeDriver:
    """The library, told what to pretend; ``calls`` is what was asked of it."""

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
        """Let SIMT execute the kernels of a program."""
        simt = tw.compile(program, tw.Target("simt", arch="sm_80"))
        emulator = SimtDevice(simt.target)
        emulator.load(simt.artifact)
        known = {k.program.lowered.name: k for k in emulator._kernels}
        counts = {n: len(k.program.lowered.function.params) for n, k in known.items()}
        self.on_launch(lambda name, dims, params: known[name].launch([0, *dims], params), counts)
        self.kept.append(emulator)

    def on_launch(
        self, function: Callable[[str, list[int], list[int]], int], counts: Mapping[str, int] | int
    ) -> None:
        """Let ``function`` be the GPU: the name, the launch's numbers, the arguments' addresses."""

        def launched(name, dims, params) -> int:
            count = counts if isinstance(counts, int) else counts[name.decode()]
            return function(name.decode(), list(dims[:7]), [params[k] for k in range(count)])

        callback = LAUNCHED(launched)
        self.kept.append(callback)
        self.library.fake_on_launch(callback)


@cache
def loaded() -> FakeDriver:
    """Load it, once a process, before anything asks for the real one."""
    folder = Path(tempfile.mkdtemp(prefix="tilewright-driver-"))
    try:
        return FakeDriver(ctypes.CDLL(str(build(folder)), ctypes.RTLD_GLOBAL))
    finally:
        shutil.rmtree(folder)
