"""One small model with weights, two functions and symbols, exported once for all tests."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.ir.dtype import f32
from tilewright.ir.module import Constant, Module
from tilewright.ir.script import parse

TEXT = """
n = symbols("n", lower=0)
m = symbols("m", lower=1)

constant("weight", (24, 40), f32)
constant("bias", (40,), f32)

@graph_func
def main(x: Tensor[(n, 24), f32], y: Tensor[(n, 40), f32]):
    fact(n <= 64, "the longest batch", at="model.py:3", by="entry_check")
    a = matmul(x, const("weight"))
    b = add(a, const("bias"))
    g = gelu(b)
    c = add(g, y)
    d = sum(c, axes=(-1,), keepdims=False)
    return c, d

@graph_func
def scores(x: Tensor[(n, m), f32]):
    s = softmax(x, axis=-1)
    return s

@prim_func
def accumulate(x: Buffer[(n,), f32], total: InOut[(n,), f32]):
    for i in range(n):
        total[i] = total[i] + x[i]
"""


def build() -> Module:
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((24, 40)).astype(np.float32)
    bias = rng.standard_normal(40).astype(np.float32)
    constants = {
        "weight": Constant((24, 40), f32, lambda: weight),
        "bias": Constant((40,), f32, lambda: bias),
    }
    return parse(TEXT, constants=constants)


@pytest.fixture(scope="session")
def module() -> Module:
    return build()


@pytest.fixture(scope="session")
def exported(module, tmp_path_factory):
    """The directory of the model as a shared library for this machine."""
    made = tw.export(module, tmp_path_factory.mktemp("export") / "small", name="small")
    return made.directory
