"""Programs on the WebGPU driver of this machine and in the interpreter."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

import tilewright as tw
from tilewright.codegen.wgsl import from_bytes
from tilewright.ir.interpreter.loops import run_prim
from tilewright.ir.loop.builder import Builder
from tilewright.ir.loop.element_functions import FUNCTIONS
from tilewright.ir.loop.nodes import Binary, Cast, Compare, Element, Load, PrimFunc, Unary
from tilewright.ir.module import Module
from tilewright.ir.symbolic import var

from tests.codegen.arrays import data, outputs

if TYPE_CHECKING:
    from tilewright.ir.dtype import DType

os.environ.setdefault("XDG_RUNTIME_DIR", "/tmp")  # Mesa reports a missing one on standard error

WEBGPU = tw.Target("webgpu")

COMPARED = ("lt", "le", "gt", "ge", "eq", "ne")


def compiled(program: str | PrimFunc | Module, target: tw.Target = WEBGPU) -> tw.Executable:
    """Compile a program for the driver."""
    if isinstance(program, str):
        program = tw.parse(program)
    elif isinstance(program, PrimFunc):
        program = Module().with_functions(program)
    return tw.compile(program, target=target)


def interpreted(func: PrimFunc, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Return the outputs of a function in the interpreter."""
    copies = [a.copy() for a in arrays]
    run_prim(func, copies)
    return outputs(func, copies)


def agrees(
    exe: tw.Executable, func: PrimFunc, sizes: dict[str, int], *, tolerance: float = 0.0
) -> None:
    """Check a compiled function against the interpreter for one choice of sizes."""
    given = data(func, sizes)
    wanted = interpreted(func, given)
    exe[exe.names[0]].into(*given)
    for actual, expected in zip(outputs(func, given), wanted, strict=True):
        np.testing.assert_allclose(
            actual.astype(np.float64), expected.astype(np.float64), rtol=tolerance, atol=tolerance
        )


def element_program(op: str, dtype: DType, out: DType, name: str) -> PrimFunc:
    """Return ``y[i] = op(x0[i], ...)``; ``cast`` converts to ``out``."""
    b, n = Builder(name), var("n", lower=0)
    row = FUNCTIONS.get(op)
    arity = 2 if op in COMPARED else 1 if row is None else row.arity
    second = None if row is None else row.second
    inputs = [b.param(f"x{k}", (n,), second if k and second else dtype) for k in range(arity)]
    result = _element(op, [Load(x, (var("i"),)) for x in inputs], out).dtype
    y = b.param("y", (n,), result, "out")
    b.compute(y, lambda i: _element(op, [b.load(x, i) for x in inputs], out))
    return b.finish()


def _element(op: str, operands: list[Element], out: DType) -> Element:
    if op == "cast":
        return Cast(out, operands[0])
    if op in COMPARED:
        return Compare(op, *operands)
    return (Unary, Binary)[len(operands) - 1](op, *operands)


class Functions:
    """Element functions compiled together, each as one function of a module."""

    def __init__(self, cases: list[tuple[str, DType, DType]]) -> None:
        self.programs = {case: element_program(*case, f"f{k}") for k, case in enumerate(cases)}
        self.exe = compiled(Module().with_functions(*self.programs.values()))

    def both(self, case: tuple[str, DType, DType], *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the results on the driver and in the interpreter."""
        func = self.programs[case]
        given = arrays[: len(func.buffer_params) - 1]
        y = np.zeros(given[0].shape, func.buffer_params[-1].dtype.numpy)
        return self.exe[func.name](*given), interpreted(func, [*given, y])[-1]


def shader_texts(exe: tw.Executable) -> list[str]:
    """Return the shaders of an executable that need no feature that SwiftShader lacks."""
    images = exe.artifact.images.values()
    return [s.text for data in images for s in from_bytes(data) if "f16" not in s.features]


def ulps(actual: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Return the distance of singles in units of the last place; NaN equals NaN.

    Subnormal numbers have the unit of the smallest normal ones, as shaders may flush them to 0.
    """
    left, right = actual.astype(np.float64), expected.astype(np.float64)
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(right), 2.0**-126)
        unit = 2.0 ** (np.floor(np.log2(np.where(np.isfinite(size), size, 1.0))) - 23)
        distance = np.abs(left - right) / unit
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    return np.where(same, 0.0, np.where(np.isnan(distance), np.inf, distance))
