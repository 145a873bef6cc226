"""Random inputs of a function: their recipe, from which each process draws the same arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...errors import Json
from ...ir.dtype import DType, dtype, f64
from ..errors import OutOfMemoryError

Array = NDArray[Any]

_CHUNK = 1 << 16
"""The number of elements that are drawn at a time, so that temporary arrays stay in the cache."""


@dataclass(frozen=True, slots=True)
class ArrayRecipe:
    """An array of random or of known elements.

    Parameters
    ----------
    name : str
        The name of the parameter, for errors.
    shape : tuple of int
        The sizes, which are at least 0.
    dtype : DType
        The dtype. Floats, and the parts of complex numbers, are uniform between -1 and 1.
    low, high : int
        The least value and the exclusive upper bound of integers, which the dtype contains.
    values : tuple of int, optional
        The elements in row-major order, if they are known.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType
    low: int = 0
    high: int = 2
    values: tuple[int, ...] | None = None

    @property
    def size(self) -> int:
        """The number of bytes of the array; packed dtypes have one element per byte."""
        return math.prod(self.shape) * self.dtype.width

    def fill(self, array: Array, random: np.random.Generator) -> None:
        """Write the elements into a contiguous array of this shape and dtype."""
        flat = array.reshape(-1)
        if self.values is not None:
            flat[...] = np.array(self.values, flat.dtype)
            return
        flat = flat.view(self.dtype.part.numpy)
        for start in range(0, flat.size, _CHUNK):
            part = flat[start : start + _CHUNK]
            part[...] = self._elements(part.size, random)

    def _elements(self, count: int, random: np.random.Generator) -> Array:
        own = self.dtype.part
        if own.is_float:
            drawn: Array = random.random(count) if own == f64 else random.random(count, np.float32)
            drawn *= 2
            drawn -= 1
            return drawn
        if own.kind == "bool":
            return random.integers(0, 2, count, np.bool_)
        stored: Any = np.int64 if own.is_extension else own.numpy
        return random.integers(self.low, self.high, count, stored)

    def to_json(self) -> dict[str, Json]:
        """Return the fields as JSON."""
        values = None if self.values is None else list[Json](self.values)
        return {
            "name": self.name, "shape": list[Json](self.shape), "dtype": self.dtype.name,
            "low": self.low, "high": self.high, "values": values,
        }  # fmt: skip

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ArrayRecipe:
        """Return the recipe of :meth:`to_json`."""
        values = None if data["values"] is None else tuple(data["values"])
        shape, low, high = tuple(data["shape"]), data["low"], data["high"]
        return cls(data["name"], shape, dtype(data["dtype"]), low, high, values)


Argument: TypeAlias = "int | ArrayRecipe"


@dataclass(frozen=True, slots=True)
class RandomInputs:
    """Positional arguments of a call whose arrays are not drawn yet.

    Parameters
    ----------
    arguments : tuple of int and ArrayRecipe
        Integers, and recipes of arrays.
    seed : int
        The seed of the random elements: equal recipes and seeds draw equal arrays.

    Examples
    --------
    >>> from ...ir.dtype import f32, i64
    >>> recipe = RandomInputs((ArrayRecipe("x", (2, 3), f32), 7, ArrayRecipe("i", (4,), i64, 5, 6)))
    >>> x, seven, indices = recipe.drawn(limit=1 << 20)
    >>> x.shape, bool((abs(x) <= 1).all()), seven, indices.tolist()
    ((2, 3), True, 7, [5, 5, 5, 5])
    >>> RandomInputs.from_json(recipe.to_json()) == recipe
    True
    """

    arguments: tuple[Argument, ...]
    seed: int = 0

    @property
    def arrays(self) -> tuple[ArrayRecipe, ...]:
        """The recipes of the arrays, in the order of the arguments."""
        return tuple(a for a in self.arguments if isinstance(a, ArrayRecipe))

    def require_memory(self, limit: int) -> None:
        """Check that the arrays use at most a number of bytes.

        Raises
        ------
        OutOfMemoryError
            If they use more; it names the first parameter that exceeds the limit.
        """
        left = limit
        for recipe in self.arrays:
            left -= recipe.size
            if left < 0:
                raise OutOfMemoryError(
                    f"cannot allocate the {recipe.size:,} bytes of shape {recipe.shape} and dtype "
                    f"{recipe.dtype}: random arguments use at most {limit:,} bytes",
                    where=f"parameter {recipe.name!r}",
                    hint="choose smaller values of the symbols",
                )

    def fill(self, arrays: Sequence[Array]) -> list[Array | int]:
        """Draw the elements of contiguous arrays, and return the arguments that contain them."""
        random, left = np.random.default_rng(self.seed), iter(arrays)
        arguments: list[Array | int] = []
        for argument in self.arguments:
            if isinstance(argument, int):
                arguments.append(argument)
                continue
            array = next(left)
            argument.fill(array, random)
            arguments.append(array)
        return arguments

    def drawn(self, limit: int) -> list[Array | int]:
        """Return the arguments with arrays of at most ``limit`` bytes, drawn in this process.

        Raises
        ------
        OutOfMemoryError
            If they use more.
        """
        self.require_memory(limit)
        return self.fill([np.empty(recipe.shape, recipe.dtype.numpy) for recipe in self.arrays])

    def to_json(self) -> dict[str, Json]:
        """Return the recipe as JSON."""
        arguments = [a if isinstance(a, int) else a.to_json() for a in self.arguments]
        return {"seed": self.seed, "arguments": list[Json](arguments)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RandomInputs:
        """Return the recipe of :meth:`to_json`."""
        found = data["arguments"]
        arguments = (a if isinstance(a, int) else ArrayRecipe.from_json(a) for a in found)
        return cls(tuple(arguments), data["seed"])
