"""Weights as a safetensors file: a length, a JSON header, and the tensors in sequence.

The header also contains the sha256 of the tensors, so the headers of two models differ even if
their tensors have the same names and shapes.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ...ir.dtype import u8
from ...ir.module import Constant
from ...ir.packing import storage_of
from ...ir.sizes import storage_bytes

_ALIGNED: Final = 64
"""The alignment of the first tensor in bytes."""


@dataclass(frozen=True, slots=True)
class Weights:
    """A file of weights: its header, its size, and the offset of each tensor.

    Parameters
    ----------
    header : bytes
        The bytes before the first tensor.
    digest : bytes
        The sha256 of the bytes after the header.
    size : int
        The size of the file in bytes.
    offsets : Mapping of str to int
        The offset of each tensor in the file, in bytes.
    """

    header: bytes
    digest: bytes
    size: int
    offsets: Mapping[str, int]


def write_weights(path: Path, constants: Mapping[str, Constant]) -> Weights:
    """Write constants to a file, widest elements first, so each tensor is aligned to its elements.

    Parameters
    ----------
    path : Path
        The file.
    constants : Mapping of str to Constant
        The constants by name.
    """
    names = sorted(constants, key=lambda k: (-constants[k].dtype.alignment, k))
    digest = _digest(constants, names)
    entries: dict[str, object] = {"__metadata__": {"sha256": digest.hex()}}
    starts: dict[str, int] = {}
    at = 0
    for name in names:
        constant = constants[name]
        size = storage_bytes(math.prod(constant.shape), constant.dtype)
        starts[name] = at
        entries[name] = {
            **_type_entry(constant, size),
            "data_offsets": [at, at + size],
        }
        at += size
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % _ALIGNED)
    header = len(text).to_bytes(8, "little") + text
    with path.open("wb") as file:
        file.write(header)
        for name in names:
            file.write(_bytes(constants[name]))
    offsets = {name: len(header) + start for name, start in starts.items()}
    return Weights(header, digest, len(header) + at, MappingProxyType(offsets))


def _digest(constants: Mapping[str, Constant], names: Sequence[str]) -> bytes:
    digest = hashlib.sha256()
    for name in names:
        digest.update(_bytes(constants[name]))
    return digest.digest()


def _bytes(constant: Constant) -> memoryview:
    return storage_of(constant.load(), constant.dtype).data


def _type_entry(constant: Constant, size: int) -> dict[str, object]:
    """Return dtype and shape; bytes stand for a dtype that the format lacks."""
    name = constant.dtype.safetensors
    return {"dtype": name, "shape": list(constant.shape)} if name else {
        "dtype": u8.safetensors, "shape": [size],
    }  # fmt: skip
