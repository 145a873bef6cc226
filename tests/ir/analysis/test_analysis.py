"""Spans, digits, conflicts, pattern kinds, costs; spans and digits against enumeration."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings, strategies as st

from tilewright.ir.analysis import (
    PatternKind,
    Span,
    conflicts,
    consumers,
    covers,
    determined,
    flops,
    footprint,
    live_ranges,
    pattern_kind,
    peak_bytes,
    producers,
    span_of,
    tree_of,
    union,
    with_regions,
)
from tilewright.ir.script import parse
from tilewright.ir.symbolic import (
    Facts,
    as_expr,
    ceildiv,
    evaluate,
    is_proved,
    maximum,
    minimum,
    var,
)

from tests.schedules.helpers import CHAIN, MATMUL, SAME, SCAN


def tree(text):
    return tree_of(parse(text).prims[0])


# ---------------------------------------------------------------- spans

OUTER = var("o", lower=0, upper=20)
A, B = var("a", lower=0, upper=3), var("b", lower=0, upper=2)
INNER = {A: as_expr(4), B: as_expr(3)}


@st.composite
def indices(draw, depth=2):
    """Terms over an outer and two inner variables."""
    kind = draw(st.integers(0, 4)) if depth else 0
    if kind == 0:
        return draw(st.sampled_from([OUTER, A, B, as_expr(draw(st.integers(-3, 5)))]))
    if kind in (1, 2):
        scale = draw(st.integers(-3, 4))
        return draw(indices(depth - 1)) * scale + draw(indices(depth - 1))
    if kind == 3:
        divisor = draw(st.integers(1, 6))
        term = draw(indices(depth - 1))
        return term // divisor if draw(st.booleans()) else term % divisor
    return draw(st.sampled_from([minimum, maximum]))(
        draw(indices(depth - 1)), draw(indices(depth - 1))
    )


@settings(max_examples=200)
@given(indices())
def test_spans_hold_every_value_and_filled_ones_nothing_else(index):
    span = span_of(index, INNER, Facts())
    if span is None:
        return
    for outer in (0, 1, 7, 20):
        values = {
            evaluate(index, {OUTER: outer, A: a, B: b})
            for a, b in itertools.product(range(4), range(3))
        }
        start, stop = evaluate(span.start, {OUTER: outer}), evaluate(span.stop, {OUTER: outer})
        assert start <= min(values)
        assert max(values) < stop
        if span.filled:
            assert values == set(range(start, stop))


def test_a_tile_of_a_symbolic_loop_has_a_constant_extent():
    n = var("n", lower=1)
    i0, i1 = var("i0", lower=0), var("i1", lower=0, upper=13)
    facts = Facts().with_loop(i0, ceildiv(n, 14))
    span = span_of(i0 * 14 + i1, {i1: as_expr(14)}, facts)
    assert span == Span(i0 * 14, as_expr(14), filled=True)
    assert covers(span, Span(i0 * 14 + 2, as_expr(12)), facts)
    assert not covers(span, Span(i0 * 14 + 2, as_expr(13)), facts)


def test_union_of_neighbours():
    i = var("i", lower=0)
    joined = union([Span(i, as_expr(2)), Span(i + 1, as_expr(2))], Facts())
    assert joined == Span(i, as_expr(3), filled=True)
    assert union([Span(i, as_expr(2)), Span(i * 2, as_expr(2))], Facts()) is None


# ---------------------------------------------------------------- digits


@pytest.mark.parametrize(
    ("make", "known"),
    [
        (lambda i, j: (i, j), "ij"),
        (lambda i, _: (i,), "i"),
        (lambda i, j: (i * 4 + j,), "ij"),
        (lambda i, j: (i * 3 + j,), ""),
        (lambda i, j: (j * 8 + i,), "ij"),
        (lambda i, j: ((i * 4 + j) // 8, (i * 4 + j) % 8), "ij"),
        (lambda i, j: (i // 2, j), "j"),
        (lambda i, j: (i // 2, i % 2, j // 3), "i"),
        (lambda i, j: (7 - i, j + 5), "ij"),
        (lambda i, j: (i + j,), ""),
    ],
)
def test_which_variables_can_be_told_from_indices(make, known):
    i, j = var("i", lower=0, upper=7), var("j", lower=0, upper=3)
    found = determined(make(i, j), {i: as_expr(8), j: as_expr(4)}, Facts())
    assert {v.name for v in found} == set(known)


@settings(max_examples=200)
@given(indices(), indices())
def test_determined_variables_really_are(first, second):
    found = determined((first, second), INNER, Facts())
    for outer in (0, 7):
        seen: dict[tuple[int, ...], tuple[int, ...]] = {}
        for a, b in itertools.product(range(4), range(3)):
            env = {OUTER: outer, A: a, B: b}
            key = (evaluate(first, env), evaluate(second, env))
            value = tuple(env[v] for v in (A, B) if v in found)
            assert seen.setdefault(key, value) == value


# ---------------------------------------------------------------- dependences and data flow


def test_conflicts_name_block_and_buffer():
    found = tree(SAME)
    outer, inner = found.loops.values()
    assert list(conflicts(found, outer)) == []
    (conflict,) = conflicts(found, inner)
    assert (conflict.block.name, conflict.buffer.name) == ("last", "y")
    scan = tree(SCAN)
    assert [c.buffer.name for c in conflicts(scan, *scan.loops.values())] == ["y"]


def test_producers_and_consumers():
    found = tree(CHAIN)
    first, second, third = found.leaf_blocks()
    assert producers(found, second) == (first,)
    assert consumers(found, second) == (third,)


def test_regions_are_found_again():
    found = tree(MATMUL)
    (block,) = found.leaf_blocks()
    again = with_regions(block)
    assert [r.buffer.name for r in again.reads] == ["A", "B"]
    assert [r.buffer.name for r in again.writes] == ["C"]


# ---------------------------------------------------------------- pattern kinds

HEAD = 'n = symbols("n", lower=1)\n\n@prim_func\ndef f({params}):\n'


def kind(params, body):
    lines = "\n".join("    " + line for line in body.strip("\n").split("\n"))
    return pattern_kind(parse(HEAD.format(params=params) + lines).prims[0])


def test_matmul_is_out_fusable_and_sums_are_reductions():
    assert pattern_kind(parse(MATMUL).prims[0]) is PatternKind.OUT_FUSABLE
    assert (
        kind(
            "x: Buffer[(n, 8), f32], y: Out[(n,), f32]",
            """
for i in range(n):
    for k in range(8):
        with block("sum"):
            vi, vk = spatial(i), reduce(k)
            with init(): y[vi] = 0.0
            y[vi] += x[vi, vk] * x[vi, vk]
""",
        )
        is PatternKind.REDUCTION
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("x[vi, vj] + x[vi, vj]", PatternKind.ELEMENTWISE),
        ("x[vi, vj] + r[vj]", PatternKind.BROADCAST),
        ("x[vi, vj] + q[0, vj]", PatternKind.BROADCAST),
        ("s[vj, vi]", PatternKind.INJECTIVE),
        ("x[vi, 7 - vj]", PatternKind.INJECTIVE),
    ],
)
def test_maps(value, expected):
    params = (
        "x: Buffer[(n, 8), f32], r: Buffer[(8,), f32], q: Buffer[(1, 8), f32], "
        "s: Buffer[(8, n), f32], y: Out[(n, 8), f32]"
    )
    body = f"""
for i in range(n):
    for j in range(8):
        with block("map"):
            vi, vj = spatial(i), spatial(j)
            y[vi, vj] = {value}
"""
    assert kind(params, body) is expected


def test_ordered_and_in_place_are_opaque():
    assert pattern_kind(parse(SCAN).prims[0]) is PatternKind.OPAQUE
    assert pattern_kind(parse(CHAIN.replace("Out[", "InOut[")).prims[0]) is PatternKind.OPAQUE
    assert pattern_kind(parse(CHAIN).prims[0]) is PatternKind.ELEMENTWISE


# ---------------------------------------------------------------- costs


def test_costs_of_a_matmul():
    function = parse(MATMUL).prims[0]
    M = next(iter(tree_of(function).symbols()))
    assert evaluate(flops(function), {M: 3}) == 2 * 3 * 16 * 24
    assert evaluate(footprint(function), {M: 3}) == 4 * (3 * 16 + 16 * 24 + 3 * 24)
    assert peak_bytes(function) == 0


def test_live_ranges_of_a_chain():
    function = parse(CHAIN).prims[0]
    (n,) = tree_of(function).symbols()
    named = {b.name: span for b, span in live_ranges(function).items()}
    assert named == {"t": (0, 1), "u": (1, 2)}
    assert evaluate(peak_bytes(function), {n: 10}) == 80


GATHER = """
n = symbols("n", lower=1)

@prim_func
def gather(ids: Buffer[(n,), i64], table: Buffer[(9, 4), f32], y: Out[(n, 4), f32]):
    for i in range(n):
        for j in range(4):
            with block("take"):
                vi, vj = spatial(i), spatial(j)
                with checked(ids[vi], 0, 9) as row:
                    y[vi, vj] = table[row, vj]
"""


def test_a_value_read_from_memory_is_in_its_range():
    found = tree(GATHER)
    (block,) = found.leaf_blocks()
    store = block.body.body
    row = block.body.var
    assert is_proved(row < 9, found.facts(store))
    assert not is_proved(row < 8, found.facts(store))
    (region,) = [r for r in with_regions(block).reads if r.buffer.name == "table"]
    assert [str(r.extent) for r in region.ranges] == ["9", "1"]
    assert pattern_kind(found.function) is PatternKind.INJECTIVE
