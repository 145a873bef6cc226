"""The compilers and measuring services of targets."""

from __future__ import annotations

from ...target.target import Target
from ..bench import Bench
from ..given_inputs import GivenInputs
from .channel import Pages


def bench_of(target: Target, pages: Pages, given: GivenInputs | None = None) -> Bench:
    """Return the service of a target: in a page for browsers, else in processes of this machine.

    Examples
    --------
    >>> type(bench_of(Target("cpu"), Pages())).__name__
    'Bench'
    >>> type(bench_of(Target("webgpu", where="browser"), Pages())).__name__
    'PageBench'
    """
    if target.in_browser:
        from .bench import PageBench

        return PageBench(target, pages, given)
    return Bench(target, given)
