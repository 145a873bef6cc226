"""Kernels of a GPU as files: PTX or machine code, and how each is launched."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ...ir.errors import Json
from ...ir.target import Target
from ..artifact import Artifact
from ..manifest import KernelSpec, to_json
from ..nvidia import Image
from .errors import ExportError

GPU_KINDS: Final = ("ptx", "cubin")
ALIGNMENT: Final = 16
"""Of the first element of every buffer, in bytes: kernels read several elements at once."""


def check_gpu(kind: str, target: Target) -> None:
    """Check that a kind fits the machine.

    Raises
    ------
    ExportError
        If kernels of a GPU are asked of another machine, or a library of a GPU.
    """
    if kind in GPU_KINDS and target.kind != "cuda":
        raise ExportError(
            f"kind {kind!r} holds kernels of a GPU, the target is {target}",
            hint='target=Target("cuda", arch="sm_80"), or kind="shared"',
        )
    if kind not in GPU_KINDS and target.is_gpu:
        raise ExportError(
            f"kind {kind!r} holds code of a processor, the target is {target}",
            hint='kind="ptx" or kind="cubin"' if target.kind == "cuda" else 'target="cpu"',
        )


def write_kernels(artifact: Artifact, folder: Path, kind: str) -> list[Json]:
    """Write one file a kernel, and tell how to launch each.

    Parameters
    ----------
    artifact : Artifact
        Compiled for a GPU.
    folder : Path
        Where ``KERNEL.ptx`` or ``KERNEL.cubin`` are put.
    kind : str
        ``"ptx"``, which every GPU's driver of the same arch or a later one assembles; ``"cubin"``,
        machine code for GPUs of exactly this generation.

    Returns
    -------
    list
        For each kernel its file, entry, parameters in order, grid, block and what it takes.

    Raises
    ------
    AssemblerMissingError
        If machine code is asked for and ``ptxas`` is not installed.
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
        "resources": to_json(image.resources),
    }


def _parameters(spec: KernelSpec) -> Iterator[Json]:
    for name, of, access in zip(spec.buffers, spec.types, spec.access, strict=True):
        yield {
            "name": name, "form": "address", "type": of, "access": access, "alignment": ALIGNMENT,
        }  # fmt: skip
    for name in spec.symbols:
        yield {"name": name, "form": "i64"}
    if spec.scratch:
        yield {"name": "scratch", "form": "address", "bytes": spec.scratch}
