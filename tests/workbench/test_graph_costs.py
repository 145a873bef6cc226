"""Costs of the operations of graphs: lowered or not, at sample sizes, and unknown ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tilewright as tw
from tilewright.workbench.graph_costs import lowered_graph, operation_costs

from tests.workbench.test_editor import MODEL

if TYPE_CHECKING:
    from tilewright.workbench.protocol_runs import CostKind

CPU = tw.Target("cpu", features=("avx2",))

SIZE = 4
"""The bytes of an f32."""


def costs(
    program: str | tw.Schedule, kind: CostKind, **samples: int
) -> dict[str, tuple[str, float | None]]:
    """Return the term and the value of each operation of ``main``."""
    schedule = tw.Schedule(tw.parse(program), CPU) if isinstance(program, str) else program
    graph = schedule.module.graph("main")
    found = operation_costs(graph, lowered_graph(schedule.state, "main"), kind, samples)
    names = {b.value.uid: b.value.name for b in graph.bindings}
    return {names[item.uid]: (item.term, item.value) for item in found}


CHAIN = """
n = symbols("n", lower=1)

@graph_func
def main(x: Tensor[(n, 8), f32], w: Tensor[(8, 16), f32]):
    up: Tensor[(n, 16), f32] = matmul(x, w)
    flat: Tensor[(n * 16,), f32] = reshape(up, (n * 16,))
    act: Tensor[(n * 16,), f32] = relu(flat)
    return act
"""


def test_each_operation_is_counted_on_its_own() -> None:
    found = costs(CHAIN, "flops", n=10)
    assert found["up"] == ("n * 256", 2560)
    assert found["flat"] == ("0", 0)
    assert found["act"][1] == 160


def test_bytes_are_those_of_the_arguments() -> None:
    found = costs(CHAIN, "bytes", n=10)
    assert found["up"][1] == SIZE * (10 * 8 + 8 * 16 + 10 * 16)
    assert found["flat"] == ("0", 0)
    assert found["act"] == ("n * 128", 2 * SIZE * 160)


def test_memory_is_that_of_the_live_tensors() -> None:
    """The view has the storage of its operand, which is live until the next operation."""
    found = costs(CHAIN, "memory", n=10)
    assert found == {"up": ("n * 64", 640), "act": ("n * 128", 1280)}


@pytest.mark.parametrize("n", [1, 7])
def test_terms_are_evaluated_at_the_sizes(n: int) -> None:
    assert costs(CHAIN, "flops", n=n)["up"] == ("n * 256", 256 * n)


def test_a_size_that_is_not_known_has_a_term_and_no_value() -> None:
    assert costs(CHAIN, "flops")["up"] == ("n * 256", None)


def test_a_lowered_graph_has_the_costs_of_its_kernels() -> None:
    schedule = tw.Schedule(tw.parse(CHAIN), CPU)
    before = costs(schedule, "flops", n=10)
    schedule.legalize()
    assert costs(schedule, "flops", n=10) == before
    assert costs(schedule, "memory", n=10) == costs(CHAIN, "memory", n=10)


def test_a_fused_kernel_has_the_sum_of_its_operations() -> None:
    schedule = tw.Schedule(tw.parse(MODEL), CPU)
    alone = costs(schedule, "flops", n=8)
    schedule.lower_graph("main")
    fused = costs(schedule, "flops", n=8)
    assert sum(value or 0 for _, value in fused.values()) == pytest.approx(
        sum(value or 0 for _, value in alone.values()), rel=0.05
    )


def test_a_graph_with_a_memory_plan_has_the_same_memory() -> None:
    schedule = tw.Schedule(tw.parse(CHAIN), CPU)
    schedule.legalize()
    schedule.plan_memory()
    values = [value for _, value in costs(schedule, "memory", n=10).values()]
    assert values == [640, 1280]
    assert sum(value or 0 for _, value in costs(schedule, "flops", n=10).values()) == 2720


DECOMPOSED = """
n = symbols("n", lower=1)

@graph_func
def main(x: Tensor[(n, 8), f32]):
    y = exp(x)
    s = sort(y, axis=1)
    z = relu(x)
    return s, z
"""


def test_a_call_of_a_library_is_unknown_and_never_zero() -> None:
    for kind in ("flops", "bytes"):
        found = costs(DECOMPOSED, kind, n=4)
        assert found["s"] == ("", None)
        assert found["y"][1]
        assert found["z"][1]


def test_the_memory_of_a_call_of_a_library_is_known() -> None:
    found = costs(DECOMPOSED, "memory", n=4)
    assert found["s"][1] is not None
    assert found["s"][1] >= 2 * SIZE * 4 * 8


CALLS = """
@graph_func
def inner(x: Tensor[(4,), f32]):
    y: Tensor[(4,), f32] = exp(x)
    return y

@graph_func
def main(x: Tensor[(4,), f32]):
    a: Tensor[(4,), f32] = relu(x)
    b: Tensor[(4,), f32] = call(inner, a)
    return b
"""


@pytest.mark.parametrize("kind", ["flops", "bytes", "memory"])
def test_a_call_of_a_graph_is_unknown(kind: CostKind) -> None:
    found = costs(CALLS, kind)
    assert found["b"] == ("", None)
    assert found["a"][1] is None if kind == "memory" else found["a"][1]


KERNELS = """
n = symbols("n", lower=1)

@prim_func
def twice(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        with block("y"):
            v = spatial(i)
            y[v] = x[v] + x[v]

@graph_func
def main(x: Tensor[(n,), f32], z: Tensor[(n * 2,), f32]):
    a: Tensor[(n,), f32] = call_tir(twice, x)
    b: Tensor[(n * 2,), f32] = call_tir(twice, z)
    return a, b
"""


def test_calls_of_one_kernel_have_the_costs_of_their_own_arguments() -> None:
    assert costs(KERNELS, "flops", n=3) == {"a": ("n", 3), "b": ("n * 2", 6)}
    assert costs(KERNELS, "bytes", n=3) == {"a": ("n * 8", 24), "b": ("n * 16", 48)}
    assert costs(KERNELS, "memory", n=3) == {"a": ("n * 4", 12), "b": ("n * 12", 36)}


TEMPORARY = """
n = symbols("n", lower=1)

@prim_func
def twice(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    t = alloc((n,), f32)
    for i in range(n):
        with block("t"):
            v = spatial(i)
            t[v] = x[v] + x[v]
    for j in range(n):
        with block("y"):
            v = spatial(j)
            y[v] = t[v]

@graph_func
def main(x: Tensor[(n,), f32]):
    a: Tensor[(n,), f32] = call_tir(twice, x)
    return a
"""


def test_temporaries_of_a_kernel_are_part_of_the_memory() -> None:
    assert costs(TEMPORARY, "memory", n=3) == {"a": ("n * 8", 24)}
    assert costs(TEMPORARY, "bytes", n=3) == {"a": ("n * 8", 24)}
