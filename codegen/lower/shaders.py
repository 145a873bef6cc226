"""The shaders of a lowered kernel, with the sizes of their bindings."""

from __future__ import annotations

from dataclasses import replace

from ...ir.loop.buffer_size import size_of
from ...ir.symbolic import to_text
from ...target.target import Target
from ..wgsl import Shader, emit_shaders
from .pipeline import LoweredKernel


def kernel_shaders(kernel: LoweredKernel, target: Target) -> tuple[Shader, ...]:
    """Return the shader of each version of a lowered kernel.

    Parameters
    ----------
    kernel : LoweredKernel
        The kernel, lowered for the target.
    target : Target
        A WebGPU target.
    """
    names = {symbol: f"s{k}" for k, symbol in enumerate(kernel.symbols)}
    sizes = [to_text(size_of(b), names) for b in kernel.buffers]
    if kernel.scratch is not None:
        sizes.append(to_text(kernel.scratch, names))
    known = kernel.work is not None and kernel.work.free <= {*kernel.symbols}
    work = to_text(kernel.work, names) if known and kernel.work is not None else "0"
    return tuple(
        replace(shader, sizes=tuple(sizes[k] for k in shader.bindings), work=work)
        for shader in emit_shaders(kernel.function, target)
    )
