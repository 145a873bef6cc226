"""Validation of the names of models and functions, which become C, Python and file names."""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Collection, Iterable
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final, cast

from .errors import ExportError

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_INTERFACE: Final = ("tw", "tilewright")
"""The names that the shared header reserves."""
RESERVED: Final = frozenset({
    "abi_version", "open", "close", "live_models", "live_results", "trim", "model",
    "describe", "WEIGHTS_SIZE", "MOST_THREADS",
    "start", "alloc", "free", "release", "pool_parallel", "pool_close", "functions", "threads",
    "python_call", "python_number", "python_runtime", "check_weights", "needs", "variant",
})  # fmt: skip
"""The suffixes of ``NAME_`` that the interface and the loaders define for every model."""
_LINKED: Final = (
    "abi_version", "open", "close", "live_models", "live_results", "trim", "update",
    "describe", "weights_in_use", "pool_parallel", "pool_close", "python_call", "python_number",
    "python_runtime", "state_create", "state_reset", "state_tensor", "state_destroy", "variant",
    "level_name",
)  # fmt: skip
"""The suffixes of ``NAME_`` that native libraries define."""
_PACKAGES: Final = frozenset({
    "jax", "ml_dtypes", "numpy", "onnx", "onnxruntime", "pandas", "scipy", "tensorflow", "torch",
})  # fmt: skip
"""Packages that programs which load a model often import, installed here or not."""
_SITES: Final = frozenset({"site-packages", "dist-packages"})


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
    if kind == "shared" and _is_module(name):
        raise ExportError(
            f"{name}.py would shadow the Python module {name!r}", hint="choose another name"
        )


def _is_module(name: str) -> bool:
    """Return whether a name is that of a module of Python, or of an installed or common package."""
    if name in sys.stdlib_module_names or name in _PACKAGES:
        return True
    installed = [path for path in sys.path if Path(path).name in _SITES]
    return PathFinder.find_spec(name, installed) is not None


def check_functions(names: Iterable[str], reserved: Collection[str] = RESERVED) -> None:
    """Check that no function has a reserved name, or one that ends in ``_open`` and the like.

    Function ``b_open`` of model ``a`` would have the symbol of function ``open`` of model ``a_b``.

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
        for suffix in _LINKED:
            if name.endswith(f"_{suffix}"):
                other = f"NAME_{name.removesuffix(f'_{suffix}')}"
                raise ExportError(
                    f"function {name!r} would have the symbol NAME_{name}, which function "
                    f"{suffix!r} of a model with the name {other} has",
                    hint=f"rename the function to one that does not end in _{suffix}",
                )
