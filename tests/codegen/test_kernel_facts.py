from __future__ import annotations

import tilewright as tw
from tilewright.codegen.compiler import default_scheduled
from tilewright.codegen.kernel_facts import kernel_facts
from tilewright.target.target import Target


def facts_of(text: str) -> dict:
    """Return the facts about the kernels of a program by name."""
    module = tw.parse(text)
    ready, state = default_scheduled(module, Target())
    return {f.kernel: f for f in kernel_facts(module, ready, state, debug=False)}


def test_a_kernel_without_callers():
    (facts,) = facts_of("""
n = symbols("n", lower=1)

@prim_func
def scale(x: Buffer[(n, 8), f32], y: Out[(n, 8), f32]):
    fact(n % 2 == 0, "even", by="entry_check")
    for i in range(n):
        for j in range(8):
            with block("y"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, vj] * 2.0
""").values()
    assert (facts.kernel, facts.function, facts.launches) == ("scale", "scale", 1)
    assert facts.computes == ()
    assert (facts.operations, facts.bytes) == ("n * 8", "n * 64")
    assert "vectorize" in facts.steps
    assert [(f.text, f.origin, f.discharge) for f in facts.facts] == [
        ("n % 2 == 0", "even", "entry check")
    ]
    assert not facts.scheduled


def test_counts_are_sums_over_the_launches_in_symbols_of_the_caller():
    found = facts_of("""
m = symbols("m", lower=1)
k = symbols("k", lower=1)

@prim_func
def double(x: Buffer[(k,), f32], y: Out[(k,), f32]):
    for i in range(k):
        with block("y"):
            vi = spatial(i)
            y[vi] = x[vi] + x[vi]


@graph_func
def main(a: Tensor[(m,), f32], b: Tensor[(m * 2,), f32]):
    c: Tensor[(m,), f32] = call_tir(double, a)
    d: Tensor[(m * 2,), f32] = call_tir(double, b)
    return c, d
""")
    facts = found["double"]
    assert facts.launches == 2
    assert facts.operations == "m * 3"
    assert facts.bytes == "m * 24"
    assert [text.split(" = ")[0] for text in facts.computes] == ["c", "d"]


def test_fused_operations_are_listed_in_program_order():
    found = facts_of("""
@graph_func
def main(x: Tensor[(8, 16), f32]):
    a: Tensor[(8, 16), f32] = relu(x)
    b: Tensor[(8, 16), f32] = add(a, x)
    c: Tensor[(16, 8), f32] = permute_dims(b, axes=(1, 0))
    return c
""")
    texts = [text for facts in found.values() for text in facts.computes]
    assert texts == ["a = relu(x)", "b = add(a, x)", "c = permute_dims(b, axes=(1, 0))"]


def test_stores_outside_of_blocks_and_triangles_are_counted():
    outside_of_blocks, triangle = facts_of("""
@prim_func
def f(x: Buffer[(8, 8), f32], y: Out[(8, 8), f32]):
    for i in range(8):
        for j in range(8):
            y[i, j] = x[i, j] * 2.0


@prim_func
def g(x: Buffer[(8, 8), f32], y: InOut[(8, 8), f32]):
    for i in range(8):
        for j in range(i + 1):
            with block("y"):
                vi, vj = spatial(8, i), spatial(8, j)
                y[vi, vj] = x[vi, vj] * 2.0
""").values()
    assert (outside_of_blocks.operations, outside_of_blocks.bytes) == ("64", "512")
    assert triangle.bytes == "512"


def test_a_tensor_that_is_passed_twice_counts_once():
    (facts,) = facts_of("""
n = symbols("n", lower=0)

@graph_func
def main(x: Tensor[(n, 4), f32]):
    y: Tensor[(n, 4), f32] = add(x, x)
    return y
""").values()
    assert (facts.operations, facts.bytes) == ("n * 4", "n * 32")


def test_the_schedule_of_a_kernel_precedes_that_of_its_graphs():
    """A kernel that two graphs have in common, so that ``lower_graph`` has two of its steps."""
    found = facts_of("""
n = symbols("n", lower=0)

@graph_func
def main(x: Tensor[(n, 4), f32]):
    y: Tensor[(n, 4), f32] = add(x, x)
    return y

@graph_func
def other(x: Tensor[(n, 4), f32]):
    y: Tensor[(n, 4), f32] = multiply(x, x)
    z: Tensor[(n, 4), f32] = add(y, x)
    return z
""")
    assert found["add"].groups[:3] == (
        "default_schedule",
        "schedule_kernel",
        "schedule_elementwise",
    )
