"""Rates of measured kernels: operations and bytes per second, and shares of the machine's peaks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..ir.analysis.cost import flops, footprint
from ..ir.dtype import f32
from ..ir.loop.nodes import BufferParam, PrimFunc
from ..ir.module import Module
from .predictions import estimated_instructions, predicted_gflops
from .protocol_runs import KernelTime, Measurement, Roof, RoofLevel
from .render import Samples, at_samples
from .symbols import samples_of


def with_rates(
    measurement: Measurement,
    program: Module,
    chosen: Mapping[tuple[str, str], int],
    roof: Roof | None = None,
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
    roof : Roof, optional
        The peak rates of the machine.
    """
    if measurement.emulated:
        return measurement
    threads = 0 if roof is None else roof.threads
    kernels = [_with_rates(kernel, program, chosen, threads) for kernel in measurement.kernels]
    rated = replace(measurement, kernels=kernels)
    if roof is None:
        return rated
    known = frozenset(k.function for k in kernels if _is_compared(program, k.function))
    return _compared(rated, roof, known)


def with_shares(measurement: Measurement) -> Measurement:
    """Return a measurement with its total, the time outside of kernels, and their shares."""
    kernels = sum(k.microseconds for k in measurement.kernels)
    total = max(measurement.median, kernels)
    whole = total or 1.0
    shared = [replace(k, share=k.microseconds / whole) for k in measurement.kernels]
    outside = max(0.0, total - kernels)
    return replace(measurement, kernels=shared, total=total, outside=outside)


def with_roof(measurement: Measurement, roof: Roof) -> Measurement:
    """Return a measurement with the shares of another roof."""
    known = frozenset(k.function for k in measurement.kernels if k.roof is not None)
    return _compared(measurement, roof, known)


def _compared(measurement: Measurement, roof: Roof, known: frozenset[str]) -> Measurement:
    cold = measurement.conditions.startswith("cold")
    kernels = [
        _with_share(k, roof, cold=cold) if k.function in known else k for k in measurement.kernels
    ]
    return replace(measurement, kernels=kernels, roof=roof)


def _is_compared(program: Module, name: str) -> bool:
    """Return whether the roof applies: the kernel computes and stores 32-bit floats."""
    function = program.functions.get(name)
    if not isinstance(function, PrimFunc):
        return False
    params = [p for p in function.params if isinstance(p, BufferParam)]
    floats = all(p.buffer.dtype == f32 for p in params if p.buffer.dtype.is_float)
    return floats and all(p.buffer.dtype == f32 for p in params if p.access != "in")


def _with_share(kernel: KernelTime, roof: Roof, *, cold: bool) -> KernelTime:
    """Return a kernel with its share of the nearest peak.

    With cold caches all arguments come from memory, else from the first level that holds them.
    """
    if kernel.gflops is None or kernel.gbytes is None:
        return kernel
    per_call = kernel.microseconds / max(1, kernel.calls)
    size, operations = kernel.gbytes * 1e3 * per_call, kernel.gflops * 1e3 * per_call
    level = _level(roof, size, cold=cold)
    shares = {level.name: kernel.gbytes / level.gbytes, "operations": kernel.gflops / roof.gflops}
    bound = max(shares, key=shares.__getitem__)
    predicted = (
        None
        if kernel.instructions is None
        else predicted_gflops(kernel.instructions, operations, size, roof, level)
    )
    return replace(kernel, roof=shares[bound], bound=bound, predicted=predicted)


def _level(roof: Roof, size: float, *, cold: bool) -> RoofLevel:
    """Return the level that arguments of a number of bytes come from."""
    fits = (level for level in roof.levels if not cold and size <= level.capacity)
    return next(fits, roof.levels[-1])


def predicted_rates(
    program: Module, name: str, samples: Samples, roof: Roof, *, cold: bool = False
) -> tuple[float, float] | None:
    """Return the predicted operations and bytes per nanosecond of a kernel that was not measured.

    Parameters
    ----------
    program : Module
        The program that contains the kernel.
    name : str
        The name of the kernel.
    samples : Samples
        The sample values of its symbols.
    roof : Roof
        The peak rates of the machine.
    cold : bool
        Whether all arguments come from memory.

    Returns
    -------
    tuple of float or None
        The rates; None for graphs, for kernels that do not compute, and for those that the roof
        does not apply to.
    """
    function = program.functions.get(name)
    if not isinstance(function, PrimFunc) or not _is_compared(program, name):
        return None
    work = counted(function, samples)
    instructions = estimated_instructions(function, samples, roof.threads)
    if work is None or not all(work) or not instructions:
        return None
    operations, size = work
    level = _level(roof, size, cold=cold)
    gflops = predicted_gflops(instructions, operations, size, roof, level)
    return gflops, gflops * size / operations


def _with_rates(
    kernel: KernelTime, program: Module, chosen: Mapping[tuple[str, str], int], threads: int
) -> KernelTime:
    function = program.functions.get(kernel.function)
    if not isinstance(function, PrimFunc) or kernel.microseconds <= 0.0:
        return kernel
    samples = samples_of(program, function, chosen)
    work = counted(function, samples)
    if work is None:
        return kernel
    per_call = kernel.microseconds / max(1, kernel.calls)
    operations, size = (count / per_call / 1e3 for count in work)
    known = threads > 0 and _is_compared(program, kernel.function)
    instructions = estimated_instructions(function, samples, threads) if known else None
    return replace(kernel, gflops=operations, gbytes=size, instructions=instructions)


def counted(function: PrimFunc, samples: Samples) -> tuple[int, int] | None:
    """Return the operations of a call and the bytes of its arguments; None without a sample.

    Operations on elements count, as :func:`~tilewright.ir.analysis.cost.flops` counts them.
    """
    operations = at_samples(flops(function), samples)
    size = at_samples(footprint(function), samples)
    return None if operations is None or size is None else (operations, size)
