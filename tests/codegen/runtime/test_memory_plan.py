from __future__ import annotations

import json

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.runtime.memory_plan import SymbolValueError, bytes_text
from tilewright.codegen.runtime.plan_query import CallPlan
from tilewright.ir.symbolic import UnboundSymbolError

from tests.static_html import check_static

CHAIN = """
n = symbols("n", lower=1)

@graph_func
def main(x: Tensor[(n, 16), f32], w: Tensor[(16, 16), f32]):
    a: Tensor[(n, 16), f32] = matmul(x, w)
    b: Tensor[(n, 16), f32] = matmul(a, w)
    c: Tensor[(n, 16), f32] = matmul(b, w)
    d: Tensor[(n, 16), f32] = matmul(c, w)
    return d
"""


@pytest.fixture(scope="module")
def exe():
    return tw.compile(tw.parse(CHAIN))


def test_the_sum_without_sharing_counts_every_tensor(exe):
    plan = exe.memory({"n": 100})
    assert plan.arena == plan.peak == 2 * 6400
    assert plan.unshared == 3 * 6400
    assert sorted(name for s in plan.storages for name in s.tensors) == ["a", "b", "c"]


def test_print(exe):
    plan = exe.memory({"n": 100})
    assert str(plan).splitlines() == [
        "memory of 'main' at n = 100: 12.8 kB",
        "storage    size      offset (bytes)  live range    tensors",
        "---------  ------  ----------------  ------------  ---------",
        "a_storage  6.4 kB                 0  1 to 12       a, c",
        "b_storage  6.4 kB              6400  4 to 8        b",
        "peak of live bytes: 12.8 kB",
        "the next call uses the exact plan; plans made by calls: 0",
        "all tensors without sharing: 19.2 kB, saved 33%",
        "live ranges count operations of the program",
        "arguments, results and constants are not in the arena",
    ]
    assert repr(plan) == "<MemoryPlan of main: arena 12.8 kB, 2 storages>"
    assert "12.8 kB" in check_static(plan._repr_html_())
    assert json.loads(json.dumps(plan.to_json()))["symbols"] == {"n": 100}


def test_the_plan_of_the_next_call():
    exe = tw.compile(tw.parse(CHAIN))
    w = np.zeros((16, 16), np.float32)
    assert exe.memory({"n": 1000}).call == CallPlan("exact", 128_000, 0, 0)
    exe(np.zeros((1000, 16), np.float32), w)
    assert exe.memory({"n": 1000}).call == CallPlan("exact", 128_000, 1, 0)
    assert exe.memory({"n": 500}).call == CallPlan("exact", 64_000, 1, 0)
    smaller = exe.memory({"n": 900})
    assert (smaller.arena, smaller.peak) == (115_200, 115_200)
    assert smaller.call == CallPlan("larger", 128_000, 1, 0)
    assert (
        "the next call uses a plan of larger sizes: 128 kB, 11% more; plans made by calls: 1"
        in str(smaller)
    )
    grown = exe.memory({"n": 1001})
    assert grown.call == CallPlan("growing", 164_224, 1, 0)
    plan = "the next call makes a plan with room for growth: 164.2 kB, 28% more"
    assert f"{plan}; plans made by calls: 1" in str(grown)
    assert grown.to_json()["call"] == {
        "plan": "growing", "arena": 164_224, "planned": 1, "reused": 0,
    }  # fmt: skip
    exe(np.zeros((900, 16), np.float32), w)
    assert exe.memory({"n": 900}).call == CallPlan("larger", 128_000, 1, 1)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"n": "a"}, "the value of symbol 'n' must be an integer of at least 0.*, got 'a'"),
        ({"n": -5}, "got -5"),
        ({"n": 2**70}, f"got {2**70}"),
        ({"n": 2.5}, "got 2.5"),
        ({"n": True}, "got True"),
        ({"n": 2**60}, "is not less than 2\\*\\*62 bytes"),
        ({"n": 1, "m": 2}, "no symbol 'm'; symbols of 'main' are n"),
        (5, "expected a mapping of symbols to sizes, got int"),
    ],
)
def test_invalid_sizes(exe, shapes, message):
    with pytest.raises(SymbolValueError, match=message):
        exe.memory(shapes)


def test_missing_sizes(exe):
    with pytest.raises(UnboundSymbolError, match="no value for symbol 'n'"):
        exe.memory()


def test_numpy_integers_are_sizes(exe):
    assert exe.memory({"n": np.int64(100)}).arena == 12800


def test_units():
    assert [bytes_text(n) for n in (0, 999, 1500, 2_500_000, 3 * 10**9)] == [
        "0 bytes", "999 bytes", "1.5 kB", "2.5 MB", "3 GB",
    ]  # fmt: skip
