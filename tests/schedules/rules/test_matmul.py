"""Layers in bytes and bfloat16 by default: one kernel with its epilogue, by the instruction."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright.ir.dtype import dtype, f32
from tilewright.ir.interpreter import run_graph
from tilewright.ir.module import Constant
from tilewright.ir.script import parse, to_text
from tilewright.schedules.rules import with_default_schedule
from tilewright.target.host import with_level

from tests.amounts import covering

LAYER = """
b, s = symbols("b s", lower=1)
constant("w", (DEPTH, 40), {right})
constant("scale", (40,), f32)

@graph_func
def main(x: Tensor[(b, s, DEPTH), {left}]):
    y = {op}(x, const("w"))
    z = cast(y, dtype="f32")
    u = multiply(z, const("scale"))
    r = relu(u)
    return r
"""
BFLOAT = ml_dtypes.bfloat16


def layer(op: str, left: str, right: str, depth: int, rng: np.random.Generator):
    """The layer, its weight and its scale."""
    weight = rng.integers(-128, 128, (depth, 40)).astype(dtype(right).numpy)
    scale = rng.standard_normal(40).astype(np.float32)
    constants = {
        "w": Constant(weight.shape, dtype(right), lambda: weight),
        "scale": Constant(scale.shape, f32, lambda: scale),
    }
    text = LAYER.format(op=op, left=left, right=right).replace("DEPTH", str(depth))
    return parse(text, constants=constants), weight, scale


LAYERS = [
    (op, left, right, needs, features)
    for features in ((), ("avx2",))
    for op, left, right, needs in (
        ("matmul_integer", "u8", "i8", "avx2"), ("matmul_integer", "i8", "i8", "avx2"),
        ("matmul", "bf16", "bf16", "avx512bf16"),
    )
]  # fmt: skip
"""The operator, its dtypes, the feature that its instruction requires, and those of the target."""


@pytest.mark.parametrize(("case", "depth"), covering(LAYERS, [64, 37]), ids=str)
def test_a_layer_uses_the_instruction(case, depth) -> None:
    op, left, right, needs, features = case
    target = tw.Target("cpu", features=features)
    rng = np.random.default_rng(depth)
    module, weight, scale = layer(op, left, right, depth, rng)
    chosen = with_level(target)
    done = with_default_schedule(module, chosen)
    has = needs == "avx2" or needs in chosen.features
    assert ('_o", intrinsic="' in to_text(done)) == has
    assert len([b for b in done.graph("main").bindings if "run_" in b.value.name]) == 1
    run = tw.compile(module, target)
    for shape in ((1, 1), (3, 7), (2, 30)):
        x = rng.integers(0, 128, (*shape, depth)).astype(dtype(left).numpy)
        exact = x.astype(np.float64) @ weight.astype(np.float64)
        if op == "matmul":  # whole sums, rounded once to the dtype of the operator
            exact = exact.astype(np.float32).astype(BFLOAT).astype(np.float64)
        np.testing.assert_allclose(run(x), np.maximum(exact * scale, 0), rtol=1e-6)


SMALL = """
{symbols}

@graph_func
def main(x: Tensor[({m}, {k}), {left}], w: Tensor[({k}, {n}), {right}]):
    y = {op}(x, w)
    return y
"""
SHAPES = [(1, 64, 32), (1, 1, 32), (1, 40, 33), (5, 1, 16), (2, 33, 1), ("M", 1, 16), ("M", 40, 1)]
KINDS = [("matmul_integer", "u8", "i8"), ("matmul_integer", "i8", "i8"),
         ("matmul", "bf16", "bf16"), ("matmul", "f32", "f32")]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: f"{k[1]}-{k[2]}")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("constant", [True, False], ids=["weight", "argument"])
def test_dimensions_of_one(kind, shape, constant) -> None:
    op, left, right = kind
    m, n, k = shape
    symbols = 'M = symbols("M", lower=1)' if m == "M" else ""
    text = SMALL.format(symbols=symbols, m=m, n=n, k=k, op=op, left=left, right=right)
    rng = np.random.default_rng(n + k)
    rows = 5 if m == "M" else m
    high = 2 if left == "bf16" else 100  # sums that bfloat16 holds exactly
    x = rng.integers(0, high, (rows, k)).astype(dtype(left).numpy)
    w = rng.integers(-high, high, (k, n)).astype(dtype(right).numpy)
    exact = x.astype(np.float64) @ w.astype(np.float64)
    if not constant:
        np.testing.assert_array_equal(tw.compile(parse(text))(x, w), exact)
        return
    declared = f'constant("w", ({k}, {n}), {right})\n\n@graph_func'
    text = text.replace("@graph_func", declared).replace(f", w: Tensor[({k}, {n}), {right}]", "")
    text = text.replace("x, w)", 'x, const("w"))')
    module = parse(text, constants={"w": Constant(w.shape, dtype(right), lambda: w)})
    np.testing.assert_array_equal(tw.compile(module)(x), exact)


@pytest.mark.parametrize("dims", [(0, 16, 3), (1, 0, 3), (1, 16, 0), (0, 0, 0)])
@pytest.mark.parametrize("weight", [True, False])
def test_products_with_an_empty_dimension(dims, weight):
    m, k, n = dims
    w = np.ones((n, k), np.float32)
    right = 'const("w")' if weight else "w"
    param = "" if weight else f", w: Tensor[({n}, {k}), f32]"
    text = f"""
constant("w", ({n}, {k}), f32)

@graph_func
def main(x: Tensor[({m}, {k}), f32]{param}):
    t = permute_dims({right}, axes=(1, 0))
    y = matmul(x, t)
    return y
"""
    module = parse(text, constants={"w": w})
    args = (np.ones((m, k), np.float32), *(() if weight else (w,)))
    for target in ("cpu", "simt"):
        y = tw.compile(module, target)(*args)
        assert y.shape == (m, n)
        assert (y == 0).all() or k


def test_a_square_product_whose_one_row_version_has_one_column() -> None:
    module = parse("""
n, m = symbols("n m", lower=0)

@graph_func
def main(x: Tensor[(n, m), f32]):
    y = matmul(x, x)
    return y
""")
    sch = tw.Schedule(module, tw.Target("cpu", features=("avx512",)))
    sch.default_schedule()
    executable = tw.compile(module)
    for n in (0, 1, 5, 33):
        x = np.arange(n * n, dtype=np.float32).reshape(n, n) % 7
        np.testing.assert_array_equal(executable(x), x @ x)
    with pytest.raises(tw.TilewrightError, match="matmul requires m == n"):
        executable(np.ones((2, 3), np.float32))


SHARED = """
n = symbols("n", lower=1)
constant("w", (37, COLUMNS), DTYPE)

@graph_func
def main(x: Tensor[(n, 37), DTYPE]):
    y = matmul(x, const("w"))
    z = gelu(y)
    return z
"""


@pytest.mark.parametrize("features", ["avx2", "sse4.2"])
@pytest.mark.parametrize(("bits", "kind"), [(1024, "f32"), (1024, "f64"), (512, "f32")])
@pytest.mark.parametrize("columns", [8, 40, 72])
def test_panels_for_wider_registers(features, bits, kind, columns) -> None:
    """Narrower registers read a part of a panel, or a whole panel with fewer rows."""
    rng = np.random.default_rng(columns)
    weight = rng.standard_normal((37, columns)).astype(dtype(kind).numpy)
    text = SHARED.replace("COLUMNS", str(columns)).replace("DTYPE", kind)
    module = parse(text, constants={"w": Constant(weight.shape, dtype(kind), lambda: weight)})
    target = tw.Target("cpu", arch="x86_64", features=(features,), panel_bits=bits)
    scheduled = with_default_schedule(module, target)
    (packed,) = [c for c in scheduled.constants.values() if c.source == "prepare"]
    width = min(bits // dtype(kind).bits, columns)
    assert packed.shape == (-(-columns // width), 37, width)
    run = tw.compile(module, target)
    for n in (1, 2, 3, 7, 13):
        x = rng.standard_normal((n, 37)).astype(dtype(kind).numpy)
        np.testing.assert_allclose(run(x), *run_graph(module, (x,)), rtol=3e-5, atol=3e-5)
