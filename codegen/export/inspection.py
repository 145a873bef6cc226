"""Descriptions of exported libraries, read from their files without loading them."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from ..manifest import SymbolSpec
from .describe import NOTE, SCHEMA, SECTION
from .errors import ExportError
from .native.loader_weights import damaged_block, header_problem

_ELF: Final = b"\x7fELF\x02\x01"
"""The first bytes of a little-endian 64-bit ELF file."""
_ARCHIVE: Final = b"!<arch>\n"
_MEMBER: Final = 60
"""The size of the header of a member of an archive."""
_WASM: Final = b"\0asm\x01\0\0\0"
_PROGRAM_HEADER: Final = struct.Struct("<IIQQQQQQ")
_SECTION_HEADER: Final = struct.Struct("<IIQQQQIIQQ")
_NOTE_SEGMENT: Final = 4
_NOTE_SECTION: Final = 7


class InspectionError(ExportError):
    """A file or directory without the description of an exported library."""

    title = "Inspection failure"


@dataclass(frozen=True, slots=True)
class Description:
    """The description of an export, and the file that contains it."""

    path: Path
    facts: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name of the model."""
        return str(self.facts["name"])

    @property
    def functions(self) -> Mapping[str, Mapping[str, Any]]:
        """The facts of the functions by name."""
        return {f["name"]: f for f in self.facts.get("functions", ())}


def read_description(path: Path) -> Description:
    """Read the description of an exported directory, or of a library, object, or module.

    Raises
    ------
    InspectionError
        If there is none, or it has another schema.
    """
    try:
        if path.is_dir():
            return _of_directory(path)
        found = list(_texts(path.read_bytes()))
    except OSError as error:
        raise InspectionError(
            f"cannot read {path}: {error.strerror or error}", hint="name an exported file or folder"
        ) from error
    if len(found) != 1:
        reason = "no description" if not found else f"the descriptions of {len(found)} models"
        raise InspectionError(
            f"{path} contains {reason} of an exported library",
            hint="name a directory of tw.export, or a .so, .a, .o, or .wasm file of it; PTX and "
            "machine code of GPUs are described by the manifest of their directory",
        )
    return _checked(path, found[0])


def _of_directory(folder: Path) -> Description:
    found: list[Description] = []
    for path in sorted(folder.glob("*.json")):
        try:
            facts = cast("object", json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, RecursionError):
            continue
        if isinstance(facts, dict) and {"schema", "name", "kind", "files"} <= facts.keys():
            found.append(_checked(path, json.dumps(facts).encode()))
    if len(found) != 1:
        raise InspectionError(
            f"{folder} contains {len(found)} manifests NAME.json of exports, expected 1",
            hint="name a directory of tw.export",
        )
    return found[0]


def _checked(path: Path, text: bytes) -> Description:
    try:
        facts = cast("object", json.loads(text))
    except (ValueError, RecursionError) as error:
        raise InspectionError(f"{path}: the description is not JSON: {error}") from error
    known = cast("dict[str, Any]", facts) if isinstance(facts, dict) else {}
    schema = known.get("schema")
    if schema != SCHEMA or "abi" not in known:
        raise InspectionError(
            f"{path}: expected a description of schema {SCHEMA} with 'abi', got schema {schema!r}",
            hint="inspect it with the version of Tilewright that has exported it",
        )
    return Description(path, known)


def _texts(data: bytes) -> Iterator[bytes]:
    """Yield the descriptions that a file contains."""
    try:
        if data.startswith(_ELF):
            yield from _of_elf(data)
        elif data.startswith(_ARCHIVE):
            yield from _of_archive(data)
        elif data.startswith(_WASM):
            yield from _of_module(data)
    except (struct.error, IndexError, ValueError):
        return  # a truncated file


def _of_elf(data: bytes) -> Iterator[bytes]:
    """Yield the notes of segments or, in an object, of sections."""
    segments, sections = struct.unpack_from("<QQ", data, 32)
    sizes = struct.unpack_from("<HHHH", data, 54)
    parts: list[tuple[int, int]] = []
    for k in range(sizes[1]):
        kind, _, at, _, _, size, *_ = _PROGRAM_HEADER.unpack_from(data, segments + k * sizes[0])
        if kind == _NOTE_SEGMENT:
            parts.append((at, size))
    for k in range(0 if parts else sizes[3]):
        _, kind, _, _, at, size, *_ = _SECTION_HEADER.unpack_from(data, sections + k * sizes[2])
        if kind == _NOTE_SECTION:
            parts.append((at, size))
    for at, size in parts:
        yield from _notes(data[at : at + size])


def _notes(data: bytes) -> Iterator[bytes]:
    at = 0
    while at + 12 <= len(data):
        name_size, size, _ = struct.unpack_from("<III", data, at)
        start = at + 12 + -(-name_size // 4) * 4
        if data[at + 12 : at + 12 + name_size].rstrip(b"\0") == NOTE.encode():
            yield data[start : start + size].rstrip(b"\0")
        at = start + -(-size // 4) * 4


def _of_archive(data: bytes) -> Iterator[bytes]:
    at = len(_ARCHIVE)
    while at + _MEMBER <= len(data):
        size = int(data[at + 48 : at + 58])
        member = data[at + _MEMBER : at + _MEMBER + size]
        if member.startswith(_ELF):
            yield from _of_elf(member)
        at += _MEMBER + size + size % 2


def _of_module(data: bytes) -> Iterator[bytes]:
    at, wanted = len(_WASM), SECTION.removeprefix(".note.").encode()
    while at < len(data):
        kind = data[at]
        size, at = _number(data, at + 1)
        if kind == 0:
            length, start = _number(data, at)
            if data[start : start + length] == wanted:
                yield data[start + length : at + size]
        at += size


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Return the LEB128 number at a position, and the position after it."""
    value, shift = 0, 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def altered_files(description: Description) -> list[str]:
    """Return the differences between the files of a directory and its manifest, as text.

    Replaceable weights are compared with the sha256 in their header, because ``tilewright weights
    pack`` may have written them after the export. Of damaged weights, the text names the first
    damaged block and its tensors.

    Raises
    ------
    InspectionError
        If the description is not the manifest of a directory.
    """
    files = description.facts.get("files")
    if not isinstance(files, dict):
        raise InspectionError(
            f"{description.path} does not list files to verify", hint="name the directory"
        )
    found: list[str] = []
    for name, facts in cast("dict[str, dict[str, Any]]", files).items():
        path = description.path.parent / name
        weights = name == description.facts.get("weights")
        if not path.is_file():
            found.append(f"{name} is missing")
        elif weights and description.facts.get("weights_replaceable"):
            if problem := header_problem(_mapped(path), verify="blocks"):
                found.append(f"{name}: {problem}")
        elif (digest := _sha256(path)) != facts.get("sha256"):
            problem = damaged_block(_mapped(path)) if weights else ""
            text = f"{name}: expected sha256 {facts.get('sha256')}, got {digest}"
            found.append(f"{text}; {problem}" if problem else text)
    return found


def _mapped(path: Path) -> memoryview:
    """Return the content of a file, which is read while it is used."""
    return np.memmap(path, np.uint8, "r").data if path.stat().st_size else memoryview(b"")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def description_lines(description: Description) -> Iterator[str]:
    """Yield a description as text."""
    facts = description.facts
    count = facts.get("threads", 1)
    threads = f", at most {count} threads" if count > 1 else ""
    yield f"model {description.name!r}: {facts['kind']}, ABI version {facts['abi']}{threads}"
    features = ", ".join(facts.get("features", ())) or "the baseline"
    processor = "a GPU of WebGPU" if facts["kind"] == "web" else f"{facts['arch']} with {features}"
    yield f"processor: {processor}; exported for {facts['target']}"
    yield f"made by {facts['made_by']}"
    for key, value in facts.get("metadata", {}).items():
        yield f"{key}: {value}"
    yield f"program: {facts['program']}" + (f", trace: {facts['trace']}" if facts["trace"] else "")
    if "weights_bytes" in facts:
        kind = "replaceable" if facts["weights_replaceable"] else "fixed"
        yield (
            f"weights: {facts['weights_bytes']} bytes, {facts['weights_layout']}, {kind}, "
            f"schema {facts['weights_schema']}"
        )
    for function in facts.get("functions", ()):
        yield from _function_lines(function)
    for param in facts.get("states", {}).get("params", ()):
        yield f"state {param['name']}: {param['annotation']}"
    for kernel in facts.get("kernels", ()):
        yield f"kernel {kernel['name']}: {kernel['file']}, grid {kernel['grid']}"


def _function_lines(function: Mapping[str, Any]) -> Iterator[str]:
    yield f"function {function['name']} ({function['symbol']})"
    for param in function["params"]:
        aligned = f", a multiple of {param['alignment']} bytes" if param["alignment"] else ""
        yield f"  {param['name']}: {param['annotation']}, {param['access']}{aligned}"
    for result in function["results"]:
        place = "" if result["param"] < 0 else f", in {function['params'][result['param']]['name']}"
        yield f"  result {result['name']}: {result['annotation']}{place}"
    for symbol in function["symbols"]:
        yield f"  {SymbolSpec(**symbol)}"
    for fact in function["assumptions"]:
        yield f"  assumes {fact}"
    for storage in function["storages"]:
        yield f"  workspace {storage['name']}: {storage['bytes']} bytes"
