"""Reading and validation of untrusted ONNX files: models, initializers, and external data."""

from __future__ import annotations

import math
import reprlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from ...errors import TilewrightError
from ..dtype import DTYPES, DType
from ..module import Array
from ..sizes import storage_bytes
from .weight_file import WeightFile

OLDEST_OPSET: Final = 7
"""The oldest supported version of the default ONNX operator set."""

_DTYPES = {row.onnx: row for row in DTYPES.values() if row.onnx}
_EXTERNAL = 1
_MAX_DIGITS = 19
_MAX_LOCATION = 4096
_FIELD_OF = {
    "f32": "float_data", "f64": "double_data", "i64": "int64_data", "u32": "uint64_data",
    "u64": "uint64_data", "c64": "float_data", "c128": "double_data",
}  # fmt: skip
"""The field of the elements by dtype; other dtypes are stored as ``int32_data``."""
_FIELDS = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data", "string_data")
DEFAULT_DOMAINS = ("", "ai.onnx")
"""The names of the default operator set."""
CHECK_MODEL = "onnx.checker.check_model(model) finds such errors"
"""The hint for models that violate the specification of ONNX."""


class MalformedModelError(TilewrightError):
    """A file that is not an ONNX model, is truncated, or is inconsistent."""

    title = "Malformed ONNX model"


class UnsupportedTypeError(MalformedModelError):
    """A value of an ONNX model whose type has no counterpart in programs."""

    title = "Unsupported ONNX type"


class ExternalDataError(TilewrightError):
    """External data of a model that is missing, truncated, or outside of the model's folder."""

    title = "Invalid external data"


class UnknownOpsetWarning(UserWarning):
    """A model with a newer version of the ONNX operator set than the installed package knows."""


class UnsupportedOpsetError(TilewrightError):
    """A model with an unsupported version of the ONNX operator set."""

    title = "Unsupported ONNX opset"


@dataclass(frozen=True, slots=True)
class OnnxFile:
    """A parsed model and the only folder its external data may be read from."""

    model: Any
    folder: Path | None
    opset: int


def read_model(source: Any) -> OnnxFile:
    """Read a model from a path, or accept a ``ModelProto`` unchanged.

    Raises
    ------
    MalformedModelError
        If the file does not exist or is not an ONNX model.
    UnsupportedOpsetError
        If the version of its operator set is not supported.
    """
    import onnx

    if isinstance(source, onnx.ModelProto):
        return _checked(source, None, "ONNX model in memory")
    path = _model_path(source)
    data = _content(path)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except Exception as error:  # the exception class differs between protobuf implementations
        raise MalformedModelError(
            f"the file cannot be parsed as ONNX: {error}",
            where=str(path),
            hint="check that the file is an ONNX model and is not truncated",
        ) from error
    return _checked(model, path.parent, str(path))


def _model_path(source: object) -> Path:
    if not isinstance(source, str | PathLike):
        hint = "pass the path of an .onnx file, or the model that onnx.load returns"
        if isinstance(source, bytes):
            hint = "pass onnx.load_from_string(data)"
        raise MalformedModelError(
            f"expected a path or an onnx.ModelProto, got {type(source).__name__}",
            where="argument 'source' of from_onnx",
            hint=hint,
        )
    path = Path(cast("str | PathLike[str]", source))
    if _exists(path.is_dir):
        raise MalformedModelError(
            "expected a model file, got a folder", where=str(path), hint="pass the .onnx file in it"
        )
    if not _exists(path.is_file):
        raise MalformedModelError(
            "the file does not exist",
            where=str(path),
            hint="check the path; relative paths start at the current folder",
        )
    return path


def _exists(test: Callable[[], bool]) -> bool:
    """Return the result of a test of a path; a name that no file can have does not exist."""
    try:
        return test()
    except OSError:
        return False


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise MalformedModelError(
            f"the file cannot be read: {error.strerror or error}",
            where=str(path),
            hint="check the permissions of the file",
        ) from error


def _checked(model: Any, folder: Path | None, where: str) -> OnnxFile:
    if not model.HasField("graph") or not model.graph.output:
        raise MalformedModelError(
            "the ONNX model has no graph with outputs",
            where=where,
            hint="check that the file is not truncated",
        )
    versions = {o.version for o in model.opset_import if o.domain in DEFAULT_DOMAINS}
    if not versions and not any(n.domain in DEFAULT_DOMAINS for n in model.graph.node):
        versions = {newest_opset()}
    opset = min(versions or {0})
    if opset < OLDEST_OPSET and len(versions) == 1 and _is_unchanged(model, opset):
        versions, opset = {OLDEST_OPSET}, OLDEST_OPSET
    if opset < OLDEST_OPSET or len(versions) > 1:
        named = " and ".join(map(str, sorted(versions)))
        raise UnsupportedOpsetError(
            f"the model uses opset version {named}; "
            f"one version from {OLDEST_OPSET} on is supported",
            where=where,
            hint="convert the model with onnx.version_converter",
        )
    newest = newest_opset()
    if opset > newest:
        warnings.warn(
            f"{where} uses opset version {opset}; the installed onnx package knows versions up to "
            f"{newest}, and operators are imported as they are defined there",
            UnknownOpsetWarning,
            stacklevel=4,
        )
    return OnnxFile(model, folder, opset)


def _is_unchanged(model: Any, opset: int) -> bool:
    """Return whether the operators of a model are those of the oldest supported version."""
    from onnx import defs

    try:
        return all(
            defs.get_schema(n.op_type, OLDEST_OPSET).since_version <= opset
            for n in model.graph.node
            if n.domain in DEFAULT_DOMAINS
        )
    except defs.SchemaError:
        return False


def newest_opset() -> int:
    """Return the newest version of the operator set that the installed package knows."""
    from onnx import defs

    return max(schema.since_version for schema in defs.get_all_schemas() if not schema.domain)


def is_onnx_dtype(number: int) -> bool:
    """Return whether the dtype of an ONNX element type number is supported."""
    return number in _DTYPES


def onnx_dtype(number: int, where: str) -> DType:
    """Return the dtype of an ONNX element type number."""
    if number not in _DTYPES:
        raise UnsupportedTypeError(
            f"ONNX element type {number} is not supported",
            where=where,
            hint=f"supported dtypes: {', '.join(map(str, _DTYPES.values()))}",
        )
    return _DTYPES[number]


@dataclass(frozen=True, slots=True)
class Initializer:
    """A constant of a model, loaded on demand."""

    name: str
    shape: tuple[int, ...]
    dtype: DType
    tensor: Any
    file: WeightFile | None = None
    offset: int = 0

    @property
    def bytes(self) -> int:
        """The size of the elements in bytes."""
        return storage_bytes(math.prod(self.shape), self.dtype)

    def load(self) -> Array:
        """Copy the elements out of the external file or the model."""
        found = self._stored()
        return found.view(np.uint8) != 0 if self.dtype.kind == "bool" else found

    def _stored(self) -> Array:
        if self.file is not None:
            return self.file.read(self.offset, self.shape, self.dtype)
        from onnx import numpy_helper

        return np.asarray(numpy_helper.to_array(self.tensor)).astype(self.dtype.numpy, copy=False)


def initializer(tensor: Any, name: str, folder: Path | None) -> Initializer:
    """Validate a constant without loading it.

    Raises
    ------
    MalformedModelError
        If its number of bytes does not match its shape and dtype.
    ExternalDataError
        If its file is outside of the model's folder, missing, or too short.
    """
    where = f"initializer {name!r}"
    shape = tuple(int(d) for d in tensor.dims)
    found = Initializer(name, shape, onnx_dtype(tensor.data_type, where), tensor)
    if any(d < 0 for d in shape):
        message = f"the shape {shape} has a negative dimension"
        raise MalformedModelError(message, where=where, hint=CHECK_MODEL)
    if tensor.data_location == _EXTERNAL:
        return _external(found, folder)
    _check_data(found)
    return found


def _check_data(found: Initializer) -> None:
    """Check that a constant in the model has exactly the elements of its shape."""
    tensor, where = found.tensor, f"initializer {found.name!r}"
    held = {f: len(getattr(tensor, f)) for f in _FIELDS if len(getattr(tensor, f))}
    if tensor.HasField("raw_data"):
        held["raw_data"] = len(tensor.raw_data)
    field = "raw_data" if tensor.HasField("raw_data") else _FIELD_OF.get(found.dtype.name, "")
    field = field or "int32_data"
    whole = field == "raw_data" or found.dtype.is_packed
    parts = 2 if found.dtype.is_complex else 1
    needed = found.bytes if whole else math.prod(found.shape) * parts
    if needed and not held:
        raise MalformedModelError(
            f"the initializer has no data; shape {found.shape} of {found.dtype} needs "
            f"{found.bytes} bytes",
            where=where,
            hint="check that the file is not truncated",
        )
    if held.pop(field, 0) != needed or held or tensor.HasField("segment"):
        raise MalformedModelError(
            f"the data has {_counted(tensor)}; shape {found.shape} of {found.dtype} needs "
            + (f"{needed} bytes" if field == "raw_data" else f"{needed} elements in {field}"),
            where=where,
            hint=CHECK_MODEL,
        )


def _counted(tensor: Any) -> str:
    counts = [f"{len(getattr(tensor, f))} elements in {f}" for f in _FIELDS if getattr(tensor, f)]
    raw = [f"{len(tensor.raw_data)} bytes"] if tensor.HasField("raw_data") else []
    return " and ".join(raw + counts + ["a segment"] * tensor.HasField("segment")) or "0 elements"


def _external(found: Initializer, folder: Path | None) -> Initializer:
    where = f"initializer {found.name!r}"
    entries = {e.key: e.value for e in found.tensor.external_data}
    if folder is None:
        raise ExternalDataError(
            "external data cannot be located for a model in memory",
            where=where,
            hint="pass the path of the model file",
        )
    path = _inside(folder, entries.get("location", ""), where)
    offset = _integer(entries.get("offset", "0"), "offset", where)
    length = _integer(entries.get("length", str(found.bytes)), "length", where)
    file = WeightFile(path)
    if length != found.bytes or offset + length > file.size:
        raise ExternalDataError(
            f"the model refers to {length} bytes at offset {offset} of a file of {file.size} bytes"
            f"; shape {found.shape} of {found.dtype} needs {found.bytes} bytes",
            where=f"{where}, file {path.name}",
            hint="check that the file of the external data is complete",
        )
    return Initializer(found.name, found.shape, found.dtype, found.tensor, file, offset)


def _integer(text: str, name: str, where: str) -> int:
    if not (text.isdecimal() and text.isascii()) or len(text) > _MAX_DIGITS:
        raise ExternalDataError(
            f"expected a non-negative number of bytes as {name}, got {reprlib.repr(text)}",
            where=where,
            hint=CHECK_MODEL,
        )
    return int(text)


def _inside(folder: Path, location: str, where: str) -> Path:
    """Resolve a location, which must be a regular file inside the model's folder."""
    hint = "external data must be a regular file inside the folder of the model"
    if len(location) > _MAX_LOCATION:
        message = f"location {reprlib.repr(location)} has {len(location)} characters"
        raise ExternalDataError(
            f"{message}; at most {_MAX_LOCATION} are supported", where=where, hint=hint
        )
    given = Path(location)
    if not location or given.is_absolute() or ".." in given.parts or "\\" in location:
        raise ExternalDataError(
            f"location {location!r} is outside of the model's folder", where=where, hint=hint
        )
    path = folder / given
    steps = [folder.joinpath(*given.parts[: k + 1]) for k in range(len(given.parts))]
    if any(_exists(step.is_symlink) for step in steps):
        raise ExternalDataError(f"location {location!r} is a symbolic link", where=where, hint=hint)
    if not _exists(path.is_file):
        raise ExternalDataError(f"file {location!r} does not exist", where=where, hint=hint)
    return path
