"""The few facts about a processor that shape a default schedule."""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.dtype import DType
from ...ir.target import Target


@dataclass(frozen=True, slots=True)
class Machine:
    """Vector width in bits, and how many vector registers there are."""

    vector_bits: int
    registers: int

    def lanes(self, dtype: DType) -> int:
        """Elements of a dtype in one vector register."""
        return max(1, self.vector_bits // dtype.bits)

    def tile(self, dtype: DType) -> tuple[int, int]:
        """Rows and columns of the register tile of a matmul.

        Two vectors a row; accumulators, one row of B and one broadcast fill the registers.
        """
        columns = 2 * self.lanes(dtype)
        return (self.registers - 4) // 2, columns


def machine_of(target: Target | None) -> Machine:
    """Give the facts of a target; without one, those of a processor with 512-bit vectors.

    Examples
    --------
    >>> machine_of(Target("cpu", features=("avx2", "fma")))
    Machine(vector_bits=256, registers=16)
    """
    features = target.features if target else ()
    if features and not any(f.startswith("avx512") for f in features):
        return Machine(256, 16)
    return Machine(512, 32)
