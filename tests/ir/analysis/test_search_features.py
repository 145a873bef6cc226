"""Search features, compared with an enumeration of all iterations."""

from __future__ import annotations

from itertools import product
from math import log2

import pytest

from tilewright.ir.analysis.search_features import (
    BUFFERS,
    DEPTHS,
    NAMES,
    MissingSizeError,
    search_features,
)
from tilewright.ir.script import parse
from tilewright.schedules import Schedule

MATMUL = """
M, N, K = symbols("M N K", lower=1)

@prim_func
def matmul(A: Buffer[(M, K), f32], B: Buffer[(K, N), f16], C: Out[(M, N), f32]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                with block("mm"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): C[vi, vj] = 0.0
                    C[vi, vj] += A[vi, vk] * f32(B[vk, vj])
"""
SIZES = {"M": 8, "N": 12, "K": 16}


def features(text: str, **sizes: int):
    return search_features(parse(text).prims[0], sizes)


def body(lines: str, params: str = "x: Buffer[(64,), f32], y: Out[(64,), f32]") -> str:
    return f"n = symbols('n', lower=1)\n@prim_func\ndef f({params}):\n{lines}"


def test_matmul():
    init, update = features(MATMUL, **SIZES)
    assert (init.iterations, update.iterations) == (8 * 12, 8 * 12 * 16)
    count = 8 * 12 * 16
    assert update.flops == {
        "add": count, "multiply": count, "divide": 0, "special": 0, "select": count, "integer": 0,
    }  # fmt: skip
    by_name = {b.name: b for b in update.buffers}
    assert {n: b.unique_bytes for n, b in by_name.items()} == {
        "A": 8 * 16 * 4, "B": 16 * 12 * 2, "C": 8 * 12 * 4,
    }  # fmt: skip
    assert {n: b.stride for n, b in by_name.items()} == {"A": 1, "B": 12, "C": 0}
    assert (by_name["C"].reads, by_name["C"].writes) == (1, 1)
    assert by_name["C"].reuse == 2 * 16
    assert by_name["A"].by_depth == (4, 16 * 4, 16 * 4, 8 * 16 * 4)
    moved = sum(b.unique_bytes for b in update.buffers)
    assert update.intensity == 3 * count / moved
    assert init.flops == dict.fromkeys(init.flops, 0)


SCHEDULES = {
    "split": lambda s: s.split("j", (None, 4)),
    "tail": lambda s: s.split("i", (None, 3)),
    "fused": lambda s: s.fuse(*s.get_loops("mm")[:2]),
    "reordered": lambda s: s.reorder(tuple(reversed(s.get_loops("mm")))),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_footprints_contain_those_of_an_enumeration(name):
    """They are equal, except where a fused loop or a tail is not linear."""
    sch = Schedule(parse(MATMUL))
    SCHEDULES[name](sch)
    update = search_features(sch.module.prims[0], SIZES)[-1]
    rows, columns, depth = SIZES["M"], SIZES["N"], SIZES["K"]
    points = list(product(range(rows), range(columns), range(depth)))
    exact = {
        "A": len({(i, k) for i, _, k in points}) * 4,
        "B": len({(k, j) for _, j, k in points}) * 2,
        "C": len({(i, j) for i, j, _ in points}) * 4,
    }
    assert {b.name: b.unique_bytes for b in update.buffers} == exact
    assert update.iterations == len(points) * (9 / 8 if name == "tail" else 1)


@pytest.mark.parametrize(
    ("index", "count"), [("i * 2 + j", 22), ("i + j", 15), ("i", 8), ("63 - i * 8 - j", 64)]
)
def test_linear_indices(index, count):
    lines = (
        f"    for i in range(8):\n        for j in range(8):\n            y[i * 8 + j] = x[{index}]"
    )
    (store,) = features(body(lines))
    found = next(b for b in store.buffers if b.name == "x")
    assert found.unique_bytes == 4 * count
    values = {eval(index, {"i": i, "j": j}) for i in range(8) for j in range(8)}
    assert len(values) == count


def test_kinds_of_loops_and_operations():
    sch = Schedule(parse(body("    for i in range(64):\n        y[i] = exp(x[i]) / 2.0 - x[0]")))
    loops = sch.split("i", (2, 4, None, 2))
    for loop, axis in zip(loops, ("blockIdx.x", "threadIdx.x", "vthread"), strict=False):
        sch.bind(loop, axis)
    sch.unroll(loops[3])
    (store,) = search_features(sch.module.prims[0], {})
    assert store.loops == {
        "serial": 1, "parallel": 1, "vectorized": 1, "unrolled": 2, "block": 2, "thread": 4,
        "virtual": 4,
    }  # fmt: skip
    assert {k: v for k, v in store.flops.items() if v} == {"add": 64, "divide": 64, "special": 64}
    assert [(b.name, b.reads) for b in store.buffers] == [("x", 2), ("y", 0)]


def test_bound_values_count_once():
    lines = """    for i in range(64):
        with block("b"):
            vi = spatial(i)
            t = x[vi] * 2.0
            y[vi] = t + t
"""
    (store,) = features(body(lines))
    assert (store.flops["multiply"], store.flops["add"]) == (64, 64)
    assert {b.name: b.reads for b in store.buffers} == {"x": 1, "y": 0}


def test_triangular_loops_have_the_extent_of_their_middle_iteration():
    lines = "    for i in range(9):\n        for j in range(i + 1):\n            y[i] = x[j]"
    (store,) = features(body(lines, "x: Buffer[(64,), f32], y: InOut[(64,), f32]"))
    assert store.iterations == 9 * 5


def test_empty_loops():
    params = "x: Buffer[(n,), f32], y: InOut[(n,), f32]"
    lines = "    for i in range(n - 1):\n        y[i] = x[i] + 1.0"
    (store,) = features(body(lines, params), n=1)
    assert store.iterations == store.intensity == 0
    assert all(b.bytes == b.unique_bytes == 0 for b in store.buffers)
    assert not any(value < 0 for value in store.vector())


def test_vectors_have_one_length_and_order():
    many = body("    for i in range(64):\n        y[i] = x[i]")
    stores = (*features(MATMUL, **SIZES), *features(many))
    assert {len(s.vector()) for s in stores} == {len(NAMES)}
    assert len(set(NAMES)) == len(NAMES)
    update = dict(zip(NAMES, stores[1].vector(), strict=True))
    assert update["iterations"] == log2(1 + 8 * 12 * 16)
    assert update["loops_serial"] == log2(1 + 8 * 12 * 16)
    largest = stores[1].buffers[0]
    assert update["buffer_0_unique_bytes"] == log2(1 + largest.unique_bytes)
    assert update[f"buffer_0_bytes_{DEPTHS - 1}"] == log2(1 + largest.by_depth[-1])
    assert update[f"buffer_{BUFFERS - 1}_reads"] == 0


def test_a_missing_size():
    with pytest.raises(MissingSizeError, match="symbol 'K' has no size"):
        features(MATMUL, M=1, N=1)
