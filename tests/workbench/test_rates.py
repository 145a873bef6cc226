"""Operations and bytes per second of measured kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tilewright as tw
from tilewright.workbench.protocol_runs import KernelTime, Measurement
from tilewright.workbench.rates import counted, with_rates

from tests.workbench.conftest import MATMUL, NETWORK

if TYPE_CHECKING:
    from tests.workbench.conftest import Client


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
    measurement = network.session.shown.measurement
    assert measurement is not None
    (kernel,) = measurement.kernels
    per_call = kernel.microseconds / kernel.calls
    assert kernel.gflops == 6 * 8 / per_call / 1e3
    assert kernel.gbytes is not None
