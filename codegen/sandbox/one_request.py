"""A sandbox process for one request, with the errors of its end."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from ...locks import uninterrupted
from ..build.protocol import PipeClosedError, PipeTimeoutError
from ..errors import RunCrashedError, RunTimeoutError
from .process import GRACE, Process, signal_name


@contextmanager
def process_of(where: str, timeout: float, hint: str = "") -> Generator[Process]:
    """Start a process, and stop it at the end of the request.

    Parameters
    ----------
    where : str
        The name of the request in errors.
    timeout : float
        The time limit in seconds that the error of a late answer states.
    hint : str
        The hint of that error.

    Raises
    ------
    RunCrashedError
        If the process exits.
    RunTimeoutError
        If an answer is late.
    """
    with uninterrupted():
        process = Process()
    try:
        yield process
    except PipeClosedError:
        output = process.stop(GRACE)
        code = process.exit_code or 0
        ended = f"signal {signal_name(-code)}" if code < 0 else f"code {code}"
        raise RunCrashedError(
            f"the sandbox process exited with {ended}", where=where, hint=output
        ) from None
    except PipeTimeoutError:
        raise RunTimeoutError(
            f"the run exceeded the time limit of {timeout:g} s", where=where, hint=hint
        ) from None
    finally:
        process.stop()
