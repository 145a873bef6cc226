"""What a reference implementation is handed: arrays, numbers, integers, attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...dtype import DType
from ...loop.nodes import Attribute, Attributes
from .errors import OperandError
from .signature import AttributeValues, Signature

Array: TypeAlias = NDArray[Any]
ReferenceArg: TypeAlias = "Array | float | int | bool | tuple[int, ...]"


class Evaluation:
    """One call on concrete values."""

    def __init__(
        self,
        op: str,
        signature: Signature,
        args: Sequence[ReferenceArg],
        attributes: Attributes | Mapping[str, Attribute],
        *,
        wide: bool,
    ) -> None:
        """Keep the values; ``wide`` asks for float64 wherever there are floats."""
        self.args = tuple(args)
        self.attributes = AttributeValues(op, signature, attributes)
        self.wide = wide
        self._op = op

    def has(self, position: int) -> bool:
        """Whether an optional operand is there."""
        return position < len(self.args)

    def array(self, position: int) -> Array:
        """Give a tensor operand."""
        value = self.args[position]
        if not isinstance(value, np.ndarray):
            raise OperandError(f"operand {position} of {self._op} has to be an array")
        return value

    def arrays(self) -> tuple[Array, ...]:
        """Give all operands, which all are tensors."""
        return tuple(self.array(k) for k in range(len(self.args)))

    def dims(self, position: int) -> tuple[int, ...]:
        """Give a tuple of integers."""
        value = self.args[position]
        if not isinstance(value, tuple):
            raise OperandError(f"operand {position} of {self._op} has to be a tuple of integers")
        return value

    def number(self, position: int) -> float | int | bool:
        """Give a number."""
        value = self.args[position]
        if isinstance(value, np.ndarray | tuple):
            raise OperandError(f"operand {position} of {self._op} has to be a number")
        return value

    def dtype_of(self, dtype: DType) -> np.dtype[Any]:
        """Give the NumPy dtype that stands for a dtype: float64 for all floats when wide."""
        return np.dtype(np.float64) if self.wide and dtype.is_float else dtype.numpy


def accumulator_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Give the dtype that sums of this dtype are kept in: float32 for half precision."""
    halves = ("float16", "bfloat16")
    return np.dtype(np.float32) if dtype.name in halves else dtype
