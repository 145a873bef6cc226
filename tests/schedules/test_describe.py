from __future__ import annotations

import pytest

import tilewright as tw
from tilewright.schedules import BindingRef, BufferRef, FunctionRef, LoopRef, Schedule
from tilewright.schedules.describe import describe
from tilewright.schedules.problem import ParameterError
from tilewright.schedules.state import StaleHandleError

from tests.static_html import check_static

PROGRAM = """
n = symbols("n", lower=1)

@prim_func
def matmul(A: Buffer[(n, 16), f32], B: Buffer[(16, 24), f32], C: Out[(n, 24), f32]):
    for i in range(n):
        for j in vectorized(24):
            for k in range(16):
                with block("C"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): C[vi, vj] = 0.0
                    C[vi, vj] += A[vi, vk] * B[vk, vj]


@graph_func
def main(x: Tensor[(n, 16), f32], w: Tensor[(16, 24), f32]):
    y: Tensor[(n, 24), f32] = call_tir(matmul, x, w)
    z: Tensor[(n, 24), f32] = relu(y)
    return z
"""


@pytest.fixture
def schedule() -> Schedule:
    return Schedule(tw.parse(PROGRAM))


def properties(schedule: Schedule, ref) -> dict:
    """Return the rows of a description by their label."""
    table = describe(schedule.state, ref)
    check_static(table._repr_html_())
    return dict(table.rows)


def test_a_loop(schedule):
    i, j, k = schedule.get_loops(schedule.get_block("C"))
    assert str(describe(schedule.state, j)).splitlines()[0] == "loop j of matmul"
    assert properties(schedule, j) == {
        "extent": "24", "kind": "vectorized", "loops around": "i (n)", "loops inside": "k (16)",
        "blocks": "C", "annotations": "none",
    }  # fmt: skip
    assert properties(schedule, k)["loops around"] == "i (n), j (24, vectorized)"
    schedule.bind(i, thread="blockIdx.x")
    assert properties(schedule, i)["kind"] == "thread blockIdx.x"


def test_a_block(schedule):
    found = properties(schedule, schedule.get_block("C"))
    assert found["reduce vk"] == "k, extent 16"
    assert found["spatial vi"] == "i, extent n"
    assert found["reads"] == "A[vi, vk], B[vk, vj]"
    assert found["writes"] == "C[vi, vj]"
    assert found["initialization"] == "C[vi, vj] = 0.0"


def test_a_buffer(schedule):
    found = properties(schedule, schedule.get_buffer("C", function="matmul"))
    assert found["role"] == "parameter, access out"
    assert found["size (bytes)"] == "n * 96"
    assert found["written by"] == "C"
    assert found["read by"] == "none"


def test_functions_and_bindings(schedule):
    found = properties(schedule, FunctionRef("matmul"))
    assert found["operations"] == "n * 768"
    assert found["accessed bytes"] == "n * 160 + 1536"
    assert properties(schedule, FunctionRef("main"))["bindings"] == 2
    y = properties(schedule, schedule.get_binding("y"))
    assert y["annotation"] == "Tensor[(n, 24), f32]"
    assert y["used by"] == "z"
    assert properties(schedule, schedule.get_binding("x"))["value"] == "parameter"


def test_a_replaced_handle_is_followed_if_it_is_unique():
    schedule = Schedule(tw.parse(PROGRAM.replace("vectorized(24)", "range(24)")))
    i, j, _ = schedule.get_loops(schedule.get_block("C"))
    whole = schedule.fuse(loops=(i, j))
    assert describe(schedule.state, i) == describe(schedule.state, whole)
    schedule.split(whole, factors=(None, 8))
    with pytest.raises(StaleHandleError, match="no longer exists"):
        describe(schedule.state, whole)


@pytest.mark.parametrize(
    "ref",
    [
        FunctionRef("absent"),
        LoopRef("matmul", 999, "q"),
        BufferRef("matmul", 999, "q"),
        BindingRef("main", 999, "q"),
    ],
)
def test_absent_parts_are_errors(schedule, ref):
    with pytest.raises(StaleHandleError):
        describe(schedule.state, ref)


@pytest.mark.parametrize("wrong", [3, "matmul", None])
def test_only_handles_are_described(schedule, wrong):
    with pytest.raises(ParameterError, match="expected a handle, got "):
        describe(schedule.state, wrong)
