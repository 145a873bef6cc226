"""Unsupported operators of a source model, kept as calls of library functions of their names.

Such a program can be viewed, scheduled, and printed. It runs once functions of these names are
registered with ``tw.library_function``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..graph.nodes import CallDPSLibrary, TensorInfo, result_info
from ..naming import is_valid_name, to_valid_name
from .emitter import Emitter
from .tensors import Imported

_RESERVED = "outputs"


def opaque_call(
    t: Emitter,
    name: str,
    operands: Iterable[Imported],
    outputs: Sequence[TensorInfo],
    attributes: Mapping[str, Any],
) -> list[Imported]:
    """Emit a call of a library function with declared outputs; return the outputs.

    Attributes that are neither numbers nor strings are omitted.
    """
    args = tuple(t.plain(x) for x in operands)
    given = tuple(
        (key, value)
        for key, value in attributes.items()
        if isinstance(value, bool | int | float | str) and is_valid_name(key) and key != _RESERVED
    )
    call = CallDPSLibrary(name, args, tuple(outputs), given)
    label = to_valid_name(name.split(".")[-2 if name.count(".") > 1 else -1])
    whole = t.builder.bind(label, result_info(call), call, t.origins)
    return [t.tensor(whole)] if len(outputs) == 1 else t.items(whole)
