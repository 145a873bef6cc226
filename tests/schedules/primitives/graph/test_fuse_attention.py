"""Attention in one kernel: results, memory, and programs that contain none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.ir.graph.nodes import Call, CallTIR
from tilewright.ir.interpreter import run_graph
from tilewright.schedules import from_json, from_python, to_json, to_python
from tilewright.schedules.handles import BindingRef, FunctionRef
from tilewright.schedules.primitives.graph.fuse_attention import FEW, FuseAttention
from tilewright.target.host import host_features

from tests.schedules.helpers import rejected

MAIN = FunctionRef("main")
UNIT = 2.0**-24
HEADS, WIDTH, DEPTH = 4, 5, 3
CPU = tw.Target("cpu", features=("avx2",))

HEAD = """
n, m, past = symbols("n m past", lower=0)

@graph_func
def main({params}):
    t = permute_dims(k, axes={swap})
    s = matmul(q, t)
{steps}
    p = softmax(x, axis=-1{zero})
    y = matmul(p, v)
    return y
"""
PARAMS = (
    f"q: Tensor[({HEADS}, n, {WIDTH}), f32], k: Tensor[({HEADS}, m, {WIDTH}), f32], "
    f"v: Tensor[({HEADS}, m, {DEPTH}), f32]"
)
STEPS = {
    "plain": "x = multiply(s, 0.5)",
    "divided": "x = divide(s, 2.0)",
    "causal": "r = multiply(s, 0.5)\nc = causal_mask((n, m, 0))\nx = where(c, r, -inf)",
    "cache": "r = multiply(s, 0.5)\nc = causal_mask((n, n + past, past))\nx = where(c, r, -inf)",
    "bool mask": "r = multiply(s, 0.5)\nx = where(mask, r, -inf)",
    "mask of keys": "r = multiply(s, 0.5)\nx = where(row, r, -inf)",
    "hidden": "r = multiply(s, 0.5)\nx = where(mask, -inf, r)",
    "lowest": "r = multiply(s, 0.5)\nx = where(mask, r, -3e38)",
    "bias": "r = multiply(s, 0.5)\nx = add(r, bias)",
    "shown": "r = multiply(s, 0.5)\nc = causal_mask((n, m, 0))\nh = where(c, r, -inf)\n"
    "x = where(mask, h, -3e38)",
    "opposite": "c = causal_mask((n, m, 0))\nh = where(c, s, -inf)\nx = multiply(h, -0.5)",
}
MORE = {
    "bool mask": f", mask: Tensor[({HEADS}, n, m), bool]",
    "shown": f", mask: Tensor[({HEADS}, 1, m), bool]",
    "hidden": f", mask: Tensor[({HEADS}, n, m), bool]",
    "lowest": f", mask: Tensor[({HEADS}, 1, m), bool]",
    "mask of keys": f", row: Tensor[({HEADS}, 1, m), bool]",
    "bias": ", bias: Tensor[(n, m), f32]",
}
SIZES = [(0, 3), (1, 1), (2, 0), (3, 9), (9, 20), (21, 13), (40, 130)]


def program(form: str, *, zero: bool = True) -> tw.Module:
    steps = "\n".join(f"    {line}" for line in STEPS[form].splitlines())
    masked = ', masked_rows="zero"' if zero else ""
    params = PARAMS + MORE.get(form, "")
    if form == "cache":
        params = params.replace(" m,", " n + past,")
    return tw.parse(HEAD.format(params=params, swap=(0, 2, 1), steps=steps, zero=masked))


def arguments(form: str, n: int, m: int, seed: int = 0) -> list[Any]:
    """Return random arguments; masks hide all keys from the first query."""
    rng = np.random.default_rng(1000 * n + m + seed)
    m = max(n, m) if form == "cache" else m
    shapes = (HEADS, n, WIDTH), (HEADS, m, WIDTH), (HEADS, m, DEPTH)
    found: list[Any] = [rng.normal(0, 2, shape).astype(np.float32) for shape in shapes]
    match form:
        case "bool mask":
            mask = rng.random((HEADS, n, m)) < 0.7
            mask[:, :1] = False
            found.append(mask)
        case "mask of keys":
            found.append(rng.random((HEADS, 1, m)) < 0.7)
        case "hidden":
            found.append(rng.random((HEADS, n, m)) < 0.3)
        case "lowest" | "shown":
            mask = rng.random((HEADS, 1, m)) < 0.7
            mask[1] = False  # the weights of a head are equal
            found.append(mask)
        case "bias":
            bias = rng.normal(0, 1, (n, m)).astype(np.float32)
            bias[:1] = -np.inf
            found.append(bias)
        case _:
            pass
    return found


def exact(form: str, arrays: list[Any], *, zero: bool = True) -> tuple[Any, Any]:
    """Return the result in double precision, and a bound of the absolute error.

    A score of ``width`` products is rounded ``width + 3`` times, in units of the sum of their
    absolute values; an exponential multiplies this error by its value. The sums of weights and of
    weighted values round once per key, and the weights, scales and the quotient at most 24 times.
    """
    q, k, v = (a.astype(np.float64) for a in arrays[:3])
    n, m = q.shape[1], k.shape[1]
    scores = q @ k.swapaxes(1, 2) * 0.5
    size = np.abs(q) @ np.abs(k).swapaxes(1, 2) * 0.5
    match form:
        case "causal" | "cache":
            offset = m - n if form == "cache" else 0
            hidden = np.tri(n, m, offset) == 0
            scores[:, hidden] = -np.inf
        case "bool mask" | "mask of keys":
            scores = np.where(arrays[3], scores, -np.inf)
        case "hidden":
            scores = np.where(arrays[3], -np.inf, scores)
        case "lowest":
            scores = np.where(arrays[3], scores, -3e38)
        case "shown":
            scores[:, np.tri(n, m) == 0] = -np.inf
            scores = np.where(arrays[3], scores, -3e38)
        case "bias":
            scores = scores + arrays[3]
            size = size + np.where(np.isfinite(arrays[3]), np.abs(arrays[3]), 0)
        case _:
            pass
    with np.errstate(all="ignore"):
        weights = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
        weights /= weights.sum(-1, keepdims=True)
    if zero:
        weights = np.nan_to_num(weights)
    largest = size.max(initial=0.0)
    rounded = m + 24 + 2 * (WIDTH + 3) * largest
    return weights @ v, UNIT * rounded * (weights @ np.abs(v)) + 1e-37


def check(found: Any, form: str, arrays: list[Any], *, zero: bool = True) -> None:
    want, bound = exact(form, arrays, zero=zero)
    assert found.shape == want.shape
    same = np.isnan(found) & np.isnan(want)
    with np.errstate(invalid="ignore"):
        wrong = ~(same | (np.abs(found - want) <= bound))
    assert not wrong.any(), (form, found[wrong], want[wrong])


def fused(module: tw.Module, lanes: int = 16, rows: int = 6) -> tw.Schedule:
    sch = tw.Schedule(module, CPU)
    sch.fuse_attention(lanes=lanes, rows=rows)
    sch.dead_code()
    return sch


def result(module: tw.Module, arrays: list[Any]) -> Any:
    (found,) = run_graph(module, arrays)
    return np.asarray(found)


@pytest.mark.parametrize("form", [f for f in STEPS if f != "opposite"])
def test_the_interpreter_computes_attention_by_all_kernels(form: str):
    module = fused(program(form), lanes=20).module
    (binding,) = module.graph().bindings
    assert isinstance(binding.right, CallTIR)
    assert len(binding.right.versions) == 2
    for n, m in SIZES[:-1]:
        arrays = arguments(form, n, m)
        check(result(module, arrays), form, arrays)


LEVELS = {"avx2": "avx2", "avx512f": "avx512"}
"""The levels of instructions, by a feature that a processor with them has."""


@pytest.mark.parametrize("level", [v for k, v in LEVELS.items() if k in host_features()])
def test_compiled_attention_of_symbolic_lengths(level: str):
    for form in ("causal", "bias", "shown"):
        exe = tw.compile(program(form), tw.Target("cpu", features=(level,), threads=2))
        for n, m in [*SIZES, (8, 300), (33, 31), (33, 113), (16, 225)]:
            arrays = arguments(form, n, m)
            check(np.asarray(exe(*arrays)), form, arrays)


def test_rows_without_keys_follow_the_softmax():
    """With ``masked_rows="nan"``, a query without visible keys is NaN; without keys, it is 0."""
    module = program("bias", zero=False)
    exe = tw.compile(module, tw.Target("cpu", threads=1))
    lowered = fused(module).module
    for n, m in ((2, 0), (3, 9), (9, 20)):
        arrays = arguments("bias", n, m)
        want = result(module, arrays)
        assert np.isnan(want[:, 0]).all() == (m > 0)
        for found in (np.asarray(exe(*arrays)), result(lowered, arrays)):
            assert np.array_equal(np.isnan(found), np.isnan(want))
            check(found[:, 1:], "bias", [arrays[0][:, 1:], *arrays[1:3], arrays[3][1:]])


def test_infinite_and_undefined_scores_agree_with_the_operators():
    module = program("plain")
    lowered = fused(module).module
    for n in (3, 12):
        arrays = arguments("plain", n, 20)
        arrays[0][0, 0, 0] = np.nan
        arrays[0][1, 1, 0] = np.inf
        want, found = result(module, arrays), result(lowered, arrays)
        assert np.isnan(want[0, 0]).all()
        assert np.array_equal(np.isnan(found), np.isnan(want))


def test_scores_that_a_causal_mask_hides_may_become_visible_by_a_later_step():
    """A negative factor makes them infinite, and the weights of their rows NaN."""
    module = program("opposite")
    lowered = fused(module).module
    for n, m in ((2, 40), (40, 40), (40, 3)):
        arrays = arguments("opposite", n, m)
        want, found = result(module, arrays), result(lowered, arrays)
        assert np.isnan(want).any() == (m > 1)
        assert np.array_equal(np.isnan(found), np.isnan(want))


GROUPED = """
n, m = symbols("n m", lower=0)

@graph_func
def main(
    q_: Tensor[(2, n, 4, 5), f32], k_: Tensor[(2, m, 2, 5), f32], v_: Tensor[(2, m, 2, 3), f32]
):
    q = permute_dims(q_, axes=(0, 2, 1, 3))
    k2 = permute_dims(k_, axes=(0, 2, 1, 3))
    v2 = permute_dims(v_, axes=(0, 2, 1, 3))
    k3 = expand_dims(k2, axes=(2,))
    v3 = expand_dims(v2, axes=(2,))
    k4 = broadcast_to(k3, (2, 2, 2, m, 5))
    v4 = broadcast_to(v3, (2, 2, 2, m, 3))
    k = reshape(k4, (2, 4, m, 5))
    v = reshape(v4, (2, 4, m, 3))
    t = permute_dims(k, axes=(0, 1, 3, 2))
    s = matmul(q, t)
    x = multiply(s, 0.5)
    p = softmax(x)
    y = matmul(p, v)
    return y
"""


def test_groups_of_queries_read_the_heads_of_keys_in_place():
    module = tw.parse(GROUPED)
    sch = fused(module)
    assert [b.value.name for b in sch.module.graph().bindings] == ["y"]
    rng = np.random.default_rng(5)
    for n, m in ((1, 4), (10, 30)):
        shapes = (2, n, 4, 5), (2, m, 2, 5), (2, m, 2, 3)
        arrays = [rng.normal(0, 1, shape).astype(np.float32) for shape in shapes]
        q, k, v = (a.transpose(0, 2, 1, 3).reshape(-1, a.shape[1], a.shape[3]) for a in arrays)
        flat = [q, np.repeat(k, 2, axis=0), np.repeat(v, 2, axis=0)]
        found = result(sch.module, arrays)
        check(found.reshape(8, n, 3), "plain", flat)


EXPORTED = """
n = symbols("n", lower=0)

@graph_func
def main(q_: Tensor[(2, n, 4, 5), f32], k_: Tensor[(2, n, 4, 5), f32], v_: Tensor[(2, n, 4, 3), f32]):
    q = permute_dims(q_, axes=(0, 2, 1, 3))
    t = permute_dims(k_, axes=(0, 2, 3, 1))
    v = permute_dims(v_, axes=(0, 2, 1, 3))
    s = matmul(q, t)
    x = multiply(s, 0.5)
    p = softmax(x)
    y = matmul(p, v)
    return y
"""  # noqa: E501


def test_one_permutation_moves_heads_and_transposes_keys():
    sch = fused(tw.parse(EXPORTED))
    assert [b.value.name for b in sch.module.graph().bindings] == ["y"]
    rng = np.random.default_rng(6)
    for n in (1, 10):
        arrays = [rng.normal(0, 1, (2, n, 4, w)).astype(np.float32) for w in (5, 5, 3)]
        flat = [a.transpose(0, 2, 1, 3).reshape(-1, n, a.shape[3]) for a in arrays]
        check(result(sch.module, arrays).reshape(8, n, 3), "plain", flat)


def test_the_scores_are_not_in_the_plan_of_memory():
    exe = tw.compile(program("causal"), tw.Target("cpu", threads=1))
    plan = exe.memory({"n": 4096, "m": 4096})
    assert plan.peak <= 2 * 4 * HEADS * 4096 * DEPTH
    assert plan.peak < 4 * HEADS * 4096 * 4096 / 100


def test_constant_lengths_select_one_kernel():
    def names(n: int, lanes: int = 16) -> list[str]:
        text = HEAD.format(params=PARAMS, swap=(0, 2, 1), steps="    x = relu(s)", zero="")
        text = text.replace("x = relu(s)", "x = multiply(s, 0.5)").replace(", n,", f", {n},")
        return [f.name for f in fused(tw.parse(text), lanes).module.prims]

    assert names(FEW) == ["attention_rows"]
    assert names(FEW + 1) == ["attention"]
    assert names(FEW + 1, lanes=32) == ["attention_half"]
    assert names(17, lanes=32) == ["attention"]


@pytest.mark.parametrize(
    "change",
    [
        ("x = multiply(s, 0.5)", "x = exp(s)"),
        ("axis=-1", "axis=1"),
        ("return y", "return y, p"),
        ("return y", "z = relu(s)\n    return y, z"),
        ("f32", "f64"),
        ("(0, 2, 1)", "(2, 1, 0)"),
    ],
)
def test_other_products_are_not_attention(change: tuple[str, str]):
    params = PARAMS.replace(f"({HEADS}, m, {WIDTH})", "(4, m, 5)")
    text = HEAD.format(params=params, swap=(0, 2, 1), steps="    x = multiply(s, 0.5)", zero="")
    if change[0] == "(0, 2, 1)":
        text = text.replace("(4, m, 5)", f"({WIDTH}, m, {HEADS})")
    sch = tw.Schedule(tw.parse(text.replace(*change)), CPU)
    rejected(sch, FuseAttention(MAIN), FuseAttention.Requires.ATTENTION)


def test_a_binding_that_is_not_the_second_product_is_rejected():
    text = HEAD.format(params=PARAMS, swap=(0, 2, 1), steps="    x = multiply(s, 0.5)", zero="")
    sch = tw.Schedule(tw.parse(text), CPU)
    (ref,) = [
        BindingRef("main", b.value.uid, b.value.name)
        for b in sch.module.graph().bindings
        if isinstance(b.right, Call) and b.right.op == "softmax"
    ]
    step = FuseAttention(MAIN, (ref,))
    rejected(sch, step, FuseAttention.Requires.ATTENTION, "'p' is not the second product")


def test_a_gpu_empty_tiles_and_the_memory_stage_are_rejected():
    gpu = tw.Schedule(program("plain"), tw.Target("cuda", arch="sm_90a"))
    rejected(gpu, FuseAttention(MAIN), FuseAttention.Requires.CPU)
    sizes = tw.Schedule(program("plain"), CPU)
    rejected(sizes, FuseAttention(MAIN, rows=0), FuseAttention.Requires.SIZES, "rows is 0")
    sch = fused(program("plain"))
    sch.plan_memory()
    rejected(sch, FuseAttention(MAIN), FuseAttention.Requires.DATAFLOW_STAGE)


def test_a_trace_with_the_rule_replays():
    sch = fused(program("causal"))
    for kernel in ("attention", "attention_rows"):
        sch.schedule_attention(kernel)
    for trace in (from_json(to_json(sch.trace)), from_python(to_python(sch.trace))):
        again = tw.Schedule(program("causal"), CPU)
        again.replay(trace)
        assert str(again.module) == str(sch.module)


NAMED = """
batch, lane, key = symbols("batch lane key", lower=0)

@graph_func
def main(q: Tensor[(batch, 2, lane, 5), f32], k: Tensor[(batch, 2, key, 5), f32], v: Tensor[(batch, 2, key, 3), f32]):
    t = permute_dims(k, axes=(0, 1, 3, 2))
    s = matmul(q, t)
    x = multiply(s, 0.5)
    p = softmax(x)
    y = matmul(p, v)
    return y
"""  # noqa: E501


def test_symbols_may_have_the_names_of_loops():
    module = tw.parse(NAMED)
    lowered = fused(module)
    tw.parse(str(lowered.module))
    exe = tw.compile(module, tw.Target("cpu", threads=2))
    rng = np.random.default_rng(7)
    for n, m in ((1, 1), (20, 7)):
        arrays = [
            rng.normal(0, 1, (3, 2, x, w)).astype(np.float32) for x, w in ((n, 5), (m, 5), (m, 3))
        ]
        flat = [a.reshape(6, *a.shape[2:]) for a in arrays]
        for found in (exe(*arrays), result(lowered.module, arrays)):
            check(np.asarray(found).reshape(6, n, 3), "plain", flat)


LAYERS = """
n, m = symbols("n m", lower=0)

@graph_func
def main(
    q: Tensor[(4, n, 5), f32], k: Tensor[(4, m, 5), f32], v: Tensor[(4, m, 5), f32],
    row: Tensor[(4, 1, m), bool], all: Tensor[(1, n, m), bool],
):
    t = permute_dims(k, axes=(0, 2, 1))
    s = matmul(q, t)
    x = multiply(s, 0.5)
    p = softmax(x, axis=-1)
    y = matmul(p, v)
{second}
    return y, z
"""
SECOND = {
    "equal": ("y", "k", "v", "x2 = multiply(s2, 0.5)"),
    "a shared operand": ("y", "v", "v", "x2 = multiply(s2, 0.5)"),
    "another factor": ("y", "k", "v", "x2 = multiply(s2, 0.25)"),
    "a sign": ("y", "k", "v", "x2 = multiply(s2, -0.5)"),
    "another operation": ("y", "k", "v", "x2 = divide(s2, 0.5)"),
    "a causal mask": (
        "y", "k", "v",
        "r = multiply(s2, 0.5)\nc = causal_mask((n, m, 0))\nx2 = where(c, r, -inf)",
    ),
    "a mask of keys": ("y", "k", "v", "r = multiply(s2, 0.5)\nx2 = where(row, r, -inf)"),
    "a mask of all heads": ("y", "k", "v", "r = multiply(s2, 0.5)\nx2 = where(all, r, -inf)"),
    "zero rows": ("y", "k", "v", "x2 = multiply(s2, 0.5)"),
}  # fmt: skip


@pytest.mark.parametrize("name", SECOND)
def test_layers_share_kernels_only_if_they_compute_the_same(name: str):
    query, key, value, steps = SECOND[name]
    rows = ', masked_rows="zero"' if name == "zero rows" else ""
    lines = (
        f"t2 = permute_dims({key}, axes=(0, 2, 1))", f"s2 = matmul({query}, t2)",
        *steps.splitlines(), f"p2 = softmax(x2, axis=-1{rows})", f"z = matmul(p2, {value})",
    )  # fmt: skip
    module = tw.parse(LAYERS.format(second="\n".join(f"    {line}" for line in lines)))
    sch = fused(module)
    calls = [b.right for b in sch.module.graph("main").bindings]
    names = [c.function for c in calls if isinstance(c, CallTIR)]
    assert len(names) == 2
    assert (len(set(names)) == 1) == (name == "equal")
    rng = np.random.default_rng(0)
    for n, m in ((0, 2), (3, 4), (17, 9)):
        shapes = (4, n, 5), (4, m, 5), (4, m, 5)
        arrays = [rng.normal(0, 1, shape).astype(np.float32) for shape in shapes]
        arrays += [rng.random(shape) < 0.8 for shape in ((4, 1, m), (1, n, m))]
        found, wanted = run_graph(sch.module, arrays), run_graph(module, arrays)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
