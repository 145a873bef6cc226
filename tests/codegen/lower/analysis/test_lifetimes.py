"""The live ranges of temporaries in a prepared function."""

from __future__ import annotations

from tilewright.codegen.lower.analysis.lifetimes import STACK_BYTES, live_ranges, on_stack
from tilewright.ir.dtype import f32
from tilewright.ir.loop.nodes import Buffer
from tilewright.target.target import Target

from tests.codegen.lower.passes.running import both

CPU = Target("cpu", features=("avx2",))


def ranges(body: str) -> dict[str, tuple[int, int]]:
    text = f"""
n = symbols("n", lower=1)
@prim_func(scheduled=True)
def f(x: Buffer[(n, n), f32], y: Out[(n, n), f32]):
{body}
"""
    _, func = both("compact_buffers", text, CPU)
    return {b.name: found for b, found in live_ranges(func).items()}


def disjoint(found: dict[str, tuple[int, int]], a: str, b: str) -> bool:
    return found[a][1] < found[b][0] or found[b][1] < found[a][0]


def test_temporaries_of_two_scopes_in_one_loop_are_disjoint():
    found = ranges("""
    for i in range(n):
        for r in range(2):
            s = alloc((n,), f32)
            for j in range(n): s[j] = x[i, j]
            for k in range(n): y[i, k] = s[n - 1 - k]
        for q in range(2):
            t = alloc((n,), f32)
            for j2 in range(n): t[j2] = y[i, j2]
            for k2 in range(n): y[i, k2] = t[n - 1 - k2]
""")
    assert disjoint(found, "s", "t")


def test_a_value_that_is_read_by_the_next_iteration_is_live_in_the_whole_loop():
    found = ranges("""
    c = alloc((n,), f32)
    for j0 in range(n): c[j0] = 0.0
    for i in range(n):
        for j in range(n): y[i, j] = c[j]
        s = alloc((n,), f32)
        for j1 in range(n): s[j1] = x[i, j1]
        for k in range(n): c[k] = s[n - 1 - k]
""")
    assert not disjoint(found, "c", "s")


def test_a_temporary_between_the_accesses_of_another_one_in_an_iteration_is_not_disjoint():
    found = ranges("""
    for i in range(n):
        s = alloc((n,), f32)
        for j in range(n): s[j] = x[i, j]
        for r in range(2):
            t = alloc((n,), f32)
            for j2 in range(n): t[j2] = x[i, j2]
            for k2 in range(n): y[i, k2] = t[n - 1 - k2]
        for k in range(n): y[i, k] = y[i, k] + s[n - 1 - k]
""")
    assert not disjoint(found, "s", "t")


def test_temporaries_of_the_function_are_live_from_the_first_to_the_last_access():
    found = ranges("""
    s = alloc((n,), f32)
    t = alloc((n,), f32)
    u = alloc((n,), f32)
    for j in range(n): s[j] = x[0, j]
    for k in range(n): t[k] = s[n - 1 - k]
    for l in range(n): u[l] = t[n - 1 - l]
    for i in range(n):
        for m in range(n): y[i, m] = u[n - 1 - m]
""")
    assert disjoint(found, "s", "u")
    assert not disjoint(found, "s", "t")
    assert not disjoint(found, "t", "u")


def test_temporaries_on_the_stack_have_a_limited_size_together():
    buffers = tuple(Buffer(k, f"t{k}", (4096,), f32) for k in range(100))
    kept = on_stack(buffers)
    assert len(kept) == STACK_BYTES // 16384
