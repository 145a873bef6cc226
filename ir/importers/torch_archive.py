"""Verification of saved exported programs, before PyTorch loads them.

``torch.export.load`` evaluates expressions, resolves the names of functions, unpickles objects,
and loads the compiled code of a ``.pt2`` archive, so a hostile file can execute anything. The
functions of this module accept an archive only if everything in it that PyTorch would execute has
a form that cannot do more than describe a program.
"""

from __future__ import annotations

import io
import json
import re
import reprlib
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, cast

from ...errors import TilewrightError
from .torch_expressions import is_guard, is_identifier, is_plain, is_size

_RECORDS: Final = re.compile(
    r"(models|data/(weights|constants|sample_inputs)|extra)/.*"
    r"|archive_format|archive_version|byteorder|version|\.data/(version|serialization_id)"
)
_OPERATORS: Final = frozenset((
    "add", "sub", "mul", "floordiv", "mod", "neg", "pow", "truediv",
    "eq", "ne", "lt", "le", "gt", "ge", "and_", "or_", "not_", "getitem",
))  # fmt: skip
_WRAPPERS: Final = frozenset((
    "wrap_with_set_grad_enabled", "wrap_with_autocast", "cond", "while_loop", "scan", "map_impl",
))  # fmt: skip
_MATH: Final = frozenset(("ceil", "floor", "trunc", "sqrt"))
_NAMES: Final = frozenset(("name", "as_name", "forward_arg_names", "field_names"))
"""The fields whose strings PyTorch writes into Python code."""
_FREE: Final = frozenset(("metadata", "as_string", "as_strings"))
"""The fields whose strings PyTorch only stores."""
_INTEGERS: Final = frozenset(("min_val", "max_val"))
_SPECS: Final = frozenset(("in_spec", "out_spec"))
_IMPORTING: Final = frozenset(("__enum__", "default_factory_module"))
"""Keys of a description of nested inputs that make PyTorch import a module."""
_DEFAULT_FACTORIES: Final = frozenset(("list", "dict", "int", "float", "set", "tuple", "str"))


class UnverifiedArchiveError(TilewrightError):
    """A saved exported program with content that PyTorch may execute when it loads the file."""

    title = "Unverified exported program"


def verify_archive(path: Path) -> None:
    """Check that loading a saved exported program cannot execute code from the file.

    Parameters
    ----------
    path : Path
        A ``.pt2`` file that ``torch.export.save`` wrote.

    Raises
    ------
    UnverifiedArchiveError
        If a part of the file cannot be verified: an expression other than arithmetic on sizes,
        an operator that is not one of PyTorch, a pickled object other than tensors and
        containers, compiled code, or an unknown record.
    Exception
        If the file is damaged; the errors of PyTorch's reader have no common class.

    Notes
    -----
    The records are read with the same reader that ``torch.export.load`` uses, so both see the
    same content of an archive with duplicate names or several directories.
    """
    import torch

    library: Any = torch
    reader = library._C.PyTorchFileReader(str(path))  # noqa: SLF001 - the reader of `load`
    _Archive(path, reader).verify()


class _Archive:
    def __init__(self, path: Path, reader: Any) -> None:
        self.path = path
        self.reader = reader

    def verify(self) -> None:
        """Check all records."""
        with zipfile.ZipFile(self.path) as archive:
            plain = [name for name in archive.namelist() if "/" not in name]
        if plain:
            raise self._refuse(f"has the record {reprlib.repr(plain[0])} outside of its folder")
        for record in cast("list[str]", self.reader.get_all_records()):
            if not _RECORDS.fullmatch(record):
                raise self._refuse(f"has the record {reprlib.repr(record)}, which is not data")
            self._record(record)

    def _refuse(self, reason: str) -> UnverifiedArchiveError:
        return UnverifiedArchiveError(
            f"the exported program {reason}",
            where=str(self.path),
            hint="loading it may execute code; if you trust its source, pass --trust, or import "
            "it with tw.from_exported_program(torch.export.load(path))",
        )

    def _record(self, record: str) -> None:
        folder = record.rpartition("/")[0]
        pickled = folder == "data/sample_inputs" or record.endswith(".pt")
        if folder.startswith("data/") and pickled:
            self._pickle(record)
        elif record.startswith("models/"):
            self._program(record)
        elif folder in ("data/weights", "data/constants") and record.endswith("_config.json"):
            self._payload(record, tensors=folder == "data/constants")

    def _pickle(self, record: str) -> None:
        """Check that a pickle contains nothing except tensors and containers."""
        import torch

        data: bytes = self.reader.get_record(record)
        if not data:
            return
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                torch.load(io.BytesIO(data), weights_only=True, map_location="meta")
        except Exception as error:  # the unpickler has no common class of errors
            raise self._refuse(
                f"contains pickled objects other than tensors in the record {record!r}"
            ) from error

    def _json(self, record: str) -> Any:
        return json.loads(self.reader.get_record(record).decode("utf-8"))

    def _payload(self, record: str, *, tensors: bool) -> None:
        """Check that the weights or constants are raw tensors."""
        config: dict[str, Any] = self._json(record)["config"]
        for name, entry in config.items():
            file = entry["path_name"]
            if entry.get("use_pickle", False) is not False:
                raise self._refuse(f"contains the pickled tensor {reprlib.repr(name)}")
            if not isinstance(file, str) or (tensors and not file.startswith("tensor_")):
                raise self._refuse(f"contains the object {reprlib.repr(name)}, not a tensor")

    def _program(self, record: str) -> None:
        """Check all strings of a program."""
        for key, value in _leaves(self._json(record), ""):
            check = _CHECKS.get(key, _is_text)
            if not check(value):
                raise self._refuse(
                    f"contains {reprlib.repr(value)} as {key!r} in the record {record!r}, "
                    "which cannot be verified"
                )


def _leaves(value: Any, key: str) -> Iterator[tuple[str, Any]]:
    """Yield each leaf of JSON data, and each key of its objects, with the name of its field."""
    waiting: list[tuple[str, Any]] = [(key, value)]
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, dict):
            entries = cast("dict[str, Any]", value)
            yield from (("", name) for name in entries)
            waiting += [i for i in entries.items() if i[0] not in _FREE or not _is_flat(i[1])]
        elif isinstance(value, list):
            waiting += [(key, v) for v in cast("list[Any]", value)]
        else:
            yield key, value


def _is_flat(value: Any) -> bool:
    """Return whether a value is a string, or consists of strings."""
    if isinstance(value, dict):
        return all(isinstance(v, str) for v in cast("dict[str, Any]", value).values())
    if isinstance(value, list):
        return all(isinstance(v, str) for v in cast("list[Any]", value))
    return isinstance(value, str)


def _is_text(value: Any) -> bool:
    return not isinstance(value, str) or is_plain(value)


def _is_name(value: Any) -> bool:
    return value is None or (isinstance(value, str) and is_identifier(value))


def _is_bound(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool))


def _is_operator(value: Any) -> bool:
    """Return whether a name is that of an operator of PyTorch or of Python."""
    if not isinstance(value, str) or not value.isascii():
        return False
    match value.split("."):
        case ["_operator", name]:
            return name in _OPERATORS
        case ["math", name]:
            return name in _MATH
        case ["torch", name]:
            return re.fullmatch(r"_?sym_[a-z]+", name) is not None
        case ["torch", "ops", "higher_order", name]:
            return name in _WRAPPERS
        case ["torch", "ops", "aten", name, overload]:
            return _is_overload(name, overload)
        case _:
            return False


def _is_overload(name: str, overload: str) -> bool:
    import torch

    packet: Any = getattr(torch.ops.aten, name, None)
    known = type(packet).__name__ == "OpOverloadPacket" and name != "from_file"
    return known and overload in packet.overloads()


def _is_spec(value: Any) -> bool:
    """Return whether a description of nested inputs imports no module."""
    if not isinstance(value, str):
        return value is None
    try:
        decoded = json.loads(value)
    except (ValueError, RecursionError):
        return is_plain(value)
    leaves = list(_leaves(decoded, ""))
    if any(not key and isinstance(v, str) and v in _IMPORTING for key, v in leaves):
        return _has_builtin_factories(leaves)
    return all(
        _is_spec(v) if key == "context" and isinstance(v, str) else _is_text(v) for key, v in leaves
    )


def _has_builtin_factories(leaves: list[tuple[str, Any]]) -> bool:
    """Return whether the default values of dictionaries are made by built-in classes."""
    found = {key: v for key, v in leaves if key.startswith("default_factory_")}
    return (
        all(_is_text(v) for _, v in leaves)
        and ("", "__enum__") not in leaves
        and found.get("default_factory_module") == "builtins"
        and found.get("default_factory_name") in _DEFAULT_FACTORIES
    )


_CHECKS: Final[dict[str, Callable[[Any], bool]]] = {
    "expr_str": lambda value: isinstance(value, str) and is_size(value),
    "guards_code": lambda value: isinstance(value, str) and is_guard(value),
    "target": _is_operator,
    "as_operator": _is_operator,
    **dict.fromkeys(_NAMES, _is_name),
    **dict.fromkeys(_INTEGERS, _is_bound),
    **dict.fromkeys(_SPECS, _is_spec),
}
"""The check of a field by its name; other strings are plain text."""
