"""Artifacts: the serializable result of a compilation, with objects, texts and manifest."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import TilewrightError
from ..ir.dtype import DType, dtype
from ..ir.module import Constant
from ..ir.packing import from_storage, storage_of
from ..target.target import Target
from .manifest import FunctionSpec, KernelFacts, KernelSpec, from_json, to_json

if TYPE_CHECKING:
    from .simt.program import SimtProgram

SCHEMA = 7
_SECTIONS = ("objects", "texts", "images", "programs")
_LENGTH = struct.Struct("<Q")


class ArtifactError(TilewrightError):
    """A stored artifact that is truncated or has another schema."""

    title = "Unreadable artifact"


def _no_constants() -> Mapping[str, Constant]:
    return MappingProxyType({})


def _no_images() -> Mapping[str, bytes]:
    return MappingProxyType({})


def _no_texts() -> Mapping[str, tuple[str, ...]]:
    return MappingProxyType({})


def _no_programs() -> Mapping[str, SimtProgram]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Artifact:
    """Machine code and the manifest to load and call it and to explain its errors.

    Parameters
    ----------
    target : Target
        The target of the compilation.
    threads : int
        Number of threads for which scratch is reserved; 0: those of the runtime table of a call.
    functions : tuple of FunctionSpec
        The callable functions.
    objects : Mapping of str to bytes
        Object files by the name of their kernel; ``""`` is the host flow.
    texts : Mapping of str to bytes
        The LLVM text of each object and image, compressed.
    constants : Mapping of str to Constant
        Constants that the compilation created, such as results of constant folding.
    images : Mapping of str to bytes
        GPU images by kernel (:class:`tilewright.codegen.nvidia.Image`).
    kernel_specs : tuple of KernelSpec
        The launch specification of each GPU kernel.
    programs : Mapping of str to SimtProgram
        The kernels of target ``simt``, which are interpreted and stored as text.
    facts : tuple of KernelFacts
        The facts about each kernel, for :meth:`.Executable.explain`.
    limits : Mapping of str to tuple of str
        The conditions of the version with 32-bit indices of each kernel that has one.
    temporaries : Mapping of str to tuple of str
        The temporaries in the scratch memory of each kernel that has one, as text.
    """

    target: Target
    threads: int
    functions: tuple[FunctionSpec, ...]
    objects: Mapping[str, bytes]
    texts: Mapping[str, bytes] = field(repr=False)
    constants: Mapping[str, Constant] = field(default_factory=_no_constants)
    images: Mapping[str, bytes] = field(default_factory=_no_images, repr=False)
    kernel_specs: tuple[KernelSpec, ...] = ()
    programs: Mapping[str, SimtProgram] = field(default_factory=_no_programs, repr=False)
    facts: tuple[KernelFacts, ...] = ()
    limits: Mapping[str, tuple[str, ...]] = field(default_factory=_no_texts)
    temporaries: Mapping[str, tuple[str, ...]] = field(default_factory=_no_texts)

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of the kernels."""
        return tuple(sorted({name for name in (*self.texts, *self.programs) if name}))

    def text(self, name: str) -> str:
        """Return the LLVM text of a kernel, or of the host flow (``""``)."""
        return zlib.decompress(self.texts[name]).decode()

    def to_bytes(self) -> bytes:
        """Serialize as a JSON header followed by the parts; equal artifacts have equal bytes."""
        parts: list[bytes] = []
        index: dict[str, list[str]] = {}
        programs = {name: program.to_bytes() for name, program in self.programs.items()}
        contents = (self.objects, self.texts, self.images, programs)
        for section, content in zip(_SECTIONS, contents, strict=True):
            index[section] = sorted(content)
            parts.extend(content[name] for name in index[section])
        constants = (self.constants[name] for name in sorted(self.constants))
        parts.extend(storage_of(c.load(), c.dtype).tobytes() for c in constants)
        target = self.target
        header: dict[str, Any] = {
            "schema": SCHEMA,
            "target": [target.kind, target.arch, list(target.features), target.threads],
            "where": target.where,
            "panel_bits": target.panel_bits,
            "threads": self.threads,
            "functions": [to_json(f) for f in self.functions],
            "kernels": [to_json(k) for k in self.kernel_specs],
            "facts": [to_json(f) for f in self.facts],
            "limits": {name: list(texts) for name, texts in sorted(self.limits.items())},
            "temporaries": {name: list(ts) for name, ts in sorted(self.temporaries.items())},
            "constants": [
                [name, c.dtype.name, list(c.shape)] for name, c in sorted(self.constants.items())
            ],
            **index,
        }
        text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
        return b"".join(_LENGTH.pack(len(part)) + part for part in (text, *parts))

    @classmethod
    def from_bytes(cls, data: bytes) -> Artifact:
        """Deserialize an artifact.

        Raises
        ------
        ArtifactError
            If the data is truncated, is not an artifact, or has another schema.
        """
        try:
            return cls._parsed(data)
        except TilewrightError:
            raise
        except Exception as error:  # of any kind, since the data may be anything
            raise ArtifactError(
                f"the data is not an artifact: {type(error).__name__}: {error}",
                hint="compile the module again",
            ) from error

    @classmethod
    def _parsed(cls, data: bytes) -> Artifact:
        parts, at = list[bytes](), 0
        while at < len(data):
            if at + _LENGTH.size > len(data):
                raise ArtifactError(f"the artifact is truncated after {len(data)} bytes")
            (length,) = _LENGTH.unpack_from(data, at)
            at += _LENGTH.size
            parts.append(data[at : at + length])
            at += length
        if at != len(data) or not parts:
            raise ArtifactError(f"the artifact is truncated after {len(data)} bytes")
        return cls._from_parts(json.loads(parts[0]), parts[1:])

    @classmethod
    def _from_parts(cls, header: dict[str, Any], parts: list[bytes]) -> Artifact:
        if header.get("schema") != SCHEMA:
            raise ArtifactError(
                f"expected an artifact of schema {SCHEMA}, got schema {header.get('schema')}",
                hint="compile the module again",
            )
        kind, arch, features, threads = header["target"]
        target = Target(
            kind, arch=arch, features=tuple(features), threads=threads, where=header["where"],
            panel_bits=header.get("panel_bits", 0),
        )  # fmt: skip
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
            tuple(from_json(KernelFacts, f) for f in header["facts"]),
            MappingProxyType({name: tuple(texts) for name, texts in header["limits"].items()}),
            MappingProxyType({name: tuple(ts) for name, ts in header["temporaries"].items()}),
        )


def _programs(stored: Mapping[str, bytes], target: Target) -> Mapping[str, SimtProgram]:
    if not stored:
        return _no_programs()
    from .simt.program import SimtProgram

    return MappingProxyType({n: SimtProgram.from_bytes(data, target) for n, data in stored.items()})


def _constant(element: DType, shape: tuple[int, ...], data: bytes) -> Constant:
    array = from_storage(np.frombuffer(data, np.uint8), shape, element)
    return Constant(shape, element, lambda: array)
