"""The public symbols of an exported model, which must differ from all internal symbols."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Final

from ..entry_names import public_name
from .destinations import SUFFIXES
from .errors import ExportError
from .levels import RESERVED as OF_LEVELS
from .link import NATIVE
from .model import Model, symbol_of
from .replaceable import RESERVED as OF_UPDATES
from .states import RESERVED as OF_STATES

MODULES: Final = ("wasm", "web")
"""The kinds whose library is a WebAssembly module, without functions for outputs of the caller."""

_OWN: Final = ("abi_version", "open", "close", "live_models", "live_results", "trim")
_OF_KIND: Final = {
    "shared": ("pool_parallel", "pool_close", "python_call", "python_number", "python_runtime"),
    "wasm": ("alloc", "free", "release", "start"),
    "web": (
        "alloc",
        "free",
        "release",
        "limits",
        "take",
        "drop",
        "buffer",
        "offset",
        "weight",
        "verify",
        "open_on_device",
        "explain",
    ),
}
_INCLUDED: Final = re.compile(r'^#include "(\w+\.c)"$', re.MULTILINE)
_IGNORED: Final = re.compile(r'"(?:\\.|[^"\\])*"|/\*.*?\*/|//[^\n]*', re.DOTALL)
"""String literals and comments."""


def public_symbols(model: Model, kind: str) -> tuple[str, ...]:
    """Return the symbols that a library of a kind exports."""
    of_states = sorted(n for n in OF_STATES if n.startswith("state_"))
    of_states = [*of_states, *(("state_fail",) if kind == "web" else ())]
    if not model.states.params:
        of_states = []
    updates = sorted(OF_UPDATES) if model.replaceable else []
    of_levels = sorted(OF_LEVELS) if model.levels else []
    described = () if kind in MODULES else ("describe",)
    own = (*_OWN, *described, *_OF_KIND.get(kind, ()), *updates, *of_states, *of_levels)
    functions = [symbol_of(model, f) for f in model.public]
    if kind not in MODULES:
        functions += [f"{function}_{suffix}" for function in functions for suffix in SUFFIXES]
    return (*(f"{model.name}_{n}" for n in own), *functions)


def check_symbols(model: Model, source: str, linked: Collection[str] = ()) -> None:
    """Check that the public functions do not have names that the C file of the model uses itself.

    Parameters
    ----------
    model : Model
        The model.
    source : str
        The C file without the definitions of the public functions.
    linked : Collection of str
        The symbols of other objects, if they keep their names.

    Raises
    ------
    ExportError
        If one has.

    Examples
    --------
    A model ``put`` cannot have a function ``shape``, because the writer of error messages has a
    function ``put_shape``.
    """
    used = _identifiers((source, *(_native(name) for name in _INCLUDED.findall(source))))
    for spec in model.public:
        symbol = symbol_of(model, spec)
        if symbol in used or symbol in linked:
            raise ExportError(
                f"function {public_name(spec.name)!r} of model {model.name!r} would have the "
                f"symbol {symbol!r}, which the exported library uses itself",
                hint="choose another name for the model or the function",
            )


def _native(name: str) -> str:
    return (NATIVE / name).read_text(encoding="utf-8")


def _identifiers(texts: Iterable[str]) -> set[str]:
    return {w for text in texts for w in re.findall(r"[A-Za-z_]\w*", _IGNORED.sub(" ", text))}
