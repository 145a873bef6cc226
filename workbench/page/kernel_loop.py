"""The thread of a Jupyter kernel that receives messages of pages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from .channel import Probe, run_at_once


def probe_of_kernel() -> Probe:
    """Return a function that runs an action on the event loop of this thread once it is idle.

    Without a loop, as in a script, the action runs at once: no cell delays the messages.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return run_at_once

    def probe(action: Callable[[], None]) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(action)

    return probe
