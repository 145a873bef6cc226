"""Validation of the names of models and functions, which become C, Python and file names."""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Collection, Iterable
from typing import Final, cast

from .errors import ExportError

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_INTERFACE: Final = ("tw", "tilewright")
"""The names that the shared header reserves."""
RESERVED: Final = frozenset({
    "abi_version", "open", "close", "model", "WEIGHTS_SIZE", "MOST_THREADS",
    "start", "alloc", "free", "release", "pool_parallel", "pool_close", "functions", "threads",
})  # fmt: skip
"""The suffixes of ``NAME_`` that the interface and the loaders define for every model."""


def check_name(name: str, kind: str) -> None:
    """Check that a name is valid for a model.

    Raises
    ------
    ExportError
        If it is not a C identifier, or conflicts with the header, the loader or Python.
    """
    if not isinstance(cast("object", name), str) or not _NAME.fullmatch(name):
        raise ExportError(
            f"{name!r} is not a valid C identifier",
            hint="use letters, digits and underscores, beginning with a letter",
        )
    if name.lower() in _INTERFACE or name.startswith("tw_"):
        raise ExportError(
            f"name {name!r} is reserved for the C interface", hint="choose another name"
        )
    if kind == "shared" and keyword.iskeyword(name):
        raise ExportError(
            f"{name!r} is a Python keyword, so {name}.py could not be imported",
            hint="choose another name",
        )
    if kind == "shared" and (name in sys.stdlib_module_names or name == "numpy"):
        raise ExportError(
            f"{name}.py would shadow the Python module {name!r}", hint="choose another name"
        )


def check_functions(names: Iterable[str], reserved: Collection[str] = RESERVED) -> None:
    """Check that no function has a reserved name.

    Raises
    ------
    ExportError
        If one has.
    """
    for name in names:
        if name in reserved:
            raise ExportError(
                f"function name {name!r} is reserved in exported programs",
                hint=f"rename the function; reserved names are {', '.join(sorted(reserved))}",
            )
