"""The memory that calls need: a part of the Python loader, whose names it uses.

An export contains the text after the marker; it replaces a line of ``loader.py``.
"""

from __future__ import annotations

import ctypes

from .loader import _DTYPES, ModelError, _Error, _integer, _location, _raise, _Tensor


# @BEGIN@
class _Needs(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_int64), ("workspace_bytes", ctypes.c_int64),
        ("state_bytes", ctypes.c_int64), ("flags", ctypes.c_uint64),
    ]  # fmt: skip


def _shaped(param: dict, value, where: str):
    """Return a tensor without elements; it keeps the memory of its shape."""
    shape = tuple(_integer(n, where) for n in value)
    _, code, bits = _DTYPES[param["dtype"]]
    words = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    return _Tensor(None, 1, 0, len(shape), code, bits, 1, words, None, 0)


def _needs(opened: tuple, facts: dict, given: dict) -> dict:
    """Return the memory of a call, and the shapes of its results.

    ``given`` are shapes of tensors, and values of integers and symbols, by name.
    """
    model, symbol, states = opened
    params = [p for p in facts["params"] if p["access"] != "state"]
    symbols = states["symbols"] if len(params) < len(facts["params"]) else []
    names = [p["name"] for p in params] + list(symbols)
    if sorted(names) != sorted(given):
        raise ModelError(f"expected sizes of {', '.join(names)}, got {', '.join(given) or 'none'}")
    words, kept = [model], []
    for param in params:
        where = _location(facts["name"], param)
        if param["form"] == "integer":
            words.append(ctypes.c_int64(_integer(given[param["name"]], where)))
        else:
            kept.append(_shaped(param, given[param["name"]], where))
            words.append(ctypes.byref(kept[-1]))
    words += [ctypes.c_int64(_integer(given[s], f"symbol {s!r}")) for s in symbols]
    results = [r for r in facts["results"] if r["param"] < 0]
    shapes = [(ctypes.c_int64 * max(r["rank"], 1))() for r in results]
    needs, error = _Needs(ctypes.sizeof(_Needs)), _Error()
    native = symbol(f"{facts['symbol']}_needs")
    _raise(native(*words, *shapes, ctypes.byref(needs), ctypes.byref(error)), error)
    return {
        "workspace_bytes": needs.workspace_bytes,
        "state_bytes": needs.state_bytes,
        "exact": not needs.flags & 1,
        "results": {r["name"]: tuple(s[: r["rank"]]) for r, s in zip(results, shapes, strict=True)},
    }
