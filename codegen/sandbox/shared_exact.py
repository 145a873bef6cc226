"""Exact results of the interpreter in shared memory, which this process need not read."""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.interpreter.oracle import Exact
from .shared_arrays import SharedArrays


@dataclass(frozen=True, slots=True)
class SharedExact:
    """Exact results in shared memory.

    Parameters
    ----------
    memory : SharedArrays
        The values, then the allowed errors.
    text : str
        The derivation of the allowed errors.
    """

    memory: SharedArrays
    text: str

    def exact(self) -> Exact:
        """Return the results, which stay valid after :meth:`close`."""
        return Exact.of(self.memory.arrays(), self.text)

    def close(self) -> None:
        """Release the memory."""
        self.memory.close()
