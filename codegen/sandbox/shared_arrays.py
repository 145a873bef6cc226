"""Arrays in memory that two processes share: an anonymous file, freed with its last descriptor."""

from __future__ import annotations

import contextlib
import math
import mmap
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import Json
from ...ir.dtype import DType, dtype, from_numpy
from ..errors import RunStartError

Array = NDArray[Any]
_ALIGNED = 64


def _new_file(size: int) -> int:
    """Return the descriptor of a new anonymous file."""
    descriptor = os.memfd_create("tilewright", os.MFD_CLOEXEC)
    try:
        os.ftruncate(descriptor, size)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


class SharedArrays:
    """Arrays in one anonymous file.

    Parameters
    ----------
    descriptor : int
        The descriptor of the file, which this object closes.
    layout : sequence
        Per array: offset in bytes, shape, dtype.

    Examples
    --------
    >>> shared = SharedArrays.of([np.arange(3, dtype=np.int64)])
    >>> SharedArrays(os.dup(shared.descriptor), shared.layout).arrays()[0].tolist()
    [0, 1, 2]
    >>> shared.close()
    """

    def __init__(self, descriptor: int, layout: Sequence[Any]) -> None:
        """Map the file."""
        self.descriptor = descriptor
        self.layout: list[Json] = [list(entry) for entry in layout]
        try:
            self._memory = mmap.mmap(descriptor, os.fstat(descriptor).st_size)
        except OSError:
            self.close()
            raise

    @classmethod
    def zeros(cls, kinds: Sequence[tuple[tuple[int, ...], DType]]) -> SharedArrays:
        """Return arrays of zeros with these shapes and dtypes, in a new file.

        Raises
        ------
        RunStartError
            If the system does not create a file of this size.
        """
        size, layout = 0, list[Any]()
        for shape, kind in kinds:
            layout.append((size, list(shape), kind.name))
            size += -(-math.prod(shape) * kind.width // _ALIGNED) * _ALIGNED
        try:
            return cls(_new_file(max(size, mmap.PAGESIZE)), layout)
        except OSError as error:
            raise RunStartError(
                f"the arrays cannot be shared with the sandbox process: {error}",
                hint=f"they need {size} bytes of shared memory; check the limits of this process",
            ) from error

    @classmethod
    def of(cls, arrays: Sequence[Array]) -> SharedArrays:
        """Copy arrays into a new file; later accesses do not copy them.

        Raises
        ------
        RunStartError
            If the system does not create a file of this size.
        """
        shared = cls.zeros([(array.shape, from_numpy(array.dtype)) for array in arrays])
        for copy, array in zip(shared.arrays(), arrays, strict=True):
            copy[...] = array
        return shared

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        return len(self._memory)

    def arrays(self) -> list[Array]:
        """Return the arrays without copying them; they keep the memory alive."""
        return [self._array(entry) for entry in self.layout]

    def _array(self, entry: Any) -> Array:
        offset, shape, name = entry
        dims = tuple(int(d) for d in shape)
        count = int(np.prod(dims, dtype=np.int64))
        return np.frombuffer(self._memory, dtype(name).numpy, count, offset).reshape(dims)

    def close(self) -> None:
        """Close the file; returned arrays remain valid."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        """Close the file if an error or an interrupt prevented it."""
        with contextlib.suppress(AttributeError, OSError, TypeError):
            self.close()
