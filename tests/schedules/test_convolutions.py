"""Loops of convolutions, and loops that resemble them: by default equal to the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.ir.dtype import dtype
from tilewright.ir.interpreter import run_graph, run_prim
from tilewright.ir.script import parse
from tilewright.ir.symbolic import evaluate

from tests.amounts import covering
from tests.codegen.kernels import LEVELS

NEST = """
n = symbols("n", lower=0)

@prim_func
def f(x: {x}, w: {w}, y: {y}[(5, n), {result}]):
    for o in range(5):
        for i in range(n):
            for c in range(3):
                for k in {loop}:
                    with block("y"):
                        vo, vi, vc, vk = spatial(o), spatial(n, i), reduce(c), reduce(3, k)
                        {guard}
                        {init}
                        y[vo, vi] += {value}
{after}
"""
USUAL = {
    "x": "Buffer[(3, 2 * n + 4), f32]",
    "w": "Buffer[(5, 3, 3), f32]",
    "y": "Out",
    "result": "f32",
    "loop": "range(3)",
    "guard": "",
    "init": "with init(): y[vo, vi] = 0.0",
    "value": "x[vc, vi + vk] * w[vo, vc, vk]",
    "after": "",
}
LOOPS: dict[str, dict[str, str]] = {
    "a convolution": {},
    "stride of two": {"value": "x[vc, 2 * vi + vk] * w[vo, vc, vk]"},
    "a window in reverse": {"value": "x[vc, vi - vk + 2] * w[vo, vc, vk]"},
    "columns in reverse": {"value": "x[vc, n + 2 - vi - vk] * w[vo, vc, vk]"},
    "a column in two indices": {
        "x": "Buffer[(n + 3, n + 3), f32]",
        "value": "x[vi + vc, vi + vk] * w[vo, vc, vk]",
    },
    "a guard of the window": {"guard": "guard(i + k < n)"},
    "a guard of the channel": {"guard": "guard(o + c < 5)"},
    "an initial value of two": {"init": "with init(): y[vo, vi] = 2.0"},
    "an initial value that is read": {"init": "with init(): y[vo, vi] = x[0, vi]"},
    "added to the previous value": {"y": "InOut", "init": ""},
    "a triangular window": {"loop": "range(c + 1)"},
    "a triangle of channels": {"loop": "range(max(0, 3 - o))"},
    "squares": {"value": "x[vc, vi + vk] * x[vc, vi + vk]"},
    "weights of the image": {
        "x": "Buffer[(5, n + 8), f32]",
        "value": "x[vc, vi + vk] * x[vo, vc + vk]",
    },
    "weights that are also written": {
        "w": "InOut[(5, 3, 3), f32]",
        "after": """    for p in range(5):
        for q in range(3):
            with block("w"):
                vo, vc = spatial(p), spatial(q)
                w[vo, vc, 1] = 7.0
""",
    },
    "integers": {
        "x": "Buffer[(3, 2 * n + 4), i32]",
        "w": "Buffer[(5, 3, 3), i32]",
        "result": "i32",
        "init": "with init(): y[vo, vi] = 0",
    },
    "bytes in sums of 32 bits": {
        "x": "Buffer[(3, 2 * n + 4), i8]",
        "w": "Buffer[(5, 3, 3), i8]",
        "result": "i32",
        "init": "with init(): y[vo, vi] = 0",
        "value": "i32(x[vc, vi + vk]) * i32(w[vo, vc, vk])",
    },
    **{
        element: {
            "x": f"Buffer[(3, 2 * n + 4), {element}]",
            "w": f"Buffer[(5, 3, 3), {element}]",
            "result": element,
        }
        for element in ("f64", "f16", "bf16")
    },
}
SIZES = (0, 1, 2, 7, 15, 16, 17, 33)


@pytest.mark.parametrize(("case", "level"), covering(LOOPS, ["64bit", *LEVELS]))
def test_loops_keep_their_results(case, level, recwarn) -> None:
    lines = NEST.format(**{**USUAL, **LOOPS[case]}).splitlines()
    module = parse("\n".join(line for line in lines if line.strip()))
    func = module.prims[0]
    run = tw.compile(module, tw.Target("cpu", features=(level,)))
    for n in SIZES:
        rng = np.random.default_rng(n)
        arrays = []
        for buffer in func.buffer_params:
            shape = [evaluate(d, dict.fromkeys(d.free, n)) for d in buffer.shape]
            arrays.append(rng.integers(-1, 2, shape).astype(buffer.dtype.numpy))
        wanted = [a.copy() for a in arrays]
        run_prim(func, wanted, {"n": n})
        run(*arrays)
        for a, b in zip(arrays, wanted, strict=True):
            np.testing.assert_array_equal(a.astype(np.float64), b.astype(np.float64))
    assert not recwarn.list


def test_windows_of_one_element() -> None:
    n, h, width = 2, 3, 7
    module = parse(
        """
n, h, v = symbols("n h v", lower=1)
constant("w", (33, 1, 1, 1), f32)

@graph_func
def main(x: Tensor[(n, 33, h, v), f32]):
    y = conv(x, const("w"), strides=(2, 3), padding=(2, 0, 1, 0), dilation=(1, 2), groups=33)
    return y
""",
        constants={"w": np.arange(33, dtype=dtype("f32").numpy).reshape(33, 1, 1, 1)},
    )
    x = np.random.default_rng(1).integers(-4, 5, (n, 33, h, width)).astype(np.float32)
    (wanted,) = run_graph(module, [x])
    np.testing.assert_array_equal(tw.compile(module)(x), wanted)
