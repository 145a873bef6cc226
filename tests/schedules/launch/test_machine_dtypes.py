"""Operations that need a machine type: named errors for dtypes without one."""

from __future__ import annotations

import pytest

import tilewright as tw
from tilewright.ir.kernel_errors import MissingDTypeError

SIMT = tw.Target("simt")


@pytest.mark.parametrize(("dtype", "other"), [("f8_e4m3", "f32"), ("i4", "i32")])
def test_threads_do_not_exchange_elements_without_a_machine_type(dtype: str, other: str) -> None:
    module = tw.parse(f"""
@prim_func
def f(x: Buffer[(64, 8), {dtype}], y: Out[(8, 2), {dtype}]):
    for i in range(8):
        for j in range(2):
            for k in range(64):
                with block("y"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init():
                        y[vi, vj] = {dtype}(0)
                    y[vi, vj] += x[vk, vi]
""")
    sch = tw.Schedule(module, target=SIMT)
    i, _, k = sch.get_loops("y")
    sch.bind(i, "blockIdx.x")
    sch.bind(k, "threadIdx.x")
    with pytest.raises(
        MissingDTypeError, match=f"no target has an exchange .* of dtype {dtype}"
    ) as e:
        tw.compile(sch, SIMT)
    assert f"accumulate in dtype {other}" in e.value.hint
    assert "emulated by an exchange of words" in str(e.value)


def test_threads_do_not_update_elements_without_a_machine_type_atomically() -> None:
    module = tw.parse("""
@prim_func
def f(p: Buffer[(64,), i32], y: InOut[(8,), f8_e5m2]):
    for i in range(64):
        with checked(p[i], 0, 8) as at:
            with block("y"):
                vi, va = spatial(64, i), spatial(8, at)
                y[va] += f8_e5m2(1)
""")
    sch = tw.Schedule(module, target=SIMT)
    outer, inner = sch.split("i", (None, 32))
    sch.bind(outer, "blockIdx.x")
    sch.bind(inner, "threadIdx.x")
    with pytest.raises(MissingDTypeError, match="no target has an atomic update of dtype f8_e5m2"):
        tw.compile(sch, SIMT)
