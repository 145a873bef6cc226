"""Rates of measured kernels: operations and bytes per second, at the sizes of the measurement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..ir.analysis.cost import flops, footprint
from ..ir.loop.nodes import PrimFunc
from ..ir.module import Module
from .protocol_runs import KernelTime, Measurement
from .render import Samples, at_samples
from .symbols import samples_of


def with_rates(
    measurement: Measurement, program: Module, chosen: Mapping[tuple[str, str], int]
) -> Measurement:
    """Return a measurement with the rates of the kernels of the program that ran.

    Parameters
    ----------
    measurement : Measurement
        The measurement.
    program : Module
        The program, whose kernels have the measured schedules.
    chosen : Mapping of (str, str) to int
        The sample values that were chosen, by function and symbol.
    """
    if measurement.emulated:
        return measurement
    kernels = [_with_rates(kernel, program, chosen) for kernel in measurement.kernels]
    return replace(measurement, kernels=kernels)


def _with_rates(
    kernel: KernelTime, program: Module, chosen: Mapping[tuple[str, str], int]
) -> KernelTime:
    function = program.functions.get(kernel.function)
    if not isinstance(function, PrimFunc) or kernel.microseconds <= 0.0:
        return kernel
    work = counted(function, samples_of(program, function, chosen))
    if work is None:
        return kernel
    per_call = kernel.microseconds / max(1, kernel.calls)
    operations, size = (count / per_call / 1e3 for count in work)
    return replace(kernel, gflops=operations, gbytes=size)


def counted(function: PrimFunc, samples: Samples) -> tuple[int, int] | None:
    """Return the operations of a call and the bytes of its arguments; None without a sample.

    Operations on elements count, as :func:`~tilewright.ir.analysis.cost.flops` counts them.
    """
    operations = at_samples(flops(function), samples)
    size = at_samples(footprint(function), samples)
    return None if operations is None or size is None else (operations, size)
