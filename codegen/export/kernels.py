"""Export of GPU kernels as PTX or machine code, with their launch parameters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ...errors import Json
from ...target.target import Target
from ..artifact import Artifact
from ..manifest import KernelSpec, to_json
from ..nvidia import Image
from .errors import ExportError

GPU_KINDS: Final = ("ptx", "cubin")
ALIGNMENT: Final = 16
"""The alignment of every buffer in bytes, which vector accesses require."""


def check_gpu(kind: str, target: Target) -> None:
    """Check that a kind can be exported for a target.

    Raises
    ------
    ExportError
        If the kind is for CUDA, WebGPU, or CPUs, and the target is another one.
    """
    if kind in GPU_KINDS and target.kind != "cuda":
        raise ExportError(
            f"kind {kind!r} requires a CUDA target, got {target}",
            hint='use target=Target("cuda", arch="sm_80") or kind="shared"',
        )
    if kind == "web":
        if target.kind != "webgpu":
            raise ExportError(
                f"kind 'web' requires target 'webgpu', got {target}", hint='use target="webgpu"'
            )
    elif kind not in GPU_KINDS and target.is_gpu:
        kinds = {"cuda": 'use kind="ptx" or kind="cubin"', "webgpu": 'use kind="web"'}
        raise ExportError(
            f"kind {kind!r} requires a CPU target, got {target}",
            hint=kinds.get(target.kind, 'use target="cpu"'),
        )


def write_kernels(artifact: Artifact, folder: Path, kind: str) -> list[Json]:
    """Write one file per kernel, and return their launch parameters.

    Parameters
    ----------
    artifact : Artifact
        The artifact of a program for a GPU.
    folder : Path
        The folder of the files ``KERNEL.ptx`` or ``KERNEL.cubin``.
    kind : str
        ``"ptx"``, which the driver of any GPU of the same or a later architecture assembles, or
        ``"cubin"``, machine code for GPUs of exactly this architecture.

    Returns
    -------
    list
        Per kernel: file, entry, parameters in order, grid, block, requirements and resources.

    Raises
    ------
    AssemblerMissingError
        If the kind is ``"cubin"`` and ``ptxas`` is not installed.
    """
    return [_write(spec, artifact, folder, kind) for spec in artifact.kernel_specs]


def _write(spec: KernelSpec, artifact: Artifact, folder: Path, kind: str) -> Json:
    image = Image.from_bytes(artifact.images[spec.name])
    content = image.ptx.encode() if kind == "ptx" else image.machine_code()
    path = folder / f"{spec.name}.{kind}"
    path.write_bytes(content)
    return {
        "name": spec.name,
        "file": path.name,
        "entry": spec.name,
        "parameters": list(_parameters(spec)),
        "grid": list(spec.grid),
        "block": list(spec.block),
        "dynamic_shared": spec.shared,
        "requires": list(spec.requires),
        **_version(spec),
        "resources": to_json(image.resources),
    }


def _version(spec: KernelSpec) -> dict[str, Json]:
    """Return the entry of the version with 32-bit indices, and the conditions to launch it."""
    if not spec.narrow:
        return {}
    return {"version_32_bit": {"entry": spec.narrow, "requires": [*spec.requires, *spec.limits]}}


def _parameters(spec: KernelSpec) -> Iterator[Json]:
    for name, of, access in zip(spec.buffers, spec.types, spec.access, strict=True):
        yield {
            "name": name, "form": "address", "type": of, "access": access, "alignment": ALIGNMENT,
        }  # fmt: skip
    for name in spec.symbols:
        yield {"name": name, "form": "i64"}
    if spec.scratch:
        yield {"name": "scratch", "form": "address", "bytes": spec.scratch}
