"""Inputs of the user, which a program is run with instead of random ones."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np

from ..errors import TilewrightError
from ..ir.dtype import DType, from_numpy
from ..ir.graph.nodes import GraphFunc, PrimInfo, TensorInfo
from ..ir.loop.nodes import BufferParam
from ..ir.module import Array, Function
from ..ir.symbolic import Expr, Var, to_text
from .render import Samples, at_samples
from .symbols import checked_sample

Param: TypeAlias = "tuple[str, tuple[Expr, ...], DType | None]"
"""The name, shape, and dtype of a parameter; an integer has its value as shape, and no dtype."""


class GivenInputsError(TilewrightError):
    """Inputs that a function does not accept."""

    title = "Invalid inputs"


@dataclass(frozen=True, slots=True)
class GivenInputs:
    """The positional inputs of one function."""

    function: str
    values: tuple[Array | int, ...]

    def fit(self, function: Function, samples: Samples) -> bool:
        """Return whether a function takes these inputs at the samples."""
        if function.name != self.function:
            return False
        pairs = zip(_params(function), self.values, strict=True)
        return all(_sizes(v) == tuple(at_samples(d, samples) for d in p[1]) for p, v in pairs)


def given_inputs(
    function: Function, inputs: Sequence[object]
) -> tuple[GivenInputs, dict[str, int]]:
    """Return checked inputs and the values of the symbols that their shapes determine.

    Parameters
    ----------
    function : Function
        The function, which takes the inputs.
    inputs : sequence
        Integers, and arrays of NumPy or with DLPack, as in a call.

    Raises
    ------
    GivenInputsError
        If the number, a dtype, or a shape differs from the parameters.
    SampleError
        If the range of a symbol excludes a size.
    """
    params, values = list(_params(function)), tuple(map(_value, inputs))
    if len(values) != len(params):
        names = ", ".join(name for name, _, _ in params)
        raise GivenInputsError(
            f"got {len(values)} inputs; function {function.name!r} takes {len(params)}",
            hint=f"the parameters are {names}",
        )
    symbols: dict[str, int] = {}
    for (name, shape, dtype), value in zip(params, values, strict=True):
        _check_kind(name, shape, dtype, value)
        for dim, size in zip(shape, _sizes(value), strict=True):
            if isinstance(dim, Var):
                symbols.setdefault(dim.name, size)
    for symbol, size in symbols.items():
        checked_sample(function, symbol, size)
    for (name, shape, _), value in zip(params, values, strict=True):
        wanted = tuple(at_samples(dim, symbols) for dim in shape)
        if wanted != _sizes(value):
            text = ", ".join(map(to_text, shape))
            raise GivenInputsError(
                f"input {name!r} has the sizes {_sizes(value)}; expected ({text}) = {wanted}",
                where=f"parameter {name!r}",
            )
    return GivenInputs(function.name, values), symbols


def digest(values: Sequence[Array | int]) -> str:
    """Return a digest of inputs, which differs if an element, a shape, or a dtype differs.

    Examples
    --------
    >>> zeros, ones = np.zeros(2), np.ones(2)
    >>> digest([zeros]) == digest([np.zeros(2)]), digest([zeros]) == digest([ones])
    (True, False)
    """
    made = hashlib.sha256()
    for value in values:
        if isinstance(value, int):
            made.update(f"{value};".encode())
            continue
        made.update(f"{value.dtype}{value.shape};".encode())
        made.update(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data)
    return made.hexdigest()


def _params(function: Function) -> Iterator[Param]:
    if isinstance(function, GraphFunc):
        for param in function.params:
            info, name = param.value.info, param.value.name
            if param.access == "out":
                continue
            if isinstance(info, TensorInfo) and info.shape is not None:
                yield name, info.shape, info.dtype
            elif isinstance(info, PrimInfo) and info.value is not None:
                yield name, (info.value,), None
            else:
                raise GivenInputsError(f"parameter {name!r} is not a tensor of known shape")
        return
    for param in function.params:
        if not isinstance(param, BufferParam):
            yield param.var.name, (param.var,), None
        elif param.access != "out":
            yield param.buffer.name, param.buffer.shape, param.buffer.dtype


def _value(value: object) -> Array | int:
    if isinstance(value, int | np.ndarray):
        return cast("Array | int", value)
    if hasattr(value, "__dlpack__"):
        return np.from_dlpack(cast("Any", value))
    raise GivenInputsError(
        f"got an input of type {type(value).__name__}; expected an array or an integer"
    )


def _sizes(value: Array | int) -> tuple[int, ...]:
    return (value,) if isinstance(value, int) else value.shape


def _check_kind(
    name: str, shape: tuple[Expr, ...], dtype: DType | None, value: Array | int
) -> None:
    where = f"parameter {name!r}"
    if isinstance(value, int) != (dtype is None):
        expected = "an integer" if dtype is None else f"an array of {dtype}"
        raise GivenInputsError(f"input {name!r} is not {expected}", where=where)
    if not isinstance(value, int) and from_numpy(value.dtype) != dtype:
        raise GivenInputsError(
            f"input {name!r} has dtype {value.dtype}; expected {dtype}", where=where
        )
    if len(_sizes(value)) != len(shape):
        raise GivenInputsError(
            f"input {name!r} has {len(_sizes(value))} dimensions; expected {len(shape)}",
            where=where,
        )
