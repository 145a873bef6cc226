"""Small modules for the tests of the runtime."""

from __future__ import annotations

import ctypes
from types import MappingProxyType
from typing import TYPE_CHECKING

from tilewright.codegen.runtime.table import MemoryProvider, RuntimeTable
from tilewright.ir.dtype import DType, f32
from tilewright.ir.graph.builder import GraphBuilder
from tilewright.ir.graph.nodes import CallTIR, TensorInfo
from tilewright.ir.loop.builder import Builder
from tilewright.ir.loop.nodes import Binary, Number, PrimFunc
from tilewright.ir.module import Constant, Module
from tilewright.ir.symbolic import Expr, as_expr, var

if TYPE_CHECKING:
    import numpy as np


def tensor(*dims: Expr | int, dtype: DType = f32) -> TensorInfo:
    return TensorInfo(tuple(as_expr(d) for d in dims), dtype)


def add_kernel(name: str = "add", dtype: DType = f32) -> PrimFunc:
    """Return a kernel of y[i] = a[i] + b[i]."""
    n, b = var("n", lower=0), Builder(name)
    x, w = b.param("a", (n,), dtype), b.param("b", (n,), dtype)
    y = b.param("y", (n,), dtype, "out")
    b.compute(y, lambda i: Binary("add", b.load(x, i), b.load(w, i)))
    return b.finish()


def scale_kernel(name: str, factor: float) -> PrimFunc:
    """Return a kernel of y[i] = a[i] * factor."""
    n, b = var("n", lower=0), Builder(name)
    x, y = b.param("a", (n,), f32), b.param("y", (n,), f32, "out")
    b.compute(y, lambda i: Binary("mul", b.load(x, i), Number(factor, f32)))
    return b.finish()


def increment_kernel(name: str = "increment") -> PrimFunc:
    """Return a kernel of state[i] += 1, in place."""
    n, b = var("n", lower=0), Builder(name)
    x = b.param("state", (n,), f32, "inout")
    b.compute(x, lambda i: Binary("add", b.load(x, i), Number(1.0, f32)))
    return b.finish()


def matmul_kernel(name: str = "matmul") -> PrimFunc:
    m, k, n = (var(s, lower=0) for s in "mkn")
    b = Builder(name)
    x, w = b.param("x", (m, k), f32), b.param("w", (k, n), f32)
    y = b.param("y", (m, n), f32, "out")
    b.reduce(y, (k,), lambda i, j, r: Binary("mul", b.load(x, i, r), b.load(w, r, j)))
    return b.finish()


def chain(length: int) -> Module:
    """Return a module of main(x) = x + x + ... + x with ``length`` launches."""
    n, g = var("n", lower=0), GraphBuilder("main")
    x = g.param("x", tensor(n))
    h = x
    for k in range(length):
        h = g.bind(f"h{k}", tensor(n), CallTIR("add", (h, x), (tensor(n),)))
    return Module().with_functions(add_kernel(), g.finish((h,)))


def constant(array: np.ndarray, dtype: DType = f32) -> Constant:
    return Constant(tuple(array.shape), dtype, lambda: array)


def with_constants(module: Module, **arrays: np.ndarray) -> Module:
    return module.with_constants(MappingProxyType({k: constant(a) for k, a in arrays.items()}))


class CountingMemory:
    """A memory provider that records live allocations, and that fails after a set number."""

    def __init__(self) -> None:
        self.live: dict[int, ctypes.Array[ctypes.c_char]] = {}
        self.allocations = 0
        self.fail_at: int | None = None

    def allocate(self, size: int, alignment: int) -> int:
        self.allocations += 1
        if self.fail_at is not None and self.allocations > self.fail_at:
            return 0
        memory = ctypes.create_string_buffer(size + alignment)
        address = -(-ctypes.addressof(memory) // alignment) * alignment
        self.live[address] = memory
        return address

    def free(self, address: int) -> None:
        del self.live[address]

    def table(self, *, threads: int = 1) -> RuntimeTable:
        return RuntimeTable(
            threads=threads, parallel="serial", memory=MemoryProvider(self.allocate, self.free)
        )
