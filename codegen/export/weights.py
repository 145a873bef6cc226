"""Weights as a safetensors file: a length, a JSON header, and the tensors in sequence.

The header also contains the sha256 of the tensors, so the headers of two models differ even if
their tensors have the same names and shapes, and a sha256 per block of their bytes, by which the
damaged part of a file is found.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ...ir.dtype import u8
from ...ir.module import Constant
from ...ir.packing import storage_of
from ...ir.sizes import storage_bytes

_ALIGNED: Final = 64
"""The alignment of the first tensor in bytes; of packed weights, that of every tensor."""
_PAGE: Final = 4096
"""The alignment of packed tensors of at least this size in bytes."""
BLOCK_BYTES: Final = 1 << 20
"""The size of a block of the bytes after the header that has its own sha256."""
FILLER: Final = "__filler__"
"""The prefix of the tensors that align packed tensors; the format does not allow holes."""


_BLOCKS: Final = b'"blocks":"'


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
    block_bytes : int
        The size of a block of the bytes after the header, or 0 if blocks have no sha256.
    blocks : str
        The sha256 of each block, in hexadecimal digits without separators.
    alignment : int
        The alignment of the first tensor in bytes.
    """

    header: bytes
    digest: bytes
    size: int
    offsets: Mapping[str, int]
    block_bytes: int = 0
    blocks: str = ""
    alignment: int = _ALIGNED

    @property
    def plain_size(self) -> int:
        """The size of the header of a file with these tensors that lists no blocks."""
        first, end = self.list_range
        text = self.header.rstrip(b" ")
        return -(-(len(text) - end + first) // self.alignment) * self.alignment

    @property
    def list_range(self) -> tuple[int, int]:
        """The offset and the end of the part of the header that lists blocks."""
        return self.header.index(b',"block_bytes":'), self.blocks_at + len(self.blocks) + 1

    @property
    def blocks_at(self) -> int:
        """The offset of the sha256 of the first block in the header."""
        return self.header.index(_BLOCKS) + len(_BLOCKS)


def write_weights(
    path: Path,
    constants: Mapping[str, Constant],
    *,
    packed: bool = False,
    same: Mapping[str, str] = MappingProxyType({}),
    block_bytes: int | None = None,
) -> Weights:
    """Write constants to a file, widest elements first, so each tensor is aligned to its elements.

    Parameters
    ----------
    path : Path
        The file.
    constants : Mapping of str to Constant
        The constants by name.
    packed : bool
        Whether to align large tensors to pages and others to 64 bytes, by filler tensors.
    same : Mapping of str to str
        The constants that are not written, because they equal other constants.
    block_bytes : int, optional
        The size of a block with its own sha256, by default ``BLOCK_BYTES``; 0 writes none.
    """
    block_bytes = BLOCK_BYTES if block_bytes is None else block_bytes
    names = sorted(constants.keys() - same.keys(), key=lambda k: (-constants[k].dtype.alignment, k))
    parts = list(_parts(constants, names, packed=packed))
    digest, blocks = _digests(constants, parts, block_bytes)
    facts = {"sha256": digest.hex()}
    if block_bytes:  # values are strings in this format
        facts |= {"block_bytes": str(block_bytes), "blocks": blocks}
    entries: dict[str, object] = {"__metadata__": facts}
    starts: dict[str, int] = {}
    at = 0
    for name, size in parts:
        if name in constants:
            starts[name] = at
        entry = _type_entry(constants.get(name), size)
        entries[name] = {**entry, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(entries, separators=(",", ":")).encode()
    aligned = _PAGE if packed and at >= _PAGE else _ALIGNED
    text += b" " * (-(8 + len(text)) % aligned)
    header = len(text).to_bytes(8, "little") + text
    with path.open("wb") as file:
        file.write(header)
        for name, size in parts:
            file.write(_bytes(constants[name]) if name in constants else bytes(size))
    starts |= {name: starts[other] for name, other in same.items()}
    offsets = {name: len(header) + start for name, start in starts.items()}
    size = len(header) + at
    return Weights(header, digest, size, MappingProxyType(offsets), block_bytes, blocks, aligned)


def _parts(
    constants: Mapping[str, Constant], names: Sequence[str], *, packed: bool
) -> Iterator[tuple[str, int]]:
    """Yield the tensors of the file in order, with their sizes in bytes."""
    at = 0
    for name in names:
        constant = constants[name]
        size = storage_bytes(math.prod(constant.shape), constant.dtype)
        hole = -at % (_PAGE if size >= _PAGE else _ALIGNED) if packed else 0
        if hole:
            yield f"{FILLER}{at}", hole
        yield name, size
        at += hole + size


def _digests(
    constants: Mapping[str, Constant], parts: Iterable[tuple[str, int]], block_bytes: int
) -> tuple[bytes, str]:
    """Return the sha256 of all parts, and those of their blocks as text."""
    digest = hashlib.sha256()
    blocks: list[str] = []
    block, free = hashlib.sha256(), block_bytes
    for name, size in parts:
        data = _bytes(constants[name]) if name in constants else memoryview(bytes(size))
        digest.update(data)
        while block_bytes and data:
            block.update(data[:free])
            data, free = data[free:], free - min(free, len(data))
            if not free:
                blocks.append(block.hexdigest())
                block, free = hashlib.sha256(), block_bytes
    if free < block_bytes:
        blocks.append(block.hexdigest())
    return digest.digest(), "".join(blocks)


def _bytes(constant: Constant) -> memoryview:
    return storage_of(constant.load(), constant.dtype).data


def _type_entry(constant: Constant | None, size: int) -> dict[str, object]:
    """Return dtype and shape; bytes stand for a filler, and for a dtype that the format lacks."""
    name = constant.dtype.safetensors if constant else None
    return {"dtype": name, "shape": list(constant.shape)} if constant and name else {
        "dtype": u8.safetensors, "shape": [size],
    }  # fmt: skip
