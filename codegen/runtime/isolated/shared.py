"""Arrays in memory that two processes see: an anonymous file, gone with the last who holds it."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....ir.dtype import dtype, from_numpy
from ....ir.errors import Json

Array = NDArray[Any]
_ALIGNED = 64


def _places(arrays: Sequence[Array]) -> tuple[list[int], int]:
    at, places = 0, list[int]()
    for array in arrays:
        places.append(at)
        at += -(-array.nbytes // _ALIGNED) * _ALIGNED
    return places, max(at, mmap.PAGESIZE)


class SharedArrays:
    """Arrays side by side in one anonymous file.

    Parameters
    ----------
    descriptor : int
        The file, which this object then owns.
    layout : sequence
        For each array: offset in bytes, shape, dtype.

    Examples
    --------
    >>> held = SharedArrays.of([np.arange(3, dtype=np.int64)])
    >>> SharedArrays(os.dup(held.descriptor), held.layout).arrays()[0].tolist()
    [0, 1, 2]
    >>> held.close()
    """

    def __init__(self, descriptor: int, layout: Sequence[Any]) -> None:
        """Map the file."""
        self.descriptor = descriptor
        self.layout: list[Json] = [list(entry) for entry in layout]
        self._memory = mmap.mmap(descriptor, os.fstat(descriptor).st_size)

    @classmethod
    def of(cls, arrays: Sequence[Array]) -> SharedArrays:
        """Make a file that holds copies of arrays: the only time they are copied."""
        places, size = _places(arrays)
        descriptor = os.memfd_create("tilewright", os.MFD_CLOEXEC)
        os.ftruncate(descriptor, size)
        layout = [
            (place, list(array.shape), from_numpy(array.dtype).name)
            for place, array in zip(places, arrays, strict=True)
        ]
        made = cls(descriptor, layout)
        for held, array in zip(made.arrays(), arrays, strict=True):
            held[...] = array
        return made

    def arrays(self) -> list[Array]:
        """Give the arrays, without a copy; they keep the memory alive."""
        return [self._array(entry) for entry in self.layout]

    def _array(self, entry: Any) -> Array:
        offset, shape, name = entry
        dims = tuple(int(d) for d in shape)
        count = int(np.prod(dims, dtype=np.int64))
        return np.frombuffer(self._memory, dtype(name).numpy, count, offset).reshape(dims)

    def close(self) -> None:
        """Close the file; arrays that were given out stay valid."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
