"""Packed weights: the transforms of weights run during the export, and not when a model is opened.

The machine code of the export itself computes them, so the results are bit-identical to those of a
library that packs its weights when it is opened.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

from ...errors import TilewrightError
from ...ir.dtype import dtype
from ...ir.module import Constant
from ...ir.packing import storage_of
from ...target.host import require_runnable
from ...target.target import Target
from ..artifact import Artifact
from ..runtime.executable import Executable
from ..runtime.table import MemoryProvider, RuntimeTable
from .errors import ExportError

LAYOUTS: Final = ("auto", "packed", "plain", "replaceable")
"""The values of ``weights``."""


def packs(weights: str, kind: str, *targets: Target) -> bool:
    """Return whether an export contains packed weights; this machine runs the code of all targets.

    Raises
    ------
    ExportError
        If the value is unknown, or this machine cannot run the code that packs the weights.
    """
    if weights not in LAYOUTS:
        raise ExportError(
            f"unknown value {weights!r} of weights",
            hint=f"values are {', '.join(map(repr, LAYOUTS))}",
        )
    if weights == "plain":
        return False
    try:
        if kind in ("wasm", "web"):
            raise ExportError("code for WebAssembly does not run in this process")
        for target in targets:
            require_runnable(target)
    except TilewrightError as error:
        if weights == "packed":
            raise ExportError(
                f"the weights cannot be packed during the export: {error.message}",
                hint="use weights='plain', which packs them when the library is opened",
            ) from error
        return False
    return True


@cache
def _zeroed() -> RuntimeTable:
    """Return a table whose memory is zero, for the elements of packed tensors that are padding."""
    process = ctypes.CDLL(None)
    process.aligned_alloc.restype = ctypes.c_void_p
    process.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
    process.free.argtypes = [ctypes.c_void_p]

    def allocate(size: int, alignment: int) -> int:
        rounded = -(-size // alignment) * alignment
        address: int = process.aligned_alloc(alignment, rounded) or 0
        if address:
            ctypes.memset(address, 0, rounded)
        return address

    return RuntimeTable(memory=MemoryProvider(allocate, process.free))


def prepared_constants(
    artifact: Artifact, constants: Mapping[str, Constant]
) -> dict[str, Constant]:
    """Return the results of all transforms of weights as constants by name."""
    results = {r.name: r for f in artifact.functions if f.prepares for r in f.results}
    if not results:
        return {}
    arrays = Executable(artifact, constants, table=_zeroed()).constants(prepared=True)
    return {
        name: Constant(
            tuple(map(int, results[name].shape)), dtype(results[name].dtype), lambda a=array: a
        )
        for name, array in arrays.items()
    }


def equal_tensors(constants: Mapping[str, Constant], names: Iterable[str]) -> dict[str, str]:
    """Return the constants that have the type, the shape, and the elements of an earlier one.

    Functions that read one weight in the same form each transform it.

    Parameters
    ----------
    constants : Mapping of str to Constant
        The constants by name.
    names : Iterable of str
        The names of the constants to compare, in order.

    Returns
    -------
    dict of str to str
        The name of the first equal constant by the name of a later one.
    """
    first: dict[tuple[object, ...], str] = {}
    found: dict[str, str] = {}
    for name in names:
        constant = constants[name]
        digest = hashlib.sha256(storage_of(constant.load(), constant.dtype).data).digest()
        key = constant.dtype, constant.shape, digest
        if first.setdefault(key, name) != name:
            found[name] = first[key]
    return found
