"""Names of a model and of its functions, which become names in C, in Python, and of files."""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Iterable
from typing import Final, cast

from .errors import ExportError

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_INTERFACE: Final = ("tw", "tilewright")
"""What the shared header calls its own."""
RESERVED: Final = frozenset({
    "abi_version", "open", "close", "model", "WEIGHTS_SIZE", "MOST_THREADS",
    "start", "alloc", "free", "release", "pool_parallel", "pool_close", "functions", "threads",
})  # fmt: skip
"""What the interface, or a loader, says of every model under ``NAME_``."""


def check_name(name: str, kind: str) -> None:
    """Check that a model may be called so.

    Raises
    ------
    ExportError
        If it is no name in C, or would hide what the header, the loader or Python needs.
    """
    if not isinstance(cast("object", name), str) or not _NAME.fullmatch(name):
        raise ExportError(
            f"{name!r} is no name in C", hint="letters, digits and underscores, a letter first"
        )
    if name.lower() in _INTERFACE or name.startswith("tw_"):
        raise ExportError(f"the name {name!r} is the interface's own", hint="choose another name")
    if kind == "shared" and keyword.iskeyword(name):
        raise ExportError(
            f"Python cannot import {name}.py: {name!r} is a keyword", hint="choose another name"
        )
    if kind == "shared" and (name in sys.stdlib_module_names or name == "numpy"):
        raise ExportError(
            f"{name}.py would hide Python's module {name!r} from itself", hint="choose another name"
        )


def check_functions(names: Iterable[str]) -> None:
    """Check that no function meets what the interface itself calls so.

    Raises
    ------
    ExportError
        With the name, and those that are taken.
    """
    for name in names:
        if name in RESERVED:
            raise ExportError(
                f"a function of an exported program cannot be called {name!r}",
                hint=f"call it otherwise; taken are {', '.join(sorted(RESERVED))}",
            )
