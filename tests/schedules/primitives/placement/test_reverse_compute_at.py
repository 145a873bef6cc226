import numpy as np

from tilewright.codegen import compile
from tilewright.ir.interpreter.loops import call_prim
from tilewright.ir.script import parse
from tilewright.schedules import Schedule


def test_a_reduction_that_may_be_empty_keeps_its_init():
    text = """
k = symbols("k", lower=0)

@prim_func
def f(k: Int, x: Buffer[(3, k + 3), f32], y: InOut[(3,), f32]):
    for i in range(3):
        for r in range(k):
            with block("y"):
                vi, vk = spatial(3, i), reduce(k + 3, r)
                with init(): y[vi] = -1.0
                y[vi] = max(y[vi], x[vi, vk])
"""
    sch = Schedule(parse(text))
    copy = sch.cache_read("y", "x", "global")
    sch.split(sch.get_loops("y")[1], (None, 256))
    sch.reverse_compute_at("y", sch.get_loops(copy)[0])
    for k in (0, 1, 5):
        x, y = np.ones((3, k + 3), np.float32), np.zeros(3, np.float32)
        found = call_prim(sch.module.prim("f"), (x, y.copy()), {"k": k})[-1]
        assert found.tolist() == [1.0 if k else -1.0] * 3
        assert compile(sch, "cpu")(k, x, y.copy()).tolist() == found.tolist()
