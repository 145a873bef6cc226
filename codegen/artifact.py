"""What a compilation makes: objects, texts and manifest, as one value that can be stored."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir.dtype import DType, dtype
from ..ir.errors import TilewrightError
from ..ir.module import Constant
from ..ir.target import Target
from .manifest import FunctionSpec, KernelSpec, from_json, to_json

if TYPE_CHECKING:
    from .simt.program import Program

SCHEMA = 3
_SECTIONS = ("objects", "texts", "images", "programs")
_LENGTH = struct.Struct("<Q")


class ArtifactError(TilewrightError):
    """Stored machine code that this version cannot read."""

    title = "Unreadable artefact"


def _no_constants() -> Mapping[str, Constant]:
    return MappingProxyType({})


def _no_images() -> Mapping[str, bytes]:
    return MappingProxyType({})


def _no_programs() -> Mapping[str, Program]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Artifact:
    """Machine code with all that is needed to load, call and explain it.

    Parameters
    ----------
    target : Target
        The machine it is for.
    threads : int
        Workers that scratch is reserved for.
    functions : tuple of FunctionSpec
        What can be called.
    objects : Mapping of str to bytes
        Object files by the name of their kernel, ``""`` being the host flow.
    texts : Mapping of str to bytes
        LLVM text of each, compressed.
    constants : Mapping of str to Constant
        Constants that compiling made, such as folded ones.
    images : Mapping of str to bytes
        What a GPU loads, by kernel (:class:`tilewright.codegen.nvidia.Image`).
    kernel_specs : tuple of KernelSpec
        How each kernel of a GPU is launched.
    programs : Mapping of str to Program
        The kernels of target ``simt``, which are executed as they are and stored as text.
    """

    target: Target
    threads: int
    functions: tuple[FunctionSpec, ...]
    objects: Mapping[str, bytes]
    texts: Mapping[str, bytes] = field(repr=False)
    constants: Mapping[str, Constant] = field(default_factory=_no_constants)
    images: Mapping[str, bytes] = field(default_factory=_no_images, repr=False)
    kernel_specs: tuple[KernelSpec, ...] = ()
    programs: Mapping[str, Program] = field(default_factory=_no_programs, repr=False)

    @property
    def kernels(self) -> tuple[str, ...]:
        """The kernels, by name."""
        return tuple(sorted({name for name in (*self.texts, *self.programs) if name}))

    def text(self, name: str) -> str:
        """Give the LLVM text of a kernel, or of the host flow (``""``)."""
        return zlib.decompress(self.texts[name]).decode()

    def to_bytes(self) -> bytes:
        """Store: a header in JSON, then the parts; the same artefact gives the same bytes."""
        parts: list[bytes] = []
        index: dict[str, list[str]] = {}
        programs = {name: program.to_bytes() for name, program in self.programs.items()}
        contents = (self.objects, self.texts, self.images, programs)
        for section, content in zip(_SECTIONS, contents, strict=True):
            index[section] = sorted(content)
            parts.extend(content[name] for name in index[section])
        kept = (self.constants[name].load() for name in sorted(self.constants))
        parts.extend(np.ascontiguousarray(array).tobytes() for array in kept)
        target = self.target
        header: dict[str, Any] = {
            "schema": SCHEMA,
            "target": [target.kind, target.arch, list(target.features), target.threads],
            "threads": self.threads,
            "functions": [to_json(f) for f in self.functions],
            "kernels": [to_json(k) for k in self.kernel_specs],
            "constants": [
                [name, c.dtype.name, list(c.shape)] for name, c in sorted(self.constants.items())
            ],
            **index,
        }
        text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
        return b"".join(_LENGTH.pack(len(part)) + part for part in (text, *parts))

    @classmethod
    def from_bytes(cls, data: bytes) -> Artifact:
        """Read a stored artefact.

        Raises
        ------
        ArtifactError
            If it is cut short or of another schema.
        """
        parts, at = list[bytes](), 0
        while at < len(data):
            if at + _LENGTH.size > len(data):
                raise ArtifactError("the artefact is cut short")
            (length,) = _LENGTH.unpack_from(data, at)
            at += _LENGTH.size
            parts.append(data[at : at + length])
            at += length
        if at != len(data) or not parts:
            raise ArtifactError("the artefact is cut short")
        return cls._from_parts(json.loads(parts[0]), parts[1:])

    @classmethod
    def _from_parts(cls, header: dict[str, Any], parts: list[bytes]) -> Artifact:
        if header.get("schema") != SCHEMA:
            raise ArtifactError(
                f"schema {header.get('schema')} is not {SCHEMA}", hint="compile the module again"
            )
        kind, arch, features, threads = header["target"]
        target = Target(kind, arch=arch, features=tuple(features), threads=threads)
        rest = iter(parts)
        sections = {
            section: MappingProxyType({name: next(rest) for name in header[section]})
            for section in _SECTIONS
        }
        constants = {
            name: _constant(dtype(kind_), tuple(shape), part)
            for (name, kind_, shape), part in zip(header["constants"], rest, strict=True)
        }
        return cls(
            target,
            header["threads"],
            tuple(from_json(FunctionSpec, f) for f in header["functions"]),
            sections["objects"],
            sections["texts"],
            MappingProxyType(constants),
            sections["images"],
            tuple(from_json(KernelSpec, k) for k in header["kernels"]),
            _programs(sections["programs"], target),
        )


def _programs(stored: Mapping[str, bytes], target: Target) -> Mapping[str, Program]:
    if not stored:
        return _no_programs()
    from .simt.program import Program

    return MappingProxyType({n: Program.from_bytes(data, target) for n, data in stored.items()})


def _constant(element: DType, shape: tuple[int, ...], data: bytes) -> Constant:
    array = np.frombuffer(data, element.numpy).reshape(shape)
    return Constant(shape, element, lambda: array)
