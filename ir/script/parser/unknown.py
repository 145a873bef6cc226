"""Errors about names that do not exist, with similar names and the names of other systems."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Final

from ....nearest import did_you_mean, listed
from ...loop.element_functions import named
from ..errors import UnknownNameError
from .source import Source

_LIMIT: Final = 16
"""The number of names that a message lists."""

DTYPE_NAMES: Final[dict[str, str]] = {
    "bfloat16": "bf16",
    "bool_": "bool",
    "double": "f64",
    "float": "f32",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "half": "f16",
    "int": "i32",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "long": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
}
"""Names of dtypes in NumPy, PyTorch and C, and the names here."""

LOOP_NAMES: Final[dict[str, str]] = {
    "Parallel": "parallel",
    "grid": "range",
    "prange": "parallel",
    "static_range": "unrolled",
    "thread_binding": "thread",
    "unroll": "unrolled",
    "vectorize": "vectorized",
}
"""Names of loop kinds in TVM, Triton and Numba, and the names here."""

FUNCTION_NAMES: Final[dict[str, str]] = {
    **{name: function.name for name, function in named("numpy").items()},
    "fabs": "abs",
    "fmax": "max",
    "fmin": "min",
    "if_then_else": "where",
    "select": "where",
}
"""Names of element functions in NumPy, PyTorch and TVM, and the names here."""


def unknown_name(
    source: Source,
    node: ast.expr,
    kind: str,
    name: str,
    known: Iterable[str],
    *,
    plural: str = "",
    others: Mapping[str, str] | None = None,
    hint: str = "",
) -> UnknownNameError:
    """Return an error about a name that does not exist, which lists the names that exist.

    Parameters
    ----------
    source : Source
        The text.
    node : ast.expr
        The name in the text.
    kind : str
        The kind of the named part, such as ``"buffer"``.
    name : str
        The name.
    known : iterable of str
        The existing names of this kind.
    plural : str
        The plural of the kind; by default with ``s``.
    others : Mapping of str to str, optional
        Names in other systems and their equivalents here.
    hint : str
        The hint if no similar name exists.
    """
    names = list(known)
    plain = name.rpartition(".")[2]
    same = plain if plain in names else (others or {}).get(plain, "")
    fix = f"write {same}" if same in names else did_you_mean(name, names)
    return UnknownNameError(
        f"no {kind} {name!r}; {plural or kind + 's'} are {listed(name, names, limit=_LIMIT)}",
        location=source.location(node),
        hint=fix or hint or f"use the name of an existing {kind}",
    )
