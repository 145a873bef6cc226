"""Checks of steps that move a block, in programs whose temporaries are allocated in loops."""

from tilewright.schedules.primitives.placement.compute_at import ComputeAt

from tests.schedules.helpers import rejected, schedule

INSIDE = """
n = symbols("n", lower=1)
@prim_func
def f(x: Buffer[(n, 8), f32], y: Out[(n, 8), f32]):
    for i in range(n):
        t = alloc((8,), f32)
        for j in range(8):
            for r in range(5):
                with block("t"):
                    vi, vj, vr = spatial(i), spatial(j), reduce(r)
                    with init(): t[vj] = 0.0
                    t[vj] += x[vi, (vj + vr) % 8]
        for k in range(8):
            with block("y"):
                wi, wk = spatial(i), spatial(k)
                y[wi, wk] = t[wk] * 2.0
"""


def test_a_producer_inside_an_allocation_keeps_the_values_that_loops_outside_determine():
    sch = schedule(INSIDE)
    outer, _ = sch.split("k", factors=(None, 4))
    sch.compute_at("t", outer)
    assert "vi, vj, vr = spatial(i), spatial(8, k_0 * 4 + " in str(sch)
    assert "guard" not in str(sch)
    assert sch.verify().ok


def test_a_producer_whose_elements_other_iterations_write_does_not_move():
    text = INSIDE.replace("        t = alloc((8,), f32)\n", "")
    sch = schedule(text.replace("    for i in", "    t = alloc((8,), f32)\n    for i in"))
    step = ComputeAt(sch.get_block("t"), sch.get_loop("k"))
    rejected(sch, step, ComputeAt.Requires.INJECTIVE_WRITES, "not injective in vi")


def test_a_consumer_keeps_the_values_that_loops_around_both_determine():
    sch = schedule(INSIDE)
    outer, _ = sch.split("j", factors=(None, 4))
    sch.reverse_compute_at("y", outer)
    assert "wi, wk = spatial(i), spatial(8, j_0 * 4 + " in str(sch)
    assert "guard" not in str(sch)
    assert sch.verify().ok
