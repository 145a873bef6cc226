"""Transposes that products compute themselves: which ones, and the results of every size."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.ir.dtype import dtype as dtype_named
from tilewright.schedules.transposed_operands import fused_transposes

from tests.codegen.kernels import LEVELS

TEXT = """
n, m = symbols("n m", lower=0)
constant("w", (6, 8), f32)

@graph_func
def main(q: Tensor[(3, {rows}, 8), f32], k: Tensor[(3, m, 8), f32], c: Tensor[(m, 3, 8), f32],
         x: Tensor[({rows}, 8), f32], y: Tensor[(m, 8), f32]):
{body}
"""
KEYS = """t = permute_dims(k, axes=(0, 2, 1))
s = matmul(q, t)
return s"""
HEADS = """h = permute_dims(c, axes=(1, 0, 2))
t = permute_dims(h, axes=(0, 2, 1))
s = matmul(q, t)
return s"""


def module(body: str, rows: str = "n") -> tw.Module:
    """Return a program with this body."""
    lines = "\n".join(f"    {line.strip()}" for line in body.strip().splitlines())
    return tw.parse(
        TEXT.format(body=lines, rows=rows), constants={"w": np.ones((6, 8), np.float32)}
    )


def fused(body: str) -> set[str]:
    """Return the names of the values that products compute themselves."""
    sch = tw.Schedule(module(body))
    sch.legalize("main")
    return {v.name for v in fused_transposes(sch.module, sch.module.graph("main"))}


def test_keys_are_transposed_by_the_product() -> None:
    assert fused(KEYS) == {"t"}
    assert fused("t = permute_dims(y, axes=(1, 0))\ns = matmul(x, t)\nreturn s") == {"t"}


def test_a_chain_of_permutations_is_computed_by_the_product() -> None:
    assert fused(HEADS) == {"h", "t"}


def test_a_permutation_after_which_columns_are_adjacent_is_not() -> None:
    values = """t = permute_dims(k, axes=(0, 2, 1))
    s = matmul(q, t)
    v = permute_dims(c, axes=(1, 0, 2))
    z = matmul(s, v)
    return z"""
    assert fused(values) == {"t"}


def test_a_chain_of_several_orders_is_computed_by_the_product() -> None:
    body = """u = permute_dims(c, axes=(2, 1, 0))
    v = permute_dims(u, axes=(1, 2, 0))
    t = permute_dims(v, axes=(0, 2, 1))
    s = matmul(q, t)
    return s"""
    assert fused(body) == {"u", "v", "t"}


def test_a_chain_ends_where_the_depth_is_last() -> None:
    """The product reads ``u``, since it would read ``r`` along the keys."""
    body = """p = permute_dims(k, axes=(0, 2, 1))
    r = relu(p)
    u = permute_dims(r, axes=(0, 2, 1))
    t = permute_dims(u, axes=(0, 2, 1))
    s = matmul(q, t)
    return s"""
    assert fused(body) == {"t"}


def test_a_transpose_with_other_users_is_not() -> None:
    assert fused(KEYS.replace("return s", "z = matmul(q, t)\nu = add(s, z)\nreturn u")) == set()
    assert fused(KEYS.replace("return s", "return s, t")) == set()
    square = "t = permute_dims(y, axes=(1, 0))\ns = matmul(x, t)\nr = add(t, 1.0)\nreturn s, r"
    assert fused(square) == set()


def test_the_left_operand_is_not() -> None:
    body = "t = permute_dims(k, axes=(0, 2, 1))\nr = relu(q)\ns = matmul(t, r)\nreturn s"
    assert fused(body.replace("relu(q)", "relu(k)")) == set()


def test_a_transposed_constant_is_computed_at_load_time() -> None:
    assert fused('t = permute_dims(const("w"), axes=(1, 0))\ns = matmul(x, t)\nreturn s') == set()


def test_a_gpu_computes_transposes_separately() -> None:
    sch = tw.Schedule(module(KEYS), tw.Target("cuda", arch="sm_80"))
    sch.lower_graph("main")
    assert {f.name for f in sch.module.prims} == {"permute_dims", "matmul"}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f64"])
def test_results_of_other_dtypes(dtype: str, level: str) -> None:
    """A product of 16-bit floats rounds its sums in a second block."""
    text = tw.parse(
        f"""
n, m = symbols("n m", lower=0)

@graph_func
def main(q: Tensor[(3, n, 8), {dtype}], k: Tensor[(3, m, 8), {dtype}]):
    t = permute_dims(k, axes=(0, 2, 1))
    s = matmul(q, t)
    return s
"""
    )
    exe = tw.compile(text, tw.Target("cpu", features=(level,)))
    names = {getattr(kernel, "name", kernel) for kernel in exe.kernels}
    assert names == {"fused_permute_dims_matmul", "fused_permute_dims_matmul_n1"}
    rng = np.random.default_rng(4)
    for n, m in ((0, 3), (1, 0), (1, 1), (1, 37), (2, 16), (29, 131)):
        q, k = (
            rng.integers(-4, 5, shape).astype(dtype_named(dtype).numpy)
            for shape in ((3, n, 8), (3, m, 8))
        )
        expected = np.einsum("hnd,hmd->hnm", q.astype(np.float64), k.astype(np.float64))
        np.testing.assert_array_equal(exe(q, k).astype(np.float64), expected)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("rows", ["n", "1"])
@pytest.mark.parametrize("body", [KEYS, HEADS], ids=["keys", "heads"])
def test_results_of_every_size(body: str, rows: str, level: str) -> None:
    """One row reads the keys in their order; several rows read panels."""
    exe = tw.compile(module(body, rows), tw.Target("cpu", features=(level,)))
    names = {k.name if hasattr(k, "name") else k for k in exe.kernels}
    assert not any(name.startswith("permute_dims") for name in names)
    assert any(name.endswith("_n1") for name in names) == (rows == "n")
    rng = np.random.default_rng(3)
    for n in (0, 1, 2, 13, 29) if rows == "n" else (1,):
        for m in (0, 1, 7, 16, 37, 131):
            q, k, c, x, y = (
                rng.integers(-8, 8, shape).astype(np.float32)
                for shape in ((3, n, 8), (3, m, 8), (m, 3, 8), (n, 8), (m, 8))
            )
            keys = k if body == KEYS else c.transpose(1, 0, 2)
            expected = np.einsum("hnd,hmd->hnm", q, keys)
            np.testing.assert_array_equal(exe(q, k, c, x, y), expected)
