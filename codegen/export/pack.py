"""Packing of a checkpoint for an exported library with replaceable weights."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from ...ir.dtype import dtype, u8
from ...ir.module import Constant
from ...ir.packing import from_storage
from ...ir.sizes import storage_bytes
from ...nearest import did_you_mean
from ...target.host import require_runnable
from .errors import ExportError
from .packed import prepared_constants
from .packing import (
    SUFFIX,
    Plan,
    TensorType,
    elements_digest,
    header_digest,
    read_plan,
    views_of,
)
from .weights import write_weights

_LARGEST_HEADER: Final = 100 << 20
"""The largest header of a safetensors file in bytes, as in the reference implementation."""


class WeightsFileError(ExportError):
    """A file of weights that does not fit an exported library."""

    title = "Invalid weights"


@dataclass(frozen=True, slots=True)
class Packed:
    """A packed file: its path, its size in bytes, its sha256, and the unused tensors."""

    path: Path
    bytes: int
    sha256: str
    unused: tuple[str, ...]


def pack_weights(checkpoint: Path, folder: Path, output: Path | None = None) -> Packed:
    """Pack the tensors of a safetensors file for the library in an exported directory.

    Parameters
    ----------
    checkpoint : Path
        The file, with the tensor names of the program. Tensors that the program does not have are
        not used.
    folder : Path
        The directory of an export with ``weights="replaceable"``.
    output : Path, optional
        The file to write, by default the weights of the directory. It is replaced by rename, so
        that processes which map the earlier file keep it.

    Raises
    ------
    WeightsFileError
        If a tensor is missing or has another type, or its elements were compiled into the code.
    ExportError
        If the directory has no replaceable weights, or this machine cannot run its code.
    """
    name, plan = _plan(folder)
    given = _read(checkpoint)
    sources = _checked(plan, given, checkpoint)
    constants = _constants(plan, sources)
    made = output or folder / f"{name}.safetensors"
    handle, temporary = tempfile.mkstemp(prefix=f".{made.name}.", dir=made.parent)
    os.close(handle)
    try:
        weights = write_weights(
            Path(temporary), constants, packed=plan.packed, block_bytes=plan.block_bytes
        )
        if header_digest(weights.header) != plan.header:
            raise ExportError(
                "the packed file differs from the schema of the library",
                hint="please report this defect, with the program",
            )
        Path(temporary).chmod(0o644)
        Path(temporary).replace(made)
    finally:
        Path(temporary).unlink(missing_ok=True)
    unused = tuple(sorted(given.keys() - plan.sources.keys()))
    return Packed(made, weights.size, weights.digest.hex(), unused)


def _plan(folder: Path) -> tuple[str, Plan]:
    found = sorted(folder.glob(f"*{SUFFIX}"))
    if len(found) != 1:
        reason = "has no file" if not found else f"has {len(found)} files"
        raise ExportError(
            f"{folder} {reason} NAME{SUFFIX}",
            hint="name the directory of an export with weights='replaceable'",
        )
    return found[0].stem, read_plan(found[0])


def _read(path: Path) -> dict[str, tuple[dict[str, Any], np.ndarray]]:
    """Return the entry and the bytes of each tensor of a safetensors file, which is mapped."""
    hint = "write the tensors with safetensors.numpy.save_file or safetensors.torch.save_file"
    try:
        data = np.memmap(path, np.uint8, "r")
        size = int.from_bytes(data[:8].tobytes(), "little")
        if data.size < 8 or size > min(data.size - 8, _LARGEST_HEADER):
            raise WeightsFileError(f"{path}: {data.size} bytes without a header", hint=hint)
        entries = cast("object", json.loads(data[8 : 8 + size].tobytes()))
    except (OSError, ValueError, RecursionError) as error:
        raise WeightsFileError(f"{path} is not a safetensors file: {error}", hint=hint) from error
    found: dict[str, tuple[dict[str, Any], np.ndarray]] = {}
    known = cast("dict[str, Any]", entries) if isinstance(entries, dict) else {}
    for name, entry in known.items():
        if name == "__metadata__":
            continue
        if not _is_entry(entry):
            raise WeightsFileError(f"tensor {name!r} of {path} has entry {entry!r}", hint=hint)
        begin, end = entry["data_offsets"]
        if not 0 <= begin <= end <= data.size - 8 - size:
            raise WeightsFileError(
                f"{path} ends within tensor {name!r}: expected {8 + size + end} bytes, "
                f"got {data.size} bytes",
                hint=hint,
            )
        found[name] = entry, data[8 + size + begin : 8 + size + end]
    return found


def _is_entry(entry: Any) -> bool:
    """Return whether the entry of a tensor has a dtype, a shape, and two offsets."""
    try:
        numbers = [*entry["shape"], *entry["data_offsets"]]
        named = isinstance(entry["dtype"], str) and len(entry["data_offsets"]) == 2
    except (TypeError, KeyError):
        return False
    return named and all(isinstance(n, int) and n >= 0 for n in numbers)


def _checked(
    plan: Plan, given: Mapping[str, tuple[dict[str, Any], np.ndarray]], path: Path
) -> dict[str, Constant]:
    """Return the sources of a plan, which the file must contain unless they are fixed."""
    found: dict[str, Constant] = {}
    for name, of in plan.sources.items():
        if name not in given:
            if name in plan.fixed:
                found[name] = plan.artifact.constants[name]
                continue
            near = did_you_mean(name, given)
            raise WeightsFileError(
                f"tensor {name!r} ({of}) is missing in {path}",
                hint=f"{near + ' ' if near else ''}the file has {len(given)} tensors",
            )
        found[name] = _constant(name, of, given[name], path, flat=name in plan.flat)
        if name in plan.fixed and elements_digest(found[name]) != plan.fixed[name]:
            raise WeightsFileError(
                f"tensor {name!r} of {path} differs from the exported one, whose elements were "
                "compiled into the code",
                hint="export the model again with the new weights",
            )
    return found


def _constant(
    name: str, of: TensorType, given: tuple[dict[str, Any], np.ndarray], path: Path, *, flat: bool
) -> Constant:
    (entry, data), kind = given, dtype(of.dtype)
    size = storage_bytes(math.prod(of.shape), kind)
    stored = kind.safetensors or u8.safetensors
    shape = list(of.shape) if kind.safetensors else [size]
    found = shape if flat else list(entry["shape"])
    if (entry["dtype"], found, data.size) != (stored, shape, size):
        raise WeightsFileError(
            f"tensor {name!r} of {path}: expected {stored} {shape} ({of}, {size} bytes), got "
            f"{entry['dtype']} {entry['shape']} ({data.size} bytes)",
            hint="a library accepts weights of the exported names, types, and shapes",
        )
    # The offsets of a file need not be multiples of the size of an element.
    return Constant(of.shape, kind, lambda: from_storage(np.array(data), of.shape, kind))


def _constants(plan: Plan, sources: Mapping[str, Constant]) -> dict[str, Constant]:
    """Return the constants of the packed file."""
    known = {**plan.artifact.constants, **sources}
    read = {key for f in plan.artifact.functions for key in f.constants} | plan.file.keys()
    known |= views_of(read - known.keys(), sources)
    if plan.packed and plan.artifact.functions:
        require_runnable(plan.artifact.target)
        prepared = prepared_constants(plan.artifact, known)
        known |= prepared | views_of(read - prepared.keys(), prepared)
    return {key: known[key] for key in plan.file}
