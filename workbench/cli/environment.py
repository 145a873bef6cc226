"""The commands ``lab``, ``cache`` and ``doctor``."""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from ...errors import Json, TilewrightError
from ...target.host import HOST_FEATURES, host_cap
from ...target.target import GPU_ARCHS, Target
from ..selection import bytes_text
from .command import Command, CommandError, Output


def _lab_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "path", nargs="?", default=".", help="notebook or folder to open (default: .)"
    )
    parser.add_argument(
        "--port",
        type=int,
        default=0,
        help="port of the server (default: first free port from 8888)",
    )
    parser.add_argument(
        "--no-browser", action="store_true", help="start the server without opening a browser"
    )


def _lab(options: argparse.Namespace) -> Output:
    if importlib.util.find_spec("jupyterlab") is None:
        raise CommandError("JupyterLab is not installed", hint="pip install 'tilewright[lab]'")
    command = lab_command(options)
    code = subprocess.call(command)  # noqa: S603 - the executable is the running Python
    return Output("", {"command": list(command), "code": code}, code)


def lab_command(options: argparse.Namespace) -> list[str]:
    """Return the command line that starts JupyterLab."""
    command = [sys.executable, "-m", "jupyterlab", options.path]
    if options.port:
        command.append(f"--port={options.port}")
    if options.no_browser:
        command.append("--no-browser")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")
    return command


LAB = Command("lab", "open JupyterLab", _lab_arguments, _lab)


def _cache_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action",
        nargs="?",
        choices=("info", "clear"),
        default="info",
        help="info: print location and size; clear: remove all entries (default: info)",
    )


def _cache(options: argparse.Namespace) -> Output:
    from ...codegen.build.object_cache import default_cache

    cache = default_cache()
    if options.action == "clear":
        removed = cache.clear()
        return Output(f"removed {removed} entries from {cache.folder}", {"removed": removed})
    statistics = cache.statistics()
    text = (
        f"{statistics.folder}: {statistics.entries} entries, {bytes_text(statistics.bytes)} "
        f"of at most {bytes_text(statistics.limit)}"
    )
    return Output(
        text,
        {
            "folder": statistics.folder,
            "entries": statistics.entries,
            "bytes": statistics.bytes,
            "limit": statistics.limit,
        },
    )


CACHE = Command("cache", "show or clear the object cache", _cache_arguments, _cache)


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. ``needed`` names the features that depend on an optional item."""

    name: str
    ok: bool
    found: str
    needed: str = ""


def _doctor_arguments(_parser: argparse.ArgumentParser) -> None:
    """Add no arguments."""


def _doctor(_options: argparse.Namespace) -> Output:
    findings = list(diagnose())
    required = [f for f in findings if not f.ok and not f.needed]
    width = max(len(f.name) for f in findings)
    lines = [_finding_line(f, width) for f in findings]
    missing = ", ".join(f.name for f in required)
    lines.append(f"missing requirements: {missing}" if required else "all requirements are met")
    data: list[Json] = [
        {"name": f.name, "ok": f.ok, "found": f.found, "needed": f.needed} for f in findings
    ]
    return Output("\n".join(lines), {"findings": data}, 1 if required else 0)


def _finding_line(finding: Finding, width: int) -> str:
    mark = "ok" if finding.ok else ("--" if finding.needed else "!!")
    why = f"  (needed for: {finding.needed})" if finding.needed and not finding.ok else ""
    return f"{mark}  {finding.name:<{width}}  {finding.found}{why}"


def diagnose() -> Iterator[Finding]:
    """Check everything that Tilewright requires or can use."""
    yield Finding("tilewright", ok=True, found=metadata.version("tilewright"))
    python = platform.python_version()
    yield Finding("python", sys.version_info >= (3, 11), f"{python} ({platform.machine()})")
    yield _probed("llvm", _llvm)
    if os.environ.get(HOST_FEATURES):
        yield _probed("feature cap", _feature_cap)
    yield _probed("processor", _processor)
    yield _probed("compile and run", _trial)
    yield _probed("cache", _cache_text)
    for name, needed in _OPTIONAL:
        yield _package(name, needed)
    yield from _gpu()
    yield _assets()
    for program, needed in (("node", "building the browser assets"), ("chromium", "browser tests")):
        path = shutil.which(program)
        yield Finding(program, path is not None, path or "not on PATH", needed)


_OPTIONAL = (
    ("jupyterlab", "the workbench"),
    ("anywidget", "the workbench"),
    ("torch", "importing from torch.export"),
    ("onnx", "importing ONNX models"),
    ("safetensors", "models with weights in safetensors"),
    ("onnxruntime", "benchmarks against ONNX Runtime"),
)


def _probed(name: str, probe: Callable[[], str], needed: str = "") -> Finding:
    try:
        return Finding(name, ok=True, found=probe(), needed=needed)
    except TilewrightError as error:
        found = f"{error.message}: {error.hint}" if needed and error.hint else error.message
        return Finding(name, ok=False, found=found, needed=needed)


def _gpu() -> Iterator[Finding]:
    """Check the requirements for compiling and running kernels for NVIDIA GPUs."""
    yield _probed("llvm for gpus", _ptx, "kernels for GPUs")
    yield _probed("ptxas", _ptxas, "machine code for GPUs, and its register counts")
    yield _package("nvidia-cuda-nvdisasm", "disassembling machine code of GPUs")
    yield _probed("cuda driver", _cuda_driver, "running on a GPU")
    yield _package("pycuda", "running on a GPU")
    yield _probed("gpu", _gpu_found, "running on a GPU")


def _ptx() -> str:
    from ...codegen.llvm.compile import machine_for

    return f"{machine_for(Target('cuda')).triple}, {GPU_ARCHS[0]} to {GPU_ARCHS[-1]}"


def _ptxas() -> str:
    from ...codegen.nvidia import assembler, assembler_version

    if assembler() is None:
        raise CommandError("not installed", hint="pip install nvidia-cuda-nvcc")
    return assembler_version()


def _cuda_driver() -> str:
    from ...codegen.runtime.cuda.driver import driver

    return f"CUDA {driver().version()}"


def _gpu_found() -> str:
    """Open the GPU and return its name, memory and supported targets."""
    from ...codegen.runtime.cuda.device import opened_device

    device = opened_device()
    gigabytes = device.total_memory / 2**30
    return f"{device.name}, sm_{device.capability}, {gigabytes:.0f} GiB; targets {device.targets()}"


def _llvm() -> str:
    from ...target.host import host_features

    host_features()
    return f"llvmlite {metadata.version('llvmlite')}"


def _feature_cap() -> str:
    """Return the cap that the environment sets on the detected features."""
    return f"{HOST_FEATURES}={host_cap()} hides all features beyond {host_cap()}"


def _processor() -> str:
    from ...codegen.llvm.processor import resolve
    from ...target.host import levels_of_host

    cpu = resolve(Target("cpu"))
    levels = ", ".join(levels_of_host()) or "baseline"
    return f"{cpu.name}, {cpu.vector_bits}-bit vectors ({levels}), {os.cpu_count()} cores"


def _trial() -> str:
    """Compile a small program and check its result."""
    import numpy as np

    from ...codegen import compile
    from ...ir.script import parse

    program = "@prim_func\ndef one(y: Out[(4,), f32]):\n    for i in range(4):\n        y[i] = 1.0"
    result = compile(parse(program), "cpu")["one"]()
    if not np.array_equal(result, np.ones(4, np.float32)):
        raise CommandError(f"a program that fills an array with ones returned {result}")
    return "works"


def _cache_text() -> str:
    from ...codegen.build.object_cache import default_cache

    statistics = default_cache().statistics()
    return f"{statistics.folder} ({statistics.entries} entries, {bytes_text(statistics.bytes)})"


def _package(name: str, needed: str) -> Finding:
    try:
        return Finding(name, ok=True, found=metadata.version(name), needed=needed)
    except metadata.PackageNotFoundError:
        return Finding(name, ok=False, found="not installed", needed=needed)


def _assets() -> Finding:
    static = Path(__file__).parent.parent / "static"
    files = [static / name for name in ("widget.js", "widget.css")]
    built = all(path.exists() for path in files)
    size = sum(path.stat().st_size for path in files) if built else 0
    found = bytes_text(size) if built else "not built: `make assets`"
    return Finding("browser assets", built, found, "the workbench")


DOCTOR = Command("doctor", "check the installation", _doctor_arguments, _doctor)
