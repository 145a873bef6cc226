"""Tests of transform_layout and set_scope."""

import numpy as np
import pytest

from tilewright.codegen import compile as build
from tilewright.ir.script import parse
from tilewright.ir.verify import violations
from tilewright.schedules import Schedule
from tilewright.schedules.apply import check, prepared
from tilewright.schedules.primitives.layout.set_scope import SetScope
from tilewright.schedules.primitives.layout.transform_layout import TransformLayout
from tilewright.schedules.problem import ParameterError
from tilewright.schedules.requirement import CommonRequirement

from tests.codegen.tensorized import FMA_AVX512
from tests.schedules.helpers import CHAIN, MATMUL, rejected, schedule


def packed():
    sch = schedule(MATMUL)
    sch.cache_read("mm", "B", "global")
    return sch, sch.get_buffer("B_global")


def test_panels(golden):
    sch, buffer = packed()
    sch.transform_layout(buffer, lambda k, n: (n // 8, k, n % 8))
    golden("transform_layout.txt", str(sch))
    assert sch.trace[-1].decisions == {"padded": False}
    assert sch.verify().required().compared[0].exact


def test_a_partial_last_panel():
    sch, buffer = packed()
    sch.transform_layout(buffer, "lambda k, n: (n // 10, k, n % 10)")
    assert [str(d) for d in sch.state.buffer(buffer).shape] == ["3", "16", "10"]
    assert sch.trace[-1].decisions == {"padded": True}
    assert sch.verify().ok


def test_a_symbolic_dimension():
    sch = schedule(CHAIN)
    sch.transform_layout("t", lambda i: (i // 4, i % 4))
    t = sch.get_buffer("t")
    assert [str(d) for d in sch.state.buffer(t).shape] == ["ceildiv(n, 4)", "4"]
    assert sch.verify().ok


def test_reversed_columns():
    sch, buffer = packed()
    sch.transform_layout(buffer, "lambda k, n: (23 - n, k)")
    assert sch.verify().ok


def map_step(sch, buffer, text):
    return prepared(sch.state, TransformLayout(buffer, text))


def test_requirements_of_transform_layout():
    sch, buffer = packed()
    rejected(
        sch,
        map_step(sch, sch.get_buffer("A"), "lambda a, b: (b, a)"),
        TransformLayout.Requires.ROW_MAJOR_TEMPORARY,
        "is a parameter",
    )
    rejected(
        sch,
        map_step(sch, buffer, "lambda a: (a,)"),
        TransformLayout.Requires.MATCHING_RANK,
        "index map with 1 inputs",
    )
    rejected(
        sch,
        map_step(sch, buffer, "lambda a, b: (a, b // 2)"),
        TransformLayout.Requires.INJECTIVE_MAP,
        "is not provably injective in b",
    )
    rejected(
        sch,
        map_step(sch, buffer, "lambda a, b: (a + 1, b)"),
        TransformLayout.Requires.BOUNDED_INDICES,
        "starts at 1",
    )


def test_invalid_index_maps():
    sch, buffer = packed()
    with pytest.raises(ParameterError, match="is not a lambda"):
        sch.transform_layout(buffer, "a, b")
    with pytest.raises(ParameterError, match="expected index map"):
        sch.transform_layout(buffer, 3)


def test_scopes():
    sch = schedule(CHAIN)
    sch.set_scope("t", "local")
    assert sch.state.buffer(sch.get_buffer("t")).scope == "local"
    assert sch.verify().ok
    rejected(
        sch, SetScope(sch.get_buffer("x"), "local"), SetScope.Requires.TEMPORARY, "is a parameter"
    )
    rejected(
        sch,
        SetScope(sch.get_buffer("u"), "attic"),
        SetScope.Requires.SCOPE_EXISTS,
        "no memory scope 'attic'",
    )


def test_buffers_of_tensorized_blocks_keep_their_layout():
    sch = FMA_AVX512.scheduled()
    packed = sch.get_buffer("B_global")
    turned = "lambda a, b, c: (b, a, c)"
    rejected(
        sch,
        map_step(sch, packed, turned),
        TransformLayout.Requires.NOT_TENSORIZED,
        "accesses 'B_global' in block 'mm_o'",
    )


LOADED_INDICES = """
@prim_func
def f(at: Buffer[(8,), i32], x: Buffer[(8,), i32], y: Out[(8,), i32], z: Out[(8,), i32]):
    t = alloc((8,), i32)
    for i in range(8):
        with block("first"):
            vi = spatial(i)
            t[vi] = at[vi]
    for j in range(8):
        with block("second"):
            vj = spatial(j)
            with checked(t[vj], 0, 8) as p:
                y[vj] = x[p]
    for k in range(8):
        with checked(t[7 - k], 0, 8) as q:
            with block("third"):
                vk, vq = spatial(k), spatial(8, q)
                z[vk] = x[vq]
"""


def test_the_layout_of_a_buffer_of_indices_changes_everywhere():
    sch = schedule(LOADED_INDICES)
    sch.transform_layout("t", "lambda i: (i % 4, i // 4)")
    assert violations(sch.module) == ()
    at, x = np.array([3, 1, 4, 1, 5, 7, 2, 6], np.int32), np.arange(8, dtype=np.int32) * 10
    y, z = build(sch)(at, x)
    np.testing.assert_array_equal(y, x[at])
    np.testing.assert_array_equal(z, x[at[::-1]])


PACKED_ROWS = """
@prim_func
def f(x: Buffer[(4, 32), i4], y: Out[(4, 32), i4]):
    t = alloc((4, 32), i4, scope="shared")
    for i in range(4):
        for j in range(32):
            with block("t"):
                vi, vj = spatial(i), spatial(j)
                t[vi, vj] = x[vi, vj]
    for k in range(4):
        for l in range(32):
            with block("y"):
                vk, vl = spatial(k), spatial(l)
                y[vk, vl] = t[vk, vl]
"""


def test_packed_elements_that_threads_write_keep_their_bytes():
    sch = schedule(PACKED_ROWS)
    swap = map_step(sch, sch.get_buffer("t"), "lambda i, j: (j, i)")
    assert not check(sch.state, swap)
    sch.parallel("i")
    rejected(sch, swap, TransformLayout.Requires.WHOLE_BYTES, "a byte contains 2 elements of 't'")


def test_the_elements_of_a_scan_stay_at_constant_steps():
    sch = Schedule(
        parse(
            """
@prim_func
def f(x: Buffer[(8, 12), i32], y: Out[(8, 12), i32]):
    t = alloc((8, 12), i32)
    for i in range(8):
        for j in range(12):
            with block("scan"):
                vi, vj = spatial(i), ordered(j)
                t[vi, vj] = scan(add, x[vi, vj])
    for a in range(8):
        for b in range(12):
            with block("y"):
                va, vb = spatial(a), spatial(b)
                y[va, vb] = t[va, vb] + 1
"""
        )
    )
    step = prepared(sch.state, TransformLayout("t", "lambda i, j: (j // 3, j % 3, i)"))
    rejected(sch, step, CommonRequirement.SCANS, "stores one element of 't' for each value of 'vj'")
