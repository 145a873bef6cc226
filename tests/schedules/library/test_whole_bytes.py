"""Default rules for kernels with packed results, whose iterations may share a byte."""

from __future__ import annotations

import warnings

import pytest

from tilewright.ir.script import parse
from tilewright.schedules import Schedule
from tilewright.target.target import Target

from tests.fuzz import oracles
from tests.fuzz.program import Indices, Program

PRODUCT = """
n, m = symbols("n m", lower=0)

@prim_func
def random(x: Buffer[(n, 5), {t}], w: Buffer[(5, m), {t}], y: Out[(n, m), {t}]):
    for i in range(n):
        for j in range(m):
            for k in range(5):
                with block("y"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): y[vi, vj] = {t}(0)
                    y[vi, vj] += x[vi, vk] * w[vk, vj]
"""
SCATTER = """
n, m = symbols("n m", lower=1)

@prim_func
def random(x: Buffer[(n,), {t}], at: Buffer[(n,), i32], y: InOut[(m,), {t}]):
    for i in range(n):
        with block("y"):
            vi = reduce(i)
            with checked(at[vi], 0, m) as p:
                y[p] += x[vi]
"""
SIZES = ((1, 1), (3, 5), (17, 33))


def runs(text: str, target: Target, **options) -> None:
    """Schedule a program by the default rules without a warning, and compare its results."""
    module = parse(text)
    original = oracles.Original(Program("packed", text, **options), module)
    sch = Schedule(module, target)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sch.schedule_kernel("random")
    function = sch.module.prims[0]
    symbols = {v.name: v for p in function.params for d in p.buffer.shape for v in d.free}
    for n, m in SIZES:
        env = {symbols["n"]: n, symbols["m"]: m}
        if target.is_gpu:
            artifact = oracles.lowered(function, target)
            oracles.run_simt(original, artifact, env, "the emulated GPU")
        else:
            kernel = oracles.native(function, "avx2", opt=0)
            oracles.run_native(original, kernel, env, "native code")


@pytest.mark.parametrize("target", [Target("cpu", features=("avx2",)), oracles.SIMT], ids=str)
@pytest.mark.parametrize("t", ["i4", "u2"])
def test_products_with_packed_results_are_scheduled(t, target):
    runs(PRODUCT.format(t=t), target)


@pytest.mark.parametrize("target", [Target("cpu", features=("avx2",)), oracles.SIMT], ids=str)
@pytest.mark.parametrize("t", ["i4", "f8_e4m3"])
def test_sums_at_loaded_indices_of_narrow_elements_are_scheduled(t, target):
    runs(SCATTER.format(t=t), target, indices={"at": Indices("0", "m")})
