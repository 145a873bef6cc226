"""Comparison of a program with its scheduled form: interpreter, and generated code of the CPU."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np

from tilewright.codegen import compile as build
from tilewright.ir.interpreter import call_prim
from tilewright.ir.loop.nodes import BufferParam
from tilewright.ir.script import parse
from tilewright.ir.symbolic import evaluate
from tilewright.schedules import Schedule

if TYPE_CHECKING:
    from tilewright.ir.loop.nodes import PrimFunc
    from tilewright.ir.module import Module

SIZES = (0, 1, 2, 5, 13)
"""The sizes of symbols: none, one, and primes."""


def inputs_of(function: PrimFunc, sizes: dict[str, int], seed: int = 0) -> list[np.ndarray]:
    """Return small integers for all parameters that a function reads."""
    rng = np.random.default_rng(seed)
    made = []
    for param in function.params:
        if isinstance(param, BufferParam) and param.access != "out":
            shape = tuple(
                evaluate(d, {s: sizes[s.name] for s in d.free}) for d in param.buffer.shape
            )
            made.append(rng.integers(-3, 4, shape).astype(param.buffer.dtype.numpy))
    return made


def sizes_of(function: PrimFunc, count: int = 4) -> list[dict[str, int]]:
    """Return values of the symbols of a function that its facts and bounds allow."""
    rng = random.Random(1)
    symbols = {s for p in function.params if isinstance(p, BufferParam)
               for d in p.buffer.shape for s in d.free} | set(function.scalar_params)  # fmt: skip
    if not symbols:
        return [{}]
    drawn = [{s.name: size for s in symbols} for size in SIZES]
    drawn += [{s.name: rng.choice(SIZES) for s in symbols} for _ in range(count)]
    least = {s.name: s.lower or 0 for s in symbols}
    return [{n: max(v, least[n]) for n, v in sizes.items()} for sizes in drawn]


def check_equal(before: Module, after: Module, *, native: bool = True) -> None:
    """Compare the results of the only function of two modules, at several sizes."""
    (old,), (new,) = before.prims, after.prims
    scalars = {v.name for v in old.scalar_params}
    executable = build(after) if native else None
    for sizes in sizes_of(old):
        given = {n: v for n, v in sizes.items() if n in scalars}
        arrays = inputs_of(old, sizes)
        want = call_prim(old, arrays, given)
        got = call_prim(new, arrays, given)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=f"interpreter at {sizes}\n{after}")
        if executable is not None:
            found = _run(executable, new, arrays, given)
            for a, b in zip(found, want, strict=True):
                np.testing.assert_array_equal(a, b, err_msg=f"native code at {sizes}\n{after}")


def _run(executable, function: PrimFunc, arrays: list, given: dict[str, int]) -> list[np.ndarray]:
    """Return the arrays that generated code writes: outputs, and arguments updated in place."""
    left, args, updated = iter(np.array(a) for a in arrays), [], {}
    for number, param in enumerate(function.params):
        if not isinstance(param, BufferParam):
            args.append(given[param.var.name])
        elif param.access != "out":
            args.append(next(left))
            if param.access != "in":
                updated[number] = args[-1]
    result = executable[function.name](*args)
    returned = result if isinstance(result, tuple) else (result,)
    modes = [(k, p.access) for k, p in enumerate(function.params) if isinstance(p, BufferParam)]
    written = [(k, mode) for k, mode in modes if mode != "in"]
    if len(returned) == len(written):
        return [np.asarray(array) for array in returned]
    outputs = iter(returned)
    return [np.asarray(next(outputs) if mode == "out" else updated[k]) for k, mode in written]


def same_after(text: str, *steps, native: bool = True) -> Schedule:
    """Apply steps, each a function of the schedule, and compare the results."""
    before = parse(text)
    sch = Schedule(before)
    for step in steps:
        step(sch)
    check_equal(before, sch.module, native=native)
    return sch
