"""The status of a process in shared memory, which its owner can read even after a crash."""

from __future__ import annotations

import ctypes
import mmap
from enum import IntEnum

import numpy as np

_PROFILE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_LAUNCH, _PROGRAM, _PHASE = 0, 1, 2


class Phase(IntEnum):
    """The phase of the process."""

    STARTING = 0
    LOADING = 1
    WAITING = 2
    CHECKING = 3
    TIMING = 4
    INTERPRETING = 5
    PREPARING = 6


class SharedStatus:
    """The status that a process shares with its owner: launch, program, phase.

    Examples
    --------
    >>> import os
    >>> page = os.memfd_create("status")
    >>> os.ftruncate(page, mmap.PAGESIZE)
    >>> status = SharedStatus(page)
    >>> status.launch, status.program, status.phase
    (0, 0, <Phase.STARTING: 0>)
    """

    def __init__(self, descriptor: int) -> None:
        """Map a file of one page."""
        self._memory = mmap.mmap(descriptor, mmap.PAGESIZE)
        self._words = np.frombuffer(self._memory, np.int64)

    @property
    def launch(self) -> int:
        """The index of the running launch plus one; 0: none."""
        return int(self._words[_LAUNCH])

    @property
    def program(self) -> int:
        """The index of the program that runs, or ran last."""
        return int(self._words[_PROGRAM])

    @property
    def phase(self) -> Phase:
        """The phase of the process."""
        return Phase(int(self._words[_PHASE]))

    def begin(self, phase: Phase, program: int = 0) -> None:
        """Record the start of a phase, without a running launch."""
        self._words[_LAUNCH] = 0
        self._words[_PROGRAM] = program
        self._words[_PHASE] = phase

    def launching(self, launch: int) -> None:
        """Record the index of the running launch plus one; 0: none."""
        self._words[_LAUNCH] = launch


class LaunchRecorder:
    """A profile function that records the running launch, and forwards to another one.

    Parameters
    ----------
    status : SharedStatus
        The status to update.
    provider : int
        The address of the profile function that measures the time.
    """

    def __init__(self, status: SharedStatus, provider: int) -> None:
        """Create a callback for native code."""
        self._status = status
        self._forward = _PROFILE(provider)
        self._callback = _PROFILE(self._record)

    @property
    def address(self) -> int:
        """The address for the slot ``PROFILE`` of the runtime table."""
        return ctypes.cast(self._callback, ctypes.c_void_p).value or 0

    def _record(self, call: int, launch: int, phase: int) -> None:
        # The updates are outside of the measured time.
        if phase == 0:
            self._status.launching(launch + 1)
        self._forward(call, launch, phase)
        if phase:
            self._status.launching(0)
