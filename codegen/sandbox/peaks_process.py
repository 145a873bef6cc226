"""Peak rates of this machine, measured in a sandbox process."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from ...target.target import Target
from ..build.worker_pool import CancelToken
from .one_request import process_of

_WHERE = "the measurement of this machine's peak rates"


@dataclass(frozen=True, slots=True)
class PeakRates:
    """The operations per second, their instruction, and the bytes per second for each size."""

    instruction: str
    operations: float
    bytes: tuple[float, ...]


def peak_rates(
    target: Target,
    threads: int,
    sizes: Sequence[int],
    *,
    cancel: CancelToken | None = None,
    timeout: float = 60.0,
) -> PeakRates:
    """Measure multiply-adds on 32-bit floats, and reads of ``sizes`` bytes, with all threads.

    Parameters
    ----------
    target : Target
        A CPU that this machine can run code for, with its features.
    threads : int
        The number of threads.
    sizes : sequence of int
        The numbers of bytes that the threads read together.
    cancel : CancelToken, optional
        A token that stops the measurement from another thread.
    timeout : float
        The time limit in seconds.

    Raises
    ------
    RunError
        If it is canceled, exceeds the time limit, or if the process crashes.
    """
    request = {
        "do": "peaks", "arch": target.arch, "features": list(target.features),
        "threads": threads, "sizes": list(sizes),
    }  # fmt: skip
    with process_of(_WHERE, timeout) as process:
        deadline = time.monotonic() + timeout
        process.wait_started(deadline, cancel)
        process.send(request)
        answer = process.receive(deadline, cancel)
    return PeakRates(answer["instruction"], answer["operations"], tuple(answer["bytes"]))
