"""Tests of transform_layout and set_scope."""

import pytest

from tilewright.schedules.apply import prepared
from tilewright.schedules.primitives.layout.set_scope import SetScope
from tilewright.schedules.primitives.layout.transform_layout import TransformLayout
from tilewright.schedules.problem import ParameterError

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
        "is not injective in b",
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
