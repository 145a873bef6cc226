"""The arguments of NumPy reference implementations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...dtype import DType, from_numpy
from ...loop.nodes import Attribute, Attributes
from .errors import OperandError
from .signature import AttributeValues, Signature

Array: TypeAlias = NDArray[Any]
ReferenceArg: TypeAlias = "Array | float | int | bool | tuple[int, ...]"


class Evaluation:
    """The operands and attributes of one call on concrete values."""

    def __init__(
        self,
        op: str,
        signature: Signature,
        args: Sequence[ReferenceArg],
        attributes: Attributes | Mapping[str, Attribute],
        *,
        wide: bool,
    ) -> None:
        """Check the attributes; ``wide`` requests float64 for all float results."""
        self.args = tuple(args)
        self.attributes = AttributeValues(op, signature, attributes)
        self.wide = wide
        self._op = op

    def has(self, position: int) -> bool:
        """Return whether an optional operand is present."""
        return position < len(self.args)

    def array(self, position: int) -> Array:
        """Return a tensor operand."""
        value = self.args[position]
        if not isinstance(value, np.ndarray):
            raise self._error(position, "an array", value)
        return value

    def arrays(self) -> tuple[Array, ...]:
        """Return all operands, which must be tensors."""
        return tuple(self.array(k) for k in range(len(self.args)))

    def dims(self, position: int) -> tuple[int, ...]:
        """Return an operand that is a tuple of integers."""
        value = self.args[position]
        if not isinstance(value, tuple):
            raise self._error(position, "a tuple of integers", value)
        return value

    def number(self, position: int) -> float | int | bool:
        """Return an operand that is a number."""
        value = self.args[position]
        if isinstance(value, np.ndarray | tuple):
            raise self._error(position, "a number", value)
        return value

    def _error(self, position: int, expected: str, value: ReferenceArg) -> OperandError:
        found = type(value).__name__
        return OperandError(
            f"expected {expected}, got {found}", where=f"operand {position} of {self._op}"
        )

    def dtype_of(self, dtype: DType) -> np.dtype[Any]:
        """Return the NumPy dtype of a dtype, the most precise one of its kind if ``wide``."""
        return (dtype.wide if self.wide else dtype).numpy


def accumulator_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of intermediate results.

    It is float32 for narrower floats, a machine integer for packed integers, which lack functions
    in NumPy, and else the same dtype.
    """
    row = from_numpy(dtype)
    return row.compute.numpy if row.is_float or row.is_packed else dtype
