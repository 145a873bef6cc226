"""Samples of recorded kernels, on a GPU that reports given times."""

from __future__ import annotations

import pytest

from tilewright.workbench.jobs import JobCanceledError, Progress
from tilewright.workbench.page.gpu import Item
from tilewright.workbench.page.times import taken_times
from tilewright.workbench.protocol_gpu import GpuSamples

from tests.workbench.page.fake_page import facts


class Gpu:
    """Each item takes as many µs as its key states, and a sample is noisy by its number."""

    def __init__(self, *items: tuple[str, int]) -> None:
        self.recorded = [Item(name, (time,)) for name, time in items]
        self.facts = facts()
        self.asked: list[tuple[int, int]] = []

    def time(self, first: int, stop: int, *, repeats: int, most: int, seconds: float) -> GpuSamples:
        del repeats, seconds
        self.asked.append((first, stop))
        whole = 1e3 * sum(item.key[0] for item in self.recorded[first:stop])
        count = min(most, 30)
        return GpuSamples("timestamps", 1, [whole] * count, len(self.recorded))


def quiet() -> Progress:
    return Progress(lambda _done, _message: None)


def test_kernels_are_timed_once_and_summed() -> None:
    gpu = Gpu(("a", 5), ("", 1), ("b", 20), ("a", 5), ("a", 7))
    times = taken_times(gpu, 1.0, quiet())
    assert times.median == times.low == times.high == 38.0
    assert len(times.samples) >= 50
    found = [(k.function, k.calls, k.microseconds) for k in times.kernels]
    assert found == [("b", 1, 20.0), ("a", 3, 17.0)]
    assert gpu.asked.count((3, 4)) == 0


def test_a_program_without_launches_takes_no_time() -> None:
    times = taken_times(Gpu(), 1.0, quiet())
    assert (times.median, times.kernels, times.clock_text) == (0.0, (), "no kernels")


def test_cancellation_ends_sampling() -> None:
    progress = quiet()
    progress.cancel()
    with pytest.raises(JobCanceledError):
        taken_times(Gpu(("a", 5)), 1.0, progress)
