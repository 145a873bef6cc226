"""Compilation and linking of exported models with the tools of the extra ``cross``."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from ...target.cpus import FAMILIES
from ...target.target import Target
from .errors import LinkerMissingError, LinkError

TRIPLES: Final = {"x86_64": "x86_64-linux-gnu", **{k: v.linker for k, v in FAMILIES.items()}}
"""The target triples of the linker, by architecture."""

_FLAGS: Final = (
    "-O2", "-std=c11", "-ffreestanding", "-fno-sanitize=all", "-fvisibility=hidden", "-g0",
    "-fno-stack-protector", "-fno-builtin", "-fasynchronous-unwind-tables", "-ffunction-sections",
)  # fmt: skip
_PROTECTED: Final = {"x86_64": ("-fcf-protection=full",)}
"""The flags that mark code for Control-flow Enforcement Technology."""
_MACHINE: Final = {arch: family.c_flags for arch, family in FAMILIES.items()}
NATIVE: Final = Path(__file__).parent / "native"


def arch_of(target: Target) -> str:
    """Return the architecture of a target, by default x86-64."""
    return target.arch or "x86_64"


@cache
def linker() -> tuple[str, ...]:
    """Return the command of the compiler and linker driver.

    Raises
    ------
    LinkerMissingError
        If it is not installed.
    """
    if find_spec("ziglang") is None:
        raise LinkerMissingError(
            "an export compiles a C file and links it with the package 'ziglang', which is not "
            "installed",
            hint="install it with: pip install 'tilewright[cross]'",
        )
    return (sys.executable, "-m", "ziglang")


_FULL: Final[Mapping[str, int]] = {
    **{os.strerror(code): code for code in (errno.EFBIG, errno.ENOSPC, errno.EDQUOT)},
    "FileTooBig": errno.EFBIG,
    "NoSpaceLeft": errno.ENOSPC,
    "DiskQuota": errno.EDQUOT,
}
"""The errors of a full disk by their texts in the output of compiler and linker."""


def _cache_folder() -> str:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return str(Path(base) / "tilewright" / "linker")


def run_linker(arguments: Sequence[str], *, timeout: float = 600) -> None:
    """Run the compiler and linker driver.

    Raises
    ------
    LinkerMissingError
        If it is not installed.
    LinkError
        If it fails; the message contains its output.
    OSError
        If it cannot write a file because the disk is full or the size of files is limited.
    """
    folder = _cache_folder()
    environment = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": folder, "ZIG_LOCAL_CACHE_DIR": folder}
    done = subprocess.run(  # noqa: S603
        [*linker(), *arguments],
        env=environment, capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip
    if done.returncode:
        for text, code in _FULL.items():
            if text in done.stderr:
                raise OSError(code, os.strerror(code))
        raise LinkError(
            f"the linker exited with code {done.returncode}: {done.stderr.strip()[-2000:]}",
            hint="please report this defect, with the program",
        )


def compile_shim(source: str, folder: Path, target: Target, *, visible: bool) -> Path:
    """Compile the C file of a model to an object file.

    Parameters
    ----------
    source : str
        The C file.
    folder : Path
        The folder of its headers, and of the object file.
    target : Target
        The target.
    visible : bool
        Whether the public functions have default visibility. Otherwise a shared library that the
        object is linked into does not export them.
    """
    made = folder / "shim.o"
    with tempfile.TemporaryDirectory() as work:
        path = Path(work) / "model.c"
        path.write_text(source, encoding="utf-8")
        run_linker(
            [
                "cc", "-target", TRIPLES[arch_of(target)], *_FLAGS, "-fPIC",
                *_MACHINE.get(arch_of(target), ()), *_PROTECTED.get(arch_of(target), ()),
                *(() if visible else ("-DTW_EXPORT=",)),
                "-I", str(NATIVE), "-I", str(folder), "-c", str(path), "-o", str(made),
            ]
        )  # fmt: skip
    return made


def link_shared(
    objects: Sequence[Path], made: Path, target: Target, public: Sequence[str], debug: str
) -> None:
    """Link objects into a shared library without dependencies that exports the public symbols.

    With ``debug`` ``"symbols"`` it also contains the names of internal functions, for debuggers and
    profilers.
    """
    script = made.with_suffix(".map")
    names = "".join(f" {name};" for name in public)
    script.write_text(f"{{ global:{names} local: *; }};\n", encoding="utf-8")
    run_linker(
        [
            "cc", "-target", TRIPLES[arch_of(target)], "-shared", "-nostdlib",
            *(("-s",) if debug == "none" else ()), "-Wl,--build-id=sha1", "-Wl,--eh-frame-hdr",
            "-Wl,--gc-sections", f"-Wl,--version-script={script}", f"-Wl,-soname,{made.name}",
            "-o", str(made), *map(str, objects),
        ]
    )  # fmt: skip
    script.unlink()


def link_wasm(objects: Sequence[Path], made: Path, exported: Sequence[str], most: int = 0) -> None:
    """Link objects into a WebAssembly module that exports its memory, of at most ``most`` bytes.

    It imports the functions that its objects declare as imported. 0 means that the memory is not
    limited.
    """
    run_linker(
        [
            "wasm-ld", "--no-entry", "--export-memory", "--stack-first", "-z", "stack-size=1048576",
            "--strip-all", "--gc-sections", *((f"--max-memory={most}",) if most else ()),
            *(f"--export={name}" for name in exported),
            "-o", str(made), *map(str, objects),
        ]
    )  # fmt: skip


def archive(objects: Sequence[Path], made: Path) -> None:
    """Collect objects into a static library."""
    run_linker(["ar", "rcs", str(made), *map(str, objects)])


def join(objects: Sequence[Path], made: Path) -> None:
    """Link objects into one relocatable object.

    It keeps unused functions, in sections of their own: with ``--gc-sections``, LLD would remove
    the unwind tables as well. The linker of a program removes the functions.
    """
    run_linker(["ld.lld", "-r", "-o", str(made), *map(str, objects)])


def write_objects(objects: Mapping[str, bytes], folder: Path) -> list[Path]:
    """Write object files with numbered names, in the order of their keys."""
    paths: list[Path] = []
    for k, name in enumerate(sorted(objects)):
        path = folder / f"part{k}.o"
        path.write_bytes(objects[name])
        paths.append(path)
    return paths
