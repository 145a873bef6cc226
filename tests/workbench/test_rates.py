"""Operations and bytes per second of measured kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import tilewright as tw
from tilewright.codegen.errors import RunCrashedError
from tilewright.workbench.bench import Bench
from tilewright.workbench.protocol_runs import KernelTime, Measurement, Roof, RoofLevel
from tilewright.workbench.rates import counted, predicted_rates, with_rates, with_roof, with_shares

from tests.workbench.conftest import MATMUL, NETWORK

if TYPE_CHECKING:
    from tests.workbench.conftest import Client

LEVELS = [RoofLevel("L2 cache", 1000, 8.0), RoofLevel("memory", 0, 2.0)]
HIGH = [RoofLevel("memory", 0, 1e6)]
ROOF = Roof("fma", 1, 10.0, LEVELS)


def measured(*kernels: KernelTime, emulated: bool = False) -> Measurement:
    return Measurement(
        "state", "main", "n = 6", [8.0], 8.0, 8.0, 8.0, 1.0, list(kernels), "", alone=True,
        emulated=emulated, total=8.0, outside=0.0,
    )  # fmt: skip


def test_operations_and_bytes_are_counted_at_the_samples() -> None:
    function = tw.parse(MATMUL).prim("matmul")
    operations = 2 * 32 * 24 * 16
    size = 4 * (32 * 16 + 16 * 24 + 32 * 24)
    assert counted(function, {"n": 32}) == (operations, size)
    assert counted(function, {}) is None


def test_rates_are_per_call_at_the_sizes_of_the_caller() -> None:
    program = tw.parse(NETWORK)
    kernel = KernelTime("twice", 2, 4.0, 0.5)
    (rated,) = with_rates(measured(kernel), program, {("main", "n"): 10}).kernels
    assert rated.gflops == 10 * 8 / 2.0 / 1e3
    assert rated.gbytes == 2 * 4 * 10 * 8 / 2.0 / 1e3


def test_unknown_kernels_and_emulated_times_have_no_rates() -> None:
    program = tw.parse(NETWORK)
    unknown = KernelTime("blas.sgemm", 1, 4.0, 0.5)
    assert with_rates(measured(unknown), program, {}).kernels == [unknown]
    emulated = measured(KernelTime("twice", 2, 4.0, 0.5), emulated=True)
    assert with_rates(emulated, program, {}) is emulated


def test_a_measurement_of_a_session_has_rates(network: Client) -> None:
    network.send("run", action="measure", function="")
    network.session.jobs.wait()
    measurement = network.session.document.measurement
    assert measurement is not None
    (kernel,) = measurement.kernels
    per_call = kernel.microseconds / kernel.calls
    assert kernel.gflops == 6 * 8 / per_call / 1e3
    assert kernel.gbytes is not None
    assert measurement.roof is not None
    assert measurement.roof.threads == 1
    assert kernel.roof is not None
    assert kernel.bound in {"operations", *(level.name for level in measurement.roof.levels)}
    (record,) = network.session.records.view().items
    assert [rate.gflops for rate in record.kernels] == [kernel.gflops]


def rated(rows: int, program: str = NETWORK, conditions: str = "hot caches") -> KernelTime:
    measurement = replace(measured(KernelTime("twice", 1, 1.0, 1.0)), conditions=conditions)
    (kernel,) = with_rates(measurement, tw.parse(program), {("main", "n"): rows}, ROOF).kernels
    return kernel


def test_a_kernel_is_compared_with_the_nearest_peak() -> None:
    # 8 operations and 64 bytes per row and µs; 10 rows fit into the L2 cache.
    small, large = rated(10), rated(60)
    assert (small.roof, small.bound) == (640 / 1e3 / 8.0, "L2 cache")
    assert (large.roof, large.bound) == (3840 / 1e3 / 2.0, "memory")
    cold = rated(10, conditions="cold caches")
    assert (cold.roof, cold.bound) == (640 / 1e3 / 2.0, "memory")


def test_a_kernel_with_many_operations_is_limited_by_them() -> None:
    program = NETWORK.replace("x[vi, vj] + x[vi, vj]", " + ".join(["x[vi, vj]"] * 100))
    kernel = rated(10, program)
    assert (kernel.roof, kernel.bound) == (10 * 8 * 99 / 1e3 / 10.0, "operations")


def test_a_kernel_of_another_dtype_has_no_share() -> None:
    kernel = rated(10, NETWORK.replace("f32", "f64"))
    assert kernel.gflops is not None
    assert (kernel.roof, kernel.bound) == (None, None)


def test_another_roof_changes_the_shares() -> None:
    program, kernels = tw.parse(NETWORK), measured(KernelTime("twice", 1, 1.0, 1.0))
    first = with_rates(kernels, program, {("main", "n"): 10}, ROOF)
    again = with_roof(first, replace(ROOF, levels=[RoofLevel("memory", 0, 4.0)]))
    assert again.kernels[0].roof == 640 / 1e3 / 4.0
    assert with_roof(kernels, ROOF).kernels[0].roof is None


def test_the_roof_is_measured_again_on_request(
    network: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = network.session
    network.send("run", action="measure", function="")
    session.jobs.wait()
    before = session.document.measurement
    monkeypatch.setattr(Bench, "roof", lambda *_, **__: ROOF)
    network.send("run", action="roof", function="")
    session.jobs.wait()
    after = session.document.measurement
    assert before is not None
    assert after is not None
    assert after.roof == ROOF
    assert after.samples == before.samples
    assert after.kernels[0].roof != before.kernels[0].roof
    assert session.records.last(after.state).measurement == after


def test_a_roof_that_cannot_be_measured_is_reported_and_the_time_is_kept(
    network: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> Roof:
        raise RunCrashedError("the sandbox process exited")

    monkeypatch.setattr(Bench, "roof", fail)
    network.send("run", action="measure", function="")
    network.session.jobs.wait()
    measurement = network.session.document.measurement
    assert measurement is not None
    assert measurement.roof is None
    assert "the sandbox process exited" in network.session.document.problems[0].message


def test_the_roof_is_measured_again_if_a_kernel_exceeds_it(
    network: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    low, high = replace(ROOF, gflops=1e-6), replace(ROOF, gflops=1e6, levels=HIGH)
    monkeypatch.setattr(Bench, "roof", lambda *_, again=False: high if again else low)
    network.send("run", action="measure", function="")
    network.session.jobs.wait()
    measurement = network.session.document.measurement
    assert measurement is not None
    assert measurement.roof == high
    assert measurement.kernels[0].roof < 1.0


def test_a_prediction_needs_a_roof() -> None:
    program, kernels = tw.parse(NETWORK), measured(KernelTime("twice", 1, 1.0, 1.0))
    chosen = {("main", "n"): 10}
    (bare,) = with_rates(kernels, program, chosen).kernels
    assert (bare.instructions, bare.predicted) == (None, None)
    (kernel,) = with_rates(kernels, program, chosen, ROOF).kernels
    each = 4  # two loads, an addition, and a store
    assert kernel.instructions == 80 * each
    assert kernel.predicted == pytest.approx(80 / (80 * each / (10.0 / 32)))
    (other,) = with_rates(kernels, tw.parse(NETWORK.replace("f32", "f64")), chosen, ROOF).kernels
    assert (other.instructions, other.predicted) == (None, None)


def test_another_roof_changes_the_predictions() -> None:
    program, kernels = tw.parse(NETWORK), measured(KernelTime("twice", 1, 1.0, 1.0))
    first = with_rates(kernels, program, {("main", "n"): 10}, ROOF)
    again = with_roof(first, replace(ROOF, gflops=20.0))
    assert again.kernels[0].predicted == pytest.approx(2 * first.kernels[0].predicted)
    slow = with_roof(first, replace(ROOF, levels=[RoofLevel("memory", 0, 1e-3)]))
    assert slow.kernels[0].predicted == pytest.approx(80 / (640 / 1e-3))


@pytest.mark.parametrize("n", [0, 1])
def test_the_smallest_sizes_have_rates(n: int) -> None:
    kernel = KernelTime("twice", 1, 1.0, 1.0)
    program = tw.parse(NETWORK.replace("lower=1", "lower=0"))
    (found,) = with_rates(measured(kernel), program, {("main", "n"): n}, ROOF).kernels
    assert found.gflops == n * 8 / 1e3
    assert (found.predicted == 0) is (n == 0)


def test_the_prediction_of_an_unmeasured_kernel_follows_its_schedule() -> None:
    program = tw.parse(NETWORK)
    sch = tw.Schedule(program)
    sch.vectorize(sch.get_loops(sch.get_block("y", "twice"))[1])
    scalar, vectors = (predicted_rates(p, "twice", {"n": 10}, ROOF) for p in (program, sch.module))
    assert scalar is not None
    assert vectors is not None
    assert vectors[0] > 4 * scalar[0]
    assert scalar[1] == pytest.approx(scalar[0] * 8)
    cold = predicted_rates(sch.module, "twice", {"n": 10}, ROOF, cold=True)
    assert cold is not None
    assert cold <= vectors
    for name, samples in (("main", {"n": 10}), ("twice", {}), ("twice", {"n": 0})):
        assert predicted_rates(program, name, samples, ROOF) is None
    integers = tw.parse(MATMUL.replace("f32", "i32").replace("0.0", "0"))
    assert predicted_rates(integers, "matmul", {"n": 4}, ROOF) is None


@pytest.mark.parametrize(
    ("times", "total", "outside"), [((4.0, 2.0), 8.0, 2.0), ((9.0, 3.0), 12.0, 0.0), ((), 8.0, 8.0)]
)
def test_shares_are_of_the_call_or_of_all_kernels(times, total: float, outside: float) -> None:
    kernels = [KernelTime(f"k{n}", 1, time, 0.0) for n, time in enumerate(times)]
    found = with_shares(measured(*kernels))
    assert (found.total, found.outside) == (total, outside)
    assert [k.share for k in found.kernels] == [time / total for time in times]


def test_kernels_without_a_time_have_no_share() -> None:
    empty = replace(measured(KernelTime("k", 0, 0.0, 0.0)), median=0.0)
    assert with_shares(empty).kernels[0].share == 0.0
