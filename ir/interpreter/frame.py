"""The state of one call of a graph-level function in the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...errors import TilewrightError
from ..dtype import DType
from ..graph.nodes import GraphFunc, TensorInfo, Value
from ..module import Module
from ..symbolic import Expr, Var, evaluate, to_text
from .rounding import Rounding

Array: TypeAlias = NDArray[Any]
Datum: TypeAlias = "Array | bytearray | int | float | bool | tuple[Datum, ...]"


class GraphCheckError(TilewrightError):
    """An argument or a computed value violates an annotation, a fact, or a check."""

    title = "Failed check"


@dataclass(slots=True)
class Frame:
    """The state of one call: the data of its values and symbols."""

    module: Module
    function: GraphFunc
    precise: bool
    rounding: Rounding | None = None
    values: dict[Value, Datum] = field(default_factory=dict[Value, Any])
    symbols: dict[Var, int] = field(default_factory=dict[Var, int])

    def storage(self, dtype: DType) -> np.dtype[np.generic]:
        """Return the dtype in which elements are computed."""
        return (dtype.wide if self.precise else dtype).numpy

    def size(self, term: Expr) -> int:
        """Return the value of a term."""
        return int(evaluate(term, self.symbols))

    def sizes(self, terms: Sequence[Expr]) -> tuple[int, ...]:
        """Return the values of terms."""
        return tuple(self.size(t) for t in terms)

    def shape(self, info: TensorInfo) -> tuple[int, ...]:
        """Return the shape of a new tensor.

        Raises
        ------
        GraphCheckError
            If a dimension is negative.
        """
        for term, size in zip(info.shape or (), self.sizes(info.shape or ()), strict=True):
            if size < 0:
                raise GraphCheckError(
                    f"size {to_text(term)} is negative: {size}",
                    where=f"function {self.function.name!r}",
                    hint="pass shapes for which the size is not negative",
                )
        return self.sizes(info.shape or ())


class Storage(bytearray):
    """Memory of a storage; the elements of packed dtypes are in arrays, one element per item."""

    def elements(self, offset: int, count: int, dtype: np.dtype[Any]) -> Array:
        """Return packed elements from an offset in bytes, shared by all views of the offset."""
        held: dict[tuple[int, str], Array] = self.__dict__.setdefault("held", {})
        key = (offset, dtype.name)
        known = held.get(key)
        if known is None or known.size < count:
            held[key] = known = np.full(count, 1, dtype)
        return known[:count]
