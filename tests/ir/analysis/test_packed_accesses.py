"""Concurrent writes to elements of one byte: rejected by name unless the bytes differ."""

from __future__ import annotations

import pytest

import tilewright as tw
from tilewright.ir.verify import IllFormedProgramError
from tilewright.schedules.primitives.loops.bind import Bind
from tilewright.schedules.primitives.loops.parallel import Parallel

ROWS = """
n = symbols("n", lower=0{multiple})
@prim_func
def f(x: Buffer[{shape}, {dtype}], y: Out[{shape}, {dtype}]):
    for i in {kind}:
        for j in range(n):
            with block("y"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, vj]
"""

FLAT = """
n = symbols("n", lower=0)
@prim_func
def f(x: Buffer[(n,), {dtype}], y: Out[(n,), {dtype}]):
    for i in range(n):
        with block("y"):
            vi = spatial(i)
            y[vi] = x[vi]
"""

REVERSED = """
@prim_func
def f(x: InOut[(64,), i4]):
    for i in range(32):
        with block("x"):
            vi = spatial(i)
            x[2 * vi + {write}] = x[2 * vi + {read}]
"""


def rows(
    multiple: int = 1, kind: str = "range(8)", dtype: str = "i4", shape: str = "(8, n)"
) -> str:
    text = "" if multiple == 1 else f", multiple_of={multiple}"
    return ROWS.format(multiple=text, kind=kind, dtype=dtype, shape=shape)


def rejected(text: str, step: str, *arguments: object) -> str:
    sch = tw.Schedule(tw.parse(text))
    with pytest.raises(tw.TilewrightError) as caught:
        getattr(sch, step)(*arguments)
    return str(caught.value)


def test_rows_that_may_share_a_byte_are_not_parallel() -> None:
    message = rejected(rows(), "parallel", "i")
    assert "may write elements of 'y' in block 'y' that share a byte" in message
    assert "a byte contains 2 elements of i4" in message
    assert Parallel.Requires.INDEPENDENT_ITERATIONS.name.lower() in message


@pytest.mark.parametrize(("dtype", "multiple"), [("i4", 2), ("u2", 4), ("f8_e4m3", 1), ("i4", 6)])
def test_rows_of_whole_bytes_are_parallel(dtype: str, multiple: int) -> None:
    tw.Schedule(tw.parse(rows(multiple, dtype=dtype))).parallel("i")
    tw.parse(rows(multiple, "parallel(8)", dtype))


def test_half_of_the_elements_of_a_byte_is_not_enough() -> None:
    assert "a byte contains 4 elements of u2" in rejected(rows(2, dtype="u2"), "parallel", "i")


def test_a_program_that_claims_independent_rows_is_rejected() -> None:
    with pytest.raises(IllFormedProgramError, match=r"loop 'i' is parallel, .* share a byte"):
        tw.parse(rows(1, "parallel(8)"))


def test_elements_of_one_byte_are_not_written_by_two_threads() -> None:
    text = FLAT.format(dtype="i4")
    assert "share a byte" in rejected(text, "parallel", "i")
    constant = text.replace('n = symbols("n", lower=0)', "").replace("(n", "(64")
    message = rejected(constant, "bind", "i", "threadIdx.x")
    assert "share a byte" in message
    assert Bind.Requires.INDEPENDENT_ITERATIONS.name.lower() in message


@pytest.mark.parametrize(("factor", "legal"), [(16, True), (15, False), (2, True), (1, False)])
def test_parts_of_whole_bytes_are_parallel(factor: int, *, legal: bool) -> None:
    sch = tw.Schedule(tw.parse(FLAT.format(dtype="i4")))
    outer, _ = sch.split("i", (None, factor))
    if legal:
        sch.parallel(outer)
        return
    with pytest.raises(tw.TilewrightError, match="share a byte"):
        sch.parallel(outer)


def test_lanes_of_a_vector_may_share_a_byte() -> None:
    sch = tw.Schedule(tw.parse(FLAT.format(dtype="u2")))
    _, inner = sch.split("i", (None, 6))
    sch.vectorize(inner)


def test_the_other_element_of_an_own_byte_may_be_read() -> None:
    tw.Schedule(tw.parse(REVERSED.format(write=1, read=0))).parallel("i")


def test_planes_of_whole_bytes_are_parallel() -> None:
    text = """
n = symbols("n", lower=0)
@prim_func
def f(x: Buffer[(n, 2, 3), i4], y: Out[(n, 2, 3), i4]):
    for i in range(n):
        for j in range(2):
            for k in range(3):
                with block("y"):
                    vi, vj, vk = spatial(i), spatial(j), spatial(k)
                    y[vi, vj, vk] = x[vi, vj, vk]
"""
    tw.Schedule(tw.parse(text)).parallel("i")
    assert "share a byte" in rejected(text, "parallel", "j")


def test_a_step_inside_of_a_parallel_loop_may_lose_the_proof_of_whole_bytes() -> None:
    """The iterations still write whole bytes, so the program is legal."""
    sch = tw.Schedule(tw.parse(FLAT.format(dtype="i4")))
    outer, inner = sch.split("i", (None, 2))
    sch.parallel(outer)
    sch.split(inner, (None, 32))
    tw.parse(str(sch))


def test_two_iterations_that_write_one_byte_are_reported() -> None:
    with pytest.raises(IllFormedProgramError, match=r"iteration 1 writes y\[.*iteration 0 writes"):
        tw.parse(rows(1, "parallel(8)"))
