"""Calls of library functions by their references."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...errors import TilewrightError
from ..graph.libraries import get_library_function
from ..loop.nodes import Attributes, PrimFunc
from .loops import run_prim

Array: TypeAlias = NDArray[Any]


class LibraryReferenceError(TilewrightError):
    """A reference that raised an exception, or whose results do not match the outputs."""

    title = "Library reference"


def run_library(
    name: str,
    inputs: Sequence[Array],
    outputs: Sequence[Array],
    attributes: Attributes,
    *,
    launched: bool = False,
) -> None:
    """Compute a call by the reference of the library function, into its outputs.

    Parameters
    ----------
    name : str
        The name of the library function.
    inputs, outputs : sequence of arrays
        The arguments.
    attributes : Attributes
        The attributes of the call; others have their default values.
    launched : bool
        Whether this is a launch in the memory stage, whose last output is the workspace.

    Raises
    ------
    UnknownLibraryFunctionError
        If the name is not registered.
    LibraryReferenceError
        If the reference raises an exception, or its results do not match the outputs.

    Examples
    --------
    >>> a, out = np.eye(2), np.empty((2, 2))
    >>> run_library("blas.dgemm", [a, 3 * a], [out], (("alpha", 2.0),))
    >>> out.tolist()
    [[6.0, 0.0], [0.0, 6.0]]
    """
    function = get_library_function(name)
    if launched and function.workspace is not None:
        outputs = outputs[:-1]
    values = function.values(dict(attributes))
    if isinstance(function.reference, PrimFunc):
        run_prim(function.reference, [*inputs, *outputs], values)
        return
    try:
        found = function.reference(*map(read_only, inputs), **values)
    except TilewrightError:
        raise
    except Exception as error:
        raise LibraryReferenceError(
            f"the reference raised {type(error).__name__}: {error}",
            where=f"library function {name!r}",
        ) from error
    store_results(name, found, outputs)


def read_only(array: Array) -> Array:
    """Return a view of an operand, which a Python function cannot change.

    Examples
    --------
    >>> read_only(np.ones(2)).flags.writeable
    False
    """
    view = array.view()
    view.flags.writeable = False
    return view


def store_results(name: str, found: object, outputs: Sequence[Array]) -> None:
    """Copy the results of a Python function to the outputs of a call.

    Raises
    ------
    LibraryReferenceError
        If the number, a shape, or a dtype of the results differs.
    """
    results: tuple[Any, ...] = found if isinstance(found, tuple) else (found,)  # pyright: ignore[reportUnknownVariableType]
    if len(results) != len(outputs):
        raise LibraryReferenceError(
            f"expected {len(outputs)} results, got {len(results)}",
            where=f"library function {name!r}",
        )
    for k, (result, output) in enumerate(zip(results, outputs, strict=True)):
        array = np.asarray(result)
        if array.shape != output.shape or not np.can_cast(array.dtype, output.dtype, "same_kind"):
            raise LibraryReferenceError(
                f"result {k}: expected shape {output.shape} and dtype {output.dtype}, "
                f"got {array.shape} and {array.dtype}",
                where=f"library function {name!r}",
            )
        output[...] = array.astype(output.dtype)
