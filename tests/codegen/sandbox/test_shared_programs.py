"""Programs with functions of users in sandbox processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.errors import UnsharedFunctionError
from tilewright.codegen.sandbox.interpreter_process import exact_results
from tilewright.codegen.sandbox.parent import Runner
from tilewright.ir.graph.libraries import is_built_in
from tilewright.ir.script import parse

if TYPE_CHECKING:
    from tilewright.ir.module import Module

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def scaled() -> Module:
    tw.library_function("test.scale", lambda x: x * 2, operands=["x"])
    return parse("""
@graph_func
def main(x: Tensor[(2, 3), f32]):
    y: Tensor[(2, 3), f32] = call_library("test.scale", x)
    return y
""")


def test_functions_of_this_process_are_rejected_by_name(scaled: Module) -> None:
    assert not is_built_in("test.scale")
    with pytest.raises(UnsharedFunctionError, match=r"'test\.scale'"):
        tw.measure(scaled, X)
    with pytest.raises(UnsharedFunctionError, match=r"call the executable in this process"):
        tw.measure(scaled, X, check=False)
    with pytest.raises(UnsharedFunctionError, match="function 'main'"):
        Runner(tw.compile(scaled))


OUTER = """
n, k = symbols("n k", lower=0)

@prim_func
def sandbox_outer(x: Buffer[(n,), f32], y: Out[(n, k), f32], s: Out[(n,), f32]):
    for i in range(n):
        s[i] = x[i] + 1.0
        for j in range(k):
            y[i, j] = x[i]
"""


def test_custom_operators_are_interpreted_as_their_programs() -> None:
    tw.custom_operator(OUTER, shape=lambda x: ((x[0], x[0] * 2), (x[0],)))
    module = parse("""
n = symbols("n", lower=0)

@graph_func
def main(x: Tensor[(n,), f32], c: Tensor[(), bool]):
    p = sandbox_outer(x)
    a = p[0]
    b = p[1]
    if c:
        q = sandbox_outer(b)
        e = q[1]
        r: Tensor[(n,), f32] = e
    else:
        r: Tensor[(n,), f32] = b
    return a, r
""")
    x = np.arange(2, dtype=np.float32)
    a, r = exact_results(module, "main", [x, np.array(True)]).values
    assert a.tolist() == [[0] * 4, [1] * 4]
    assert r.tolist() == [2, 3]
    taken = tw.measure(module, x, np.array(True), budget=0.1)
    assert taken.verdict is not None
    assert taken.verdict.agrees
