"""Conversion of arguments: symbols of named loops, and errors with examples."""

from __future__ import annotations

import pytest

from tilewright.ir.script import parse
from tilewright.schedules import Schedule
from tilewright.schedules.apply import prepared
from tilewright.schedules.primitives.loops.reorder import Reorder
from tilewright.schedules.primitives.loops.split import Split
from tilewright.schedules.problem import ParameterError

MATMUL = """
M, N, K = symbols("M N K", lower=1)

@prim_func
def matmul(A: Buffer[(M, K), f32], B: Buffer[(K, N), f32], C: Out[(M, N), f32]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                with block("mm"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): C[vi, vj] = 0.0
                    C[vi, vj] += A[vi, vk] * B[vk, vj]
"""


@pytest.fixture
def sch() -> Schedule:
    return Schedule(parse(MATMUL))


def test_a_term_may_name_the_symbols_of_a_loop_that_is_passed_by_name(sch: Schedule) -> None:
    sch.split("i", (None, "ceildiv(M, 4)"))
    assert "range(ceildiv(M, 4))" in str(sch)


def test_an_unknown_symbol_is_reported_with_the_symbols(sch: Schedule) -> None:
    with pytest.raises(ParameterError) as caught:
        sch.split("i", (None, "m"))
    error = caught.value
    assert error.message == "split: no symbol 'm'"
    assert error.where == "parameter 'factors' of split, loop 'i'"
    assert error.hint == (
        "did you mean 'M'? symbols of function 'matmul' are K, M, N; integers are legal too: "
        "factors=(None, 8)"
    )
    assert "1 | m\n      | ^" in str(error)


def test_the_part_of_a_term_is_underlined(sch: Schedule) -> None:
    with pytest.raises(ParameterError) as caught:
        sch.split(sch.get_loop("i"), (None, "M // 4 + q * 2"))
    assert "M // 4 + q * 2\n      |          ^\n" in str(caught.value)


VALUES = [
    (8, "invalid value 8 for parameter 'factors'"),
    ((None, 8.0), "invalid value 8.0 for parameter 'factors'"),
    ((None, "M > 4"), "invalid value 'M > 4' for parameter 'factors'"),
    ((None, [1] * 10_000), "invalid value "),
]


@pytest.mark.parametrize(("factors", "message"), VALUES, ids=["number", "float", "bool", "long"])
def test_a_value_of_the_wrong_type(sch: Schedule, factors: object, message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        sch.split("i", factors)
    assert message in caught.value.message
    assert len(caught.value.message) < 200
    assert caught.value.hint.endswith("for example factors=(None, 8)")


def test_a_handle_of_the_wrong_kind_is_named(sch: Schedule) -> None:
    with pytest.raises(ParameterError) as caught:
        sch.unroll(sch.get_block("mm"))
    assert caught.value.message == "unroll: invalid value block 'mm' for parameter 'loop'"
    assert caught.value.hint == "expected loop, for example loop=sch.get_loop(name)"


@pytest.mark.parametrize("size", [2**64, -(10**5000)], ids=["bits", "digits"])
def test_a_large_integer(sch: Schedule, size: int) -> None:
    with pytest.raises(ParameterError, match=r"split: an integer of [0-9]+ bits"):
        sch.split("i", factors=(None, size))


MAPS = [
    (lambda i, j: (i / 2, j), "'i / 2' is not an integer term"),
    (lambda i, j: (i.rows, j), "raised AttributeError"),
    (lambda i, j: ("a", j), "'a' is not an index"),
    ("i, j: j, i", "is not a valid lambda"),
    ("i + j", "is not a lambda"),
    ("lambda i, j: (i + q,)", "no symbol 'q'"),
    ("(" * 300 + "lambda i: i" + ")" * 300, "lambda"),
    (len, "raised "),
]


@pytest.mark.parametrize(("index_map", "message"), MAPS, ids=[m[1] for m in MAPS])
def test_an_invalid_index_map(sch: Schedule, index_map: object, message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        sch.cache_read("mm", "B", "global", index_map)
    assert message in caught.value.message
    assert caught.value.where.startswith("parameter 'index_map' of cache_read")
    assert caught.value.hint


def test_values_of_their_types_are_kept():
    """A step whose values have the types of its fields is returned unchanged."""
    sch = Schedule(parse(MATMUL))
    i, j, _ = sch.get_loops(sch.get_block("mm"))
    step = Split(i, (None, 8))
    assert prepared(sch.state, step) is step
    assert prepared(sch.state, Reorder((j, i))).loops == (j, i)
    listed = prepared(sch.state, Split(i, [None, 8]))
    assert listed.factors == (None, 8)
    with pytest.raises(ParameterError, match="an integer of 101 bits"):
        sch.split(i, factors=(None, 1 << 100))
