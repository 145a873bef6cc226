"""Read ONNX files without trusting them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..dtype import DType, dtype as dtype_named
from ..errors import TilewrightError
from ..module import Array

OPSETS = range(11, 24)
"""Versions of the operator set that are understood."""

_DTYPES = {
    1: "f32", 2: "u8", 3: "i8", 4: "u16", 5: "i16", 6: "i32", 7: "i64", 9: "bool", 10: "f16",
    11: "f64", 12: "u32", 13: "u64", 16: "bf16",
}  # fmt: skip
_EXTERNAL = 1


class MalformedModelError(TilewrightError):
    """A file is no ONNX model, is cut short, or contradicts itself."""

    title = "Malformed ONNX model"


class ExternalDataError(TilewrightError):
    """Weights outside of the model file are missing, too short, or not where they may be."""

    title = "Bad external data"


class UnsupportedOpsetError(TilewrightError):
    """A model is written for a version of the operator set that is not understood."""

    title = "Unsupported opset"


@dataclass(frozen=True, slots=True)
class OnnxFile:
    """A model, and the folder that its external data may lie in."""

    model: Any
    folder: Path | None
    opset: int


def read_model(source: Any) -> OnnxFile:
    """Read a model from a path, or take it as it is.

    Raises
    ------
    MalformedModelError
        If the file is no model.
    UnsupportedOpsetError
        If its operators are of a version that is not understood.
    """
    import onnx

    if isinstance(source, onnx.ModelProto):
        return _checked(source, None, "the model")
    path = Path(source)
    if not path.is_file():
        raise MalformedModelError("there is no such file", where=str(path))
    model = onnx.ModelProto()
    try:
        model.ParseFromString(path.read_bytes())
    except Exception as error:  # protobuf's own exception class differs by implementation
        raise MalformedModelError(
            f"the file cannot be parsed: {error}", where=str(path), hint="is it complete?"
        ) from error
    return _checked(model, path.parent, str(path))


def _checked(model: Any, folder: Path | None, where: str) -> OnnxFile:
    if not model.HasField("graph") or not model.graph.output:
        raise MalformedModelError("the model has no graph", where=where, hint="is it complete?")
    opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)
    if opset not in OPSETS:
        raise UnsupportedOpsetError(
            f"the model uses version {opset} of the operator set",
            where=where,
            hint=f"versions {OPSETS[0]} to {OPSETS[-1]} are understood; "
            "onnx.version_converter converts others",
        )
    return OnnxFile(_inlined(model), folder, opset)


def _inlined(model: Any) -> Any:
    if not model.functions:
        return model
    from onnx import inliner

    return inliner.inline_local_functions(model)


def onnx_dtype(number: int, where: str) -> DType:
    """Translate an element type."""
    if number not in _DTYPES:
        raise MalformedModelError(
            f"element type {number} is not supported",
            where=where,
            hint=f"those supported are {', '.join(_DTYPES.values())}",
        )
    return dtype_named(_DTYPES[number])


@dataclass(frozen=True, slots=True)
class Initializer:
    """A constant of a model, loaded when it is asked for."""

    name: str
    shape: tuple[int, ...]
    dtype: DType
    tensor: Any
    path: Path | None = None
    offset: int = 0

    @property
    def bytes(self) -> int:
        """How many bytes its elements take."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.bytes

    def load(self) -> Array:
        """Map the file, or take the elements out of the model."""
        if self.path is not None:
            return (
                np.memmap(
                    self.path, self.dtype.numpy, mode="r", offset=self.offset, shape=self.shape
                )
                if self.bytes
                else np.zeros(self.shape, self.dtype.numpy)
            )
        from onnx import numpy_helper

        return np.asarray(numpy_helper.to_array(self.tensor)).astype(self.dtype.numpy, copy=False)


def initializer(tensor: Any, name: str, folder: Path | None) -> Initializer:
    """Check a constant without loading it.

    Raises
    ------
    MalformedModelError
        If it has more or fewer bytes than its shape needs.
    ExternalDataError
        If it lies outside of the model's folder, or its file is missing or too short.
    """
    where = f"initializer {name!r}"
    shape = tuple(int(d) for d in tensor.dims)
    found = Initializer(name, shape, onnx_dtype(tensor.data_type, where), tensor)
    if any(d < 0 for d in shape):
        raise MalformedModelError(f"the shape {shape} has a negative dimension", where=where)
    if tensor.data_location == _EXTERNAL:
        return _external(found, folder)
    held = len(tensor.raw_data)
    if tensor.HasField("raw_data") and held != found.bytes:
        raise MalformedModelError(
            f"{held} bytes are given; shape {shape} of {found.dtype} takes {found.bytes}",
            where=where,
        )
    if not tensor.HasField("raw_data") and found.bytes and not _typed_count(tensor):
        raise MalformedModelError("it has no data", where=where, hint="is the file complete?")
    return found


def _typed_count(tensor: Any) -> int:
    fields = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data")
    return sum(len(getattr(tensor, f)) for f in fields)


def _external(found: Initializer, folder: Path | None) -> Initializer:
    where = f"initializer {found.name!r}"
    entries = {e.key: e.value for e in found.tensor.external_data}
    if folder is None:
        raise ExternalDataError(
            "external data needs the folder of the model", where=where, hint="pass a path"
        )
    path = _inside(folder, entries.get("location", ""), where)
    offset = _integer(entries.get("offset", "0"), "offset", where)
    length = _integer(entries.get("length", str(found.bytes)), "length", where)
    size = path.stat().st_size
    if length != found.bytes or offset + length > size:
        raise ExternalDataError(
            f"{length} bytes at {offset} of a file of {size} bytes; "
            f"shape {found.shape} of {found.dtype} takes {found.bytes}",
            where=f"{where}, file {path.name}",
        )
    return Initializer(found.name, found.shape, found.dtype, found.tensor, path, offset)


def _integer(text: str, name: str, where: str) -> int:
    if not text.isdecimal():
        raise ExternalDataError(f"{name} {text!r} is no number of bytes", where=where)
    return int(text)


def _inside(folder: Path, location: str, where: str) -> Path:
    """Resolve a location, which has to be a plain file below the model's folder."""
    given = Path(location)
    hint = "external data lies beside the model"
    if not location or given.is_absolute() or ".." in given.parts or "\\" in location:
        raise ExternalDataError(
            f"location {location!r} leaves the model's folder", where=where, hint=hint
        )
    path = folder / given
    steps = [folder.joinpath(*given.parts[: k + 1]) for k in range(len(given.parts))]
    if any(step.is_symlink() for step in steps):
        raise ExternalDataError(f"location {location!r} is a link", where=where, hint=hint)
    if not path.is_file():
        raise ExternalDataError(f"there is no file {location!r}", where=where, hint=hint)
    return path
