"""The form of a call in the operator tests: random tensors, numbers, dimensions, attributes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright.ir.dtype import DType, f32

Dim = int | str


@dataclass(frozen=True)
class T:
    """A tensor operand with random values; dimensions are numbers or names of symbols."""

    shape: tuple[Dim, ...]
    dtype: DType = f32
    low: float = -3.0
    high: float | str = 3.0

    def draw(self, env: dict[str, int], rng: np.random.Generator) -> np.ndarray[Any, Any]:
        shape = tuple(env[d] if isinstance(d, str) else d for d in self.shape)
        high = env[self.high] if isinstance(self.high, str) else self.high
        if self.dtype.kind == "bool":
            return rng.random(shape) < 0.5
        if self.dtype.is_integer:
            return rng.integers(int(self.low), int(max(high, self.low + 1)), shape).astype(
                self.dtype.numpy
            )
        found = rng.uniform(self.low, high, shape)
        if self.dtype.is_complex:
            found = found + 1j * rng.uniform(self.low, high, shape)
        return found.astype(self.dtype.numpy)


class Ends(T):
    """A vector of increasing integers."""

    def draw(self, env: dict[str, int], rng: np.random.Generator) -> np.ndarray[Any, Any]:
        return np.sort(super().draw(env, rng))


@dataclass(frozen=True)
class Case:
    """One call: operands (tensors, numbers, or tuples of dimensions) and attributes."""

    op: str
    args: tuple[Any, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    tolerance: float = 2e-6
    at: tuple[dict[str, int], ...] = ({"n": 5, "m": 3}, {"n": 1, "m": 4}, {"n": 7, "m": 1})

    def __str__(self) -> str:
        shapes = "_".join(
            "x".join(map(str, a.shape)) + str(a.dtype) if isinstance(a, T) else str(a)
            for a in self.args
        )
        return f"{self.op}-{shapes}-{'-'.join(map(str, self.attributes.values()))}"


NM = T(("n", "m"))
EMPTY = ({"n": 5, "m": 3}, {"n": 1, "m": 1}, {"n": 0, "m": 3}, {"n": 4, "m": 0})
