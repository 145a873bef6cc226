"""Peak rates of the machine."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

import tilewright as tw
from tilewright.codegen.build.object_cache import DiskCache
from tilewright.codegen.build.worker_pool import CancelToken
from tilewright.codegen.errors import RunCanceledError
from tilewright.codegen.llvm import assembly, emit_module
from tilewright.codegen.measure import peaks
from tilewright.codegen.sandbox.peak_loops import READS, read_kernel, vector
from tilewright.codegen.sandbox.peaks_process import PeakRates

if TYPE_CHECKING:
    from pathlib import Path

AVX2 = tw.Target("cpu", features=("avx2",), threads=1)
SMALL = 1 << 20


def test_rates_are_measured_in_the_sandbox_and_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peaks, "_levels", lambda _: [("L2 cache", SMALL, SMALL // 2)])
    cache, messages = DiskCache(tmp_path), list[str]()

    def report(_fraction: float, message: str) -> None:
        messages.append(message)

    found = peaks.machine_peaks(AVX2, cache=cache, report=report)
    assert messages == ["measuring the peak rates of this machine"]
    assert found.instruction == "vfmadd.256"
    assert found.threads == 1
    assert found.gflops > 1.0
    (level,) = found.levels
    assert (level.name, level.capacity) == ("L2 cache", SMALL)
    assert level.gbytes > 1.0
    again = peaks.machine_peaks(AVX2, cache=cache, report=report)
    assert again == found or cache.hits == 0  # another measurement ran at the same time
    if cache.hits:
        assert len(messages) == 1


def test_rates_of_other_threads_and_features_are_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[tuple[tuple[str, ...], int]]()

    def measured(target: tw.Target, threads: int, sizes, **_):
        asked.append((target.features, threads))
        return PeakRates("vfmadd", 2e9, tuple(1e9 for _ in sizes))

    monkeypatch.setattr(peaks, "peak_rates", measured)
    cache = DiskCache(tmp_path)
    for threads in (1, 2, 2):
        found = peaks.machine_peaks(AVX2, threads, cache=cache)
        assert (found.gflops, found.levels[-1].gbytes) == (2.0, 1.0)
        assert [level.capacity == 0 for level in found.levels][-1]
    assert asked[:2] == [(("avx2",), 1), (("avx2",), 2)]


def test_the_highest_rates_are_kept_and_a_cache_is_not_slower_than_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = iter([(3e9, 1e9, 2e9), (5e9, 4e9, 1e9)])
    levels = [("L2 cache", SMALL, SMALL), ("last-level cache", SMALL, SMALL), ("memory", 0, SMALL)]
    monkeypatch.setattr(peaks, "_levels", lambda _: levels)
    monkeypatch.setattr(peaks, "peak_rates", lambda *_, **__: PeakRates("fma", 2e9, next(rates)))
    cache = DiskCache(tmp_path)
    first = peaks.machine_peaks(AVX2, cache=cache)
    assert [level.gbytes for level in first.levels] == [3.0, 2.0, 2.0]
    second = peaks.machine_peaks(AVX2, cache=cache, again=True)
    assert [level.gbytes for level in second.levels] == [5.0, 4.0, 2.0]


def test_a_cancellation_ends_the_measurement(tmp_path: Path) -> None:
    token = CancelToken()
    token.cancel()
    with pytest.raises(RunCanceledError):
        peaks.machine_peaks(AVX2, cache=DiskCache(tmp_path), cancel=token)


def test_the_reading_loop_reads_all_vectors() -> None:
    function, step = read_kernel(vector(AVX2))
    assert step == READS * 32
    text = assembly(emit_module([function], AVX2), AVX2)
    loads = re.findall(r"vaddps\t(?:\d*\(|-\d+\()", text)
    assert len(loads) % READS == 0
    assert loads
