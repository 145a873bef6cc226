"""Peak rates of this machine, measured in a sandbox process."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from ...locks import uninterrupted
from ...target.target import Target
from ..build.protocol import PipeClosedError, PipeTimeoutError
from ..build.worker_pool import CancelToken
from ..errors import RunCrashedError, RunTimeoutError
from .process import GRACE, Process, signal_name

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
    with uninterrupted():
        process = Process()
    deadline = time.monotonic() + timeout
    try:
        process.receive(deadline, cancel)
        process.send(request)
        answer = process.receive(deadline, cancel)
    except PipeClosedError:
        output = process.stop(GRACE)
        code = process.exit_code or 0
        ended = f"signal {signal_name(-code)}" if code < 0 else f"code {code}"
        raise RunCrashedError(
            f"the sandbox process exited with {ended}", where=_WHERE, hint=output
        ) from None
    except PipeTimeoutError:
        raise RunTimeoutError(
            f"the run exceeded the time limit of {timeout:g} s", where=_WHERE
        ) from None
    finally:
        process.stop()
    return PeakRates(answer["instruction"], answer["operations"], tuple(answer["bytes"]))
