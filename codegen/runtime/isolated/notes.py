"""What a process does now, in memory that its owner reads after the process is gone."""

from __future__ import annotations

import ctypes
import mmap
from enum import IntEnum

import numpy as np

_PROFILE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_LAUNCH, _PROGRAM, _PHASE = 0, 1, 2


class Phase(IntEnum):
    """What the process is at."""

    STARTING = 0
    LOADING = 1
    WAITING = 2
    CHECKING = 3
    TIMING = 4
    INTERPRETING = 5


class Notes:
    """The words that a process shares with its owner: launch, program, phase.

    Examples
    --------
    >>> import os
    >>> page = os.memfd_create("notes")
    >>> os.ftruncate(page, mmap.PAGESIZE)
    >>> notes = Notes(page)
    >>> notes.launch, notes.program, notes.phase
    (0, 0, <Phase.STARTING: 0>)
    """

    def __init__(self, descriptor: int) -> None:
        """Map a file of one page."""
        self._memory = mmap.mmap(descriptor, mmap.PAGESIZE)
        self._words = np.frombuffer(self._memory, np.int64)

    @property
    def launch(self) -> int:
        """The launch that runs, plus one; 0: none."""
        return int(self._words[_LAUNCH])

    @property
    def program(self) -> int:
        """The program that runs, or ran last."""
        return int(self._words[_PROGRAM])

    @property
    def phase(self) -> Phase:
        """What the process is at."""
        return Phase(int(self._words[_PHASE]))

    def begin(self, phase: Phase, program: int = 0) -> None:
        """Note what is begun; no launch runs yet."""
        self._words[_LAUNCH] = 0
        self._words[_PROGRAM] = program
        self._words[_PHASE] = phase

    def launching(self, launch: int) -> None:
        """Note the launch that runs, plus one."""
        self._words[_LAUNCH] = launch


class Watch:
    """Notes every launch whose time is taken, and hands it on to who takes the time.

    Parameters
    ----------
    notes : Notes
        Where.
    provider : int
        The address of the function that takes the time.
    """

    def __init__(self, notes: Notes, provider: int) -> None:
        """Make a function that native code can call."""
        self._notes = notes
        self._take = _PROFILE(provider)
        self._callback = _PROFILE(self._note)

    @property
    def address(self) -> int:
        """The provider of the runtime table's slot ``profile``."""
        return ctypes.cast(self._callback, ctypes.c_void_p).value or 0

    def _note(self, call: int, launch: int, phase: int) -> None:
        # What is done here stays outside of the time that is taken.
        if phase == 0:
            self._notes.launching(launch + 1)
        self._take(call, launch, phase)
        if phase:
            self._notes.launching(0)
