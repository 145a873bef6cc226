"""Files with weights, which are read on demand.

Weights are copied, not mapped. A mapped file that becomes shorter ends the process with a signal,
and one that is written changes the results of executables that are in use.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias
from weakref import ref

import numpy as np

from ...errors import TilewrightError
from ..dtype import DType
from ..module import Array
from ..packing import from_storage
from ..sizes import storage_bytes

_Key: TypeAlias = "tuple[int, tuple[int, ...], DType]"


class WeightsChangedError(TilewrightError):
    """A file with weights that changed after the model was imported, or that cannot be read."""

    title = "Changed weights"


@dataclass(frozen=True, slots=True)
class _State:
    """The identity of the content of a file: device, inode, size, and time of change."""

    device: int
    inode: int
    size: int
    modified: int

    @classmethod
    def of(cls, state: os.stat_result) -> _State:
        return cls(state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns)


def _opened(path: str, flags: int) -> int:
    """Open a file; a link is an error, and a pipe does not block."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


@dataclass(frozen=True, eq=False)
class WeightFile:
    """A file with weights, whose content must be the same as when it was created.

    Parameters
    ----------
    path : Path
        The path of the file, which exists.
    """

    path: Path
    _state: _State = field(init=False)
    _loaded: dict[_Key, ref[Array]] = field(default_factory=dict[_Key, "ref[Array]"])

    def __post_init__(self) -> None:
        """Record the state of the file."""
        object.__setattr__(self, "path", self.path.absolute())
        object.__setattr__(self, "_state", _State.of(self.path.stat()))

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self._state.size

    def read(self, offset: int, shape: tuple[int, ...], dtype: DType) -> Array:
        """Return a tensor of the file; as long as it is in use, later calls return the same one.

        Raises
        ------
        WeightsChangedError
            If the file was changed, replaced or removed.
        """
        key = (offset, shape, dtype)
        known = self._loaded.get(key)
        found = None if known is None else known()
        if found is not None:
            return found
        data = np.empty(storage_bytes(math.prod(shape), dtype), np.uint8)
        if data.size:
            self._fill(data.data, offset)
        array: Array = from_storage(data, shape, dtype)
        array.flags.writeable = False
        self._loaded[key] = ref(array)
        return array

    def _fill(self, memory: memoryview, offset: int) -> None:
        """Read bytes of the file, which must be unchanged before and after that."""
        try:
            with open(self.path, "rb", buffering=0, opener=_opened) as file:
                same = _State.of(os.fstat(file.fileno())) == self._state
                file.seek(offset)
                while same and memory:
                    count = file.readinto(memory) or 0
                    same, memory = count > 0, memory[count:]
                same = same and _State.of(os.fstat(file.fileno())) == self._state
        except OSError as error:
            raise WeightsChangedError(
                f"the file of the weights cannot be read: {error.strerror or error}",
                where=str(self.path),
                hint="import the model again",
            ) from error
        if not same:
            raise WeightsChangedError(
                f"the file of the weights had {self.size} bytes when the model was imported, and "
                "was changed or replaced",
                where=str(self.path),
                hint="import the model again",
            )
