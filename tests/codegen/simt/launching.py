"""Lowering of schedules for an emulated GPU, and execution on arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tilewright.codegen.lower import LoweredKernel, lower_kernel
from tilewright.codegen.simt import ALL_CHECKS, BufferArgument, Checks, Report, run_kernel
from tilewright.ir.symbolic import evaluate
from tilewright.target.target import Target

if TYPE_CHECKING:
    from tilewright.ir.loop.nodes import PrimFunc
    from tilewright.ir.thread.function import ThreadFunc

Inputs = Callable[[np.random.Generator, Mapping[str, int]], Sequence[np.ndarray]]


def geometry(function: ThreadFunc, sizes: Mapping) -> tuple[tuple, tuple]:
    """Return grid and block of a launch for values of the symbols."""
    extents = {a.tag: int(evaluate(a.extent, sizes)) for a in function.launch.axes}
    return tuple(
        tuple(extents.get(f"{level}.{letter}", 1) for letter in "xyz")
        for level in ("blockIdx", "threadIdx")
    )


@dataclass
class Launcher:
    """A scheduled function lowered for the emulated GPU."""

    source: PrimFunc

    @cached_property
    def lowered(self) -> LoweredKernel:
        return lower_kernel(self.source, Target("simt"))

    @property
    def function(self) -> ThreadFunc:
        return self.lowered.function

    def run(
        self,
        arrays: Sequence[np.ndarray],
        sizes: Mapping[str, int],
        *,
        function: ThreadFunc | None = None,
        checks: Checks = ALL_CHECKS,
    ) -> Report:
        """Execute on arrays; those of output parameters count as uninitialized."""
        kernel = function or self.function
        values = {s: sizes[s.name] for s in self.lowered.symbols}
        grid, block = geometry(kernel, values)
        access = [p.access for p in self.source.params if hasattr(p, "access")]
        buffers = [
            BufferArgument.of(a, defined=kind != "out")
            for a, kind in zip(arrays, access, strict=True)
        ]
        symbols = [values[s] for s in self.lowered.symbols]
        return run_kernel(kernel, grid, block, [*buffers, *symbols], checks=checks)

    def outputs(
        self,
        inputs: Sequence[np.ndarray],
        sizes: Mapping[str, int],
        *,
        function: ThreadFunc | None = None,
        checks: Checks = ALL_CHECKS,
    ) -> tuple[list[np.ndarray], Report]:
        """Execute on new output arrays; return them with the report."""
        values = {s: sizes[s.name] for s in self.lowered.symbols}
        arrays, remaining = list[np.ndarray](), iter(inputs)
        for param in self.source.params:
            if getattr(param, "access", "") == "out":
                shape = tuple(int(evaluate(d, values)) for d in param.buffer.shape)
                arrays.append(np.full(shape, 77, param.buffer.dtype.numpy))
            elif hasattr(param, "access"):
                arrays.append(next(remaining))
        report = self.run(arrays, sizes, function=function, checks=checks)
        results = [
            a
            for a, p in zip(arrays, self.source.params, strict=False)
            if getattr(p, "access", "") == "out"
        ]
        return results, report
