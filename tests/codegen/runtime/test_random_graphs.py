"""Random graphs: the compiled host flow equals the interpreter for several shapes."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings, strategies as st

from tilewright.codegen import compile
from tilewright.ir.dtype import bool_
from tilewright.ir.graph.builder import GraphBuilder
from tilewright.ir.graph.nodes import (
    Binding,
    Branch,
    CallTIR,
    IfElse,
    KernelVersion,
    TensorInfo,
    Value,
)
from tilewright.ir.interpreter import run_graph
from tilewright.ir.module import Module
from tilewright.ir.symbolic import Expr, Var, var

from tests.codegen.runtime.helpers import add_kernel, scale_kernel, tensor

Steps = list[tuple[int, int, int]]

steps = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=9
)


def call(function: str, *args: Value, versions: tuple[KernelVersion, ...] = ()) -> CallTIR:
    return CallTIR(function, args, (args[0].info,), versions=versions)  # type: ignore[arg-type]


def random_module(drawn: Steps, returned: list[int]) -> Module:
    """Return a module of values of shape (2n,): sums, views, branches, and kernel versions."""
    n, g = var("n", lower=0), GraphBuilder("main")
    info, flag = tensor(2 * n), TensorInfo((), bool_)
    values: list[Value] = [g.param("x", info), g.param("y", info)]
    condition = g.param("flag", flag)
    g.param("rows", tensor(n))
    for k, (kind, left, right) in enumerate(drawn):
        a, b = values[left % len(values)], values[right % len(values)]
        values.append(step(g, k, kind, a, b, (condition, n)))
    results = [values[r % len(values)] for r in returned]
    kernels = (add_kernel(), scale_kernel("double", 2), scale_kernel("halve", 0.5))
    return Module().with_functions(*kernels, g.finish(tuple(results)))


def step(  # noqa: PLR0917
    g: GraphBuilder, k: int, kind: int, a: Value, b: Value, around: tuple[Value, Var]
) -> Value:
    flag, n = around
    info = tensor(2 * n)
    small: Expr = n * 2
    match kind:
        case 0:
            return g.bind(f"v{k}", info, call("add", a, b))
        case 1:
            return g.bind(f"v{k}", info, call("double", a))
        case 2:
            return g.emit("reshape", g.emit("reshape", a, (n, 2)), (2 * n,), name=f"v{k}")
        case 3:
            then = Binding(Value(500 + 2 * k, f"t{k}", info), call("add", a, b))
            other = Binding(Value(501 + 2 * k, f"o{k}", info), call("halve", b))
            sides = Branch((then,), (then.value,)), Branch((other,), (other.value,))
            return g.bind(f"v{k}", info, IfElse(flag, *sides))
        case _:
            version = KernelVersion(small <= 6, "halve")
            return g.bind(f"v{k}", info, call("double", a, versions=(version,)))


@settings(max_examples=12)
@given(steps, st.lists(st.integers(0, 20), min_size=1, max_size=3))
def test_random_graphs(drawn: Steps, returned: list[int]) -> None:
    module = random_module(drawn, returned)
    exe = compile(module)
    rng = np.random.default_rng(len(drawn))
    for n, flag in ((3, True), (40, False), (0, True), (3, False)):
        x, y = (rng.integers(-8, 8, 2 * n).astype(np.float32) for _ in range(2))
        arguments = (x, y, np.array(flag), np.zeros(n, np.float32))
        expected = unversioned(module, *arguments, small=2 * n <= 6)
        result = exe(*arguments)
        results = result if isinstance(result, tuple) else (result,)
        for a, b in zip(results, expected, strict=True):
            assert np.array_equal(a, b)


def unversioned(module: Module, *args: np.ndarray, small: bool) -> tuple[np.ndarray, ...]:
    """Run the interpreter on the kernels that the guards select."""
    from dataclasses import replace

    main = module.graph()
    bindings = tuple(
        replace(b, right=replace(b.right, function="halve" if small else "double", versions=()))
        if isinstance(b.right, CallTIR) and b.right.versions
        else b
        for b in main.bindings
    )
    return run_graph(module.with_functions(replace(main, bindings=bindings)), list(args))
