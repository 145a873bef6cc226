"""Assembly of PTX with ``ptxas``, and disassembly of machine code with ``nvdisasm``.

The programs of the installed PyPI packages are used, never those on PATH, because their versions
are part of the cache key.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from ...errors import TilewrightError

ASSEMBLER: Final = ("ptxas", "nvidia-cuda-nvcc")
DISASSEMBLER: Final = ("nvdisasm", "nvidia-cuda-nvdisasm")

TIMEOUT: Final = 120.0
"""The time limit of one kernel in seconds."""


class AssemblerMissingError(TilewrightError):
    """An NVIDIA assembler or disassembler that is not installed."""

    title = "Missing NVIDIA tool"


class AssemblerError(TilewrightError):
    """A run of ``ptxas`` or ``nvdisasm`` that failed or exceeded the time limit."""

    title = "NVIDIA tool failure"


@dataclass(frozen=True, slots=True)
class Resources:
    """The resource usage of a GPU kernel: registers per thread, memory in bytes, barriers.

    ``shared`` is the static shared memory per thread block, ``stack`` the local memory per thread;
    ``spill_stores`` and ``spill_loads`` are the bytes of register spills.
    """

    registers: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    shared: int = 0
    stack: int = 0
    barriers: int = 0


@dataclass(frozen=True, slots=True)
class Cubin:
    """An assembled kernel: ELF bytes and resource usage."""

    content: bytes
    resources: Resources


def _find(program: str, package: str) -> Path | None:
    try:
        found = distribution(package)
    except PackageNotFoundError:
        return None
    for file in found.files or ():
        if file.name == program:
            path = Path(str(file.locate()))
            return path if path.exists() else None
    return None


@cache
def assembler() -> Path | None:
    """Return the path of ``ptxas``, or None if the package is not installed."""
    return _find(*ASSEMBLER)


@cache
def disassembler() -> Path | None:
    """Return the path of ``nvdisasm``, or None if the package is not installed."""
    return _find(*DISASSEMBLER)


@cache
def assembler_version() -> str:
    """Return the name and version of the assembler; empty if it is not installed."""
    if assembler() is None:
        return ""
    return f"ptxas {distribution(ASSEMBLER[1]).version}"


def _missing(program: str, package: str) -> AssemblerMissingError:
    return AssemblerMissingError(
        f"{program} is not installed",
        hint=f"run 'pip install {package}'",
        details={"package": package},
    )


def assemble(ptx: str, arch: str) -> Cubin:
    """Assemble PTX for a GPU architecture.

    Parameters
    ----------
    ptx : str
        The text of a module.
    arch : str
        The architecture, such as ``sm_90a``.

    Returns
    -------
    Cubin
        The machine code, and the maximum resource usage of the kernels in the module.

    Raises
    ------
    AssemblerMissingError
        If the package with ``ptxas`` is not installed.
    AssemblerError
        If ``ptxas`` rejects the text or exceeds the time limit.
    """
    program = assembler()
    if program is None:
        raise _missing(*ASSEMBLER)
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx)
        command = [program, "-v", f"-arch={arch}", "-o", str(result), str(source)]
        output = _run(command)
        return Cubin(result.read_bytes(), read_resources(output))


def resource_table(kernels: Mapping[str, Resources | None]) -> str:
    """Return a table of the resource usage of kernels, one row per kernel.

    Examples
    --------
    >>> print(resource_table({"softmax": Resources(registers=32, shared=2048, barriers=1)}))
    kernel   registers  spilled B  shared B  stack B  barriers
    softmax         32          0      2048        0         1
    """
    width = max([6, *(len(name) for name in kernels)])
    lines = [f"{'kernel':<{width}}  registers  spilled B  shared B  stack B  barriers"]
    for name, used in kernels.items():
        if used is None:
            lines.append(f"{name:<{width}}  not assembled: ptxas is not installed")
            continue
        spilled = used.spill_stores + used.spill_loads
        lines.append(
            f"{name:<{width}}  {used.registers:>9}  {spilled:>9}  {used.shared:>8}"
            f"  {used.stack:>7}  {used.barriers:>8}"
        )
    return "\n".join(lines)


def _run(command: list[str | Path]) -> str:
    try:
        done = subprocess.run(  # noqa: S603  # a program of an installed package, no shell
            command, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired as error:
        name = Path(command[0]).name
        raise AssemblerError(f"{name} exceeded the time limit of {TIMEOUT:g} s") from error
    if done.returncode:
        output = (done.stderr or done.stdout).strip()
        raise AssemblerError(
            f"{Path(command[0]).name}: {output[-800:] or f'exit code {done.returncode}'}",
            hint="this is a bug in the code generator; report it with the program",
        )
    return done.stderr + done.stdout


_COUNTS: Final = {
    "registers": r"Used (\d+) registers",
    "spill_stores": r"(\d+) bytes spill stores",
    "spill_loads": r"(\d+) bytes spill loads",
    "shared": r"(\d+) bytes smem",
    "stack": r"(\d+) bytes stack frame",
    "barriers": r"used (\d+) barriers",
}


def read_resources(output: str) -> Resources:
    """Return the resource usage in the output of ``ptxas -v``, the maximum over all kernels.

    Examples
    --------
    >>> read_resources("ptxas info : Used 12 registers, used 1 barriers, 64 bytes smem")
    Resources(registers=12, spill_stores=0, spill_loads=0, shared=64, stack=0, barriers=1)
    """
    counts = {
        name: max((int(n) for n in re.findall(pattern, output)), default=0)
        for name, pattern in _COUNTS.items()
    }
    return Resources(**counts)


def disassemble(cubin: bytes) -> str:
    """Return the machine code of a kernel as text (SASS).

    Raises
    ------
    AssemblerMissingError
        If the package with ``nvdisasm`` is not installed.
    """
    program = disassembler()
    if program is None:
        raise _missing(*DISASSEMBLER)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "kernel.cubin")
        source.write_bytes(cubin)
        return _run([program, "-c", str(source)])
