"""Attacks that may crash or hang run in child processes, whose stacks are printed if they do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PATIENCE = 120.0
"""The time in seconds after which a process counts as hanging."""


def run_child(
    *arguments: str, patience: float = PATIENCE, new_cache: bool = True, **environment: str
) -> str:
    """Run Python, by default with an empty cache, and return its output.

    Raises
    ------
    AssertionError
        If the process hangs or fails; the message contains the end of its output.
    """
    with tempfile.TemporaryDirectory() as folder:
        cache = {"TILEWRIGHT_CACHE": f"{folder}/cache"} if new_cache else {}
        process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", *arguments],
            env={**os.environ, **cache, **environment}, cwd=ROOT, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        try:
            output, errors = process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGABRT)  # `faulthandler` prints the stacks of all threads
            output, errors = process.communicate()
            raise AssertionError(f"{arguments}: the process hangs\n{errors[-6000:]}") from None
    if process.returncode:
        raise AssertionError(
            f"{arguments}: exit code {process.returncode}\n{output[-2000:]}\n{errors[-6000:]}"
        )
    return output.strip()
