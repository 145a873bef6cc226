"""The level of a library: a part of the Python loader, whose names it uses.

An export contains the text after the marker; it replaces a line of ``loader.py``.
"""

from __future__ import annotations

import ctypes
import os

from .loader_weights import ModelError

NAME = ""


# @BEGIN@
def _level(level: str | None, manifest: dict) -> bytes | None:
    """Return the level to open, or None for the last one that the processor can execute."""
    if level is not None and "levels" not in manifest:
        raise ModelError(f"the library has no levels, got level={level!r}")
    found = os.environ.get("TILEWRIGHT_LEVEL") if level is None else level
    return found.encode() if found else None


def _variant(symbol, model) -> str:
    """Return the level that an open model runs."""
    native = symbol(f"{NAME}_variant")
    native.restype = ctypes.c_char_p
    return native(model).decode()
