"""Programs on complex and packed elements and with empty allocations, on every target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import tilewright as tw
from tilewright.ir.dtype import dtype
from tilewright.ir.interpreter import call_prim

if TYPE_CHECKING:
    from tilewright.ir.loop.nodes import PrimFunc

PROGRAMS = tw.parse("""
n = symbols("n", lower=0)

@prim_func
def complex_sums(x: Buffer[(n,), c64], w: Buffer[(n,), c64], y: Out[(n,), c128]):
    for i in range(n):
        for k in range(n):
            with block("y"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = 0.0
                y[vi] += c128(conj(x[vk]) * w[vi])

@prim_func
def complex_scan(x: Buffer[(n,), c64], y: Out[(n,), c64], s: Out[(n,), f32]):
    for i in range(n):
        with block("y"):
            v = ordered(i)
            y[v] = scan(add, x[v] * 1j)
    for j in range(n):
        with block("s"):
            v = spatial(j)
            s[v] = real(y[v]) - imag(x[n - 1 - v])

@prim_func
def packed_rows(x: Buffer[(n,), i4], w: Buffer[(n,), u4], y: Out[(n,), i4], z: Out[(n,), u2]):
    for i in range(n):
        with block("y"):
            v = spatial(i)
            y[v] = x[n - 1 - v] * i4(w[v])
    for j in range(n):
        with block("z"):
            v = spatial(j)
            z[v] = u2(x[v]) + u2(w[v])

@prim_func
def packed_sums(x: Buffer[(n,), i4], w: Buffer[(n,), u2], y: Out[(n,), i32]):
    for i in range(n):
        for k in range(n):
            with block("y"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = 0
                y[vi] += i32(x[vk]) * i32(w[vi])

@prim_func
def negative_size(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    t = alloc((n - 3,), f32)
    for i in range(n - 3):
        with block("t"):
            v = spatial(i)
            t[v] = x[v + 3] * 2.0
    for j in range(n):
        with block("y"):
            v = spatial(j)
            y[v] = x[v]
    for k in range(n - 3):
        with block("z"):
            v = spatial(k)
            y[v] = t[n - 4 - v]

@prim_func
def negative_sizes_in_a_loop(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        t = alloc((i - 2, 2), f32, scope="local")
        with block("y"):
            v = spatial(i)
            y[v] = x[v]
        for j in range(i - 2):
            with block("t"):
                vi, vj = ordered(i), spatial(j)
                t[vj, 0] = x[vj] + x[vi]
        for k in range(i - 2):
            with block("z"):
                vi, vk = ordered(i), ordered(k)
                y[vi] = y[vi] * 0.5 + t[vk, 0]
""")
SIZES = (0, 1, 2, 3, 4, 7, 33)
RUNS = [(f.name, size) for f in PROGRAMS.prims for size in SIZES]


def inputs(function: PrimFunc, size: int) -> list[np.ndarray[Any, Any]]:
    """Return small integers, on which all sums are exact in every order."""
    rng = np.random.default_rng(size)
    found: list[np.ndarray[Any, Any]] = []
    for param in function.params:
        kind = param.buffer.dtype
        if param.access == "out":
            continue
        if kind.is_complex:
            parts = rng.integers(-4, 5, (2, size))
            found.append((parts[0] + 1j * parts[1]).astype(kind.numpy))
        else:
            low, high = {"u2": (0, 4), "u4": (0, 16)}.get(kind.name, (-8, 8))
            found.append(rng.integers(low, high, size).astype(dtype(kind.name).numpy))
    return found


def check(name: str, size: int, results: Any) -> None:
    function = PROGRAMS.prim(name)
    given = inputs(function, size)
    wanted = call_prim(function, given)
    results = results if isinstance(results, list | tuple) else [results]
    for have, want in zip(results, wanted, strict=True):
        assert have.dtype == want.dtype
        np.testing.assert_array_equal(have, want, f"{name} of {size} elements")
