"""Footprints: the elements of iterations, by enumeration."""

import time

import pytest

from tilewright.ir.analysis.footprints import (
    Footprint,
    footprints,
    further_footprints,
    may_overlap,
)
from tilewright.ir.analysis.tree import tree_of
from tilewright.ir.script import parse

PROGRAM = """
n = symbols("n", multiple_of=4, lower=1)

@prim_func
def f(at: Buffer[(n,), i32], x: Buffer[(n,), f32], y: Out[(n,), f32], z: InOut[(8,), f32]):
    fact(n >= 8)
    for i in range(n):
        with block("y"):
            vi = spatial(i)
            y[vi] = where(vi < 1, x[vi], x[vi - 1])
    for j in range(n):
        with block("z"):
            vj = spatial(j)
            with checked(at[vj], 0, 8) as p:
                z[p] += x[vj]
"""


def found(name):
    tree = tree_of(parse(PROGRAM).prims[0])
    (loop,) = [x for x in tree.loops.values() if x.var.name == name]
    return [
        (next(iter(sizes.values())), {i: named(f) for i, f in each.items()})
        for sizes, each in footprints(tree, loop)
    ]


def named(footprint):
    written = {b.name: sorted(at) for b, at in footprint.written.items()}
    read = {b.name: sorted(at) for b, at in footprint.read.items()}
    return written, read, {b.name for b in footprint.unknown}


def test_the_sizes_fulfill_ranges_and_facts():
    assert {size for size, _ in found("i")} == {8, 20}


def test_only_the_selected_value_is_read():
    _, first = found("i")[0]
    assert first[0] == ({"y": [(0,)]}, {"x": [(0,)]}, set())
    assert first[7] == ({"y": [(7,)]}, {"x": [(6,)]}, set())


def test_elements_at_loaded_indices_are_not_known():
    _, first = found("j")[0]
    assert first[1] == ({}, {"at": [(1,)], "x": [(1,)]}, {"z"})


GUARDED = """
@prim_func
def f(y: Out[(4096,), f32]):
    for i in range(3):
        for j in range(20):
            for k in range({inner}):
                with block("y"):
                    vi, vj, vk = spatial(i), spatial(j), spatial(k)
                    guard({guard})
                    y[vi * 1000 + vj * 30 + vk] = 1.0
"""


def written_by(text, iteration):
    tree = tree_of(parse(text, check=False).prims[0])
    loop = next(x for x in tree.loops.values() if x.var.name == "i")
    (_, each), *_ = footprints(tree, loop)
    (written,) = each[iteration].written.values() if each[iteration].written else (set(),)
    return written


@pytest.mark.parametrize(
    "guard",
    [
        "j * 7 + k * 3 < 25",
        "k * 2 - j * 3 > 4",
        "j * 3 - k >= 17",
        "9 - j * 4 + i > -30 and k < j",
        "5 < j and j < 9 and i * 3 + k * 2 - j < 4",
        "j % 4 + k * 2 < 5",
        "j // 3 - k // 2 > 3",
        "j + k < 0",
        "j * k < 12",
        "j < 7 or k < 2",
    ],
)
def test_guards_shorten_loops_to_the_iterations_that_run(guard):
    runs = eval(f"lambda i, j, k: {guard}")
    for i in range(3):
        expected = {(i * 1000 + j * 30 + k,) for j in range(20) for k in range(9) if runs(i, j, k)}
        assert written_by(GUARDED.format(inner=9, guard=guard), i) == expected


def test_iterations_that_guards_exclude_do_not_count():
    guard = "k * 4 > 3999996 and k * 4 + j < 4000001"
    assert written_by(GUARDED.format(inner=1048576, guard=guard), 1) == {(1000 + 1000000,)}


def test_a_condition_on_a_reduction_does_not_exclude_its_init():
    text = """
n = symbols("n", lower=0)

@prim_func
def f(x: Buffer[(n,), f32], y: Out[(3, 8), f32]):
    for i in range(3):
        for j in range(8):
            for k in range(4):
                with block("y"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    guard(j * 4 + k < n)
                    with init():
                        y[vi, vj] = 0.0
                    y[vi, vj] += x[vj * 4 + vk]
"""
    tree = tree_of(parse(text).prims[0])
    loop = next(x for x in tree.loops.values() if x.var.name == "i")
    found = list(footprints(tree, loop))
    assert {size for sizes, _ in found for size in sizes.values()} == {5, 3, 8, 17, 0}
    for sizes, each in found:
        for i, part in each.items():
            (written,) = part.written.values()
            assert written == {(i, j) for j in range(8)}, (sizes, i)


EMPTY = """
n = symbols("n", lower=0, upper=0)

@prim_func
def f(x: Buffer[(n,), f32], y: Out[(9, 1000000), f32]):
    for i in range(9):
        for k in range(n):
            for j in range(1000000):
                with block("y"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    guard(j % 2 > 1)
                    with init():
                        y[vi, vj] = 0.0
                    y[vi, vj] += x[vk]
"""

DISTANT = """
n = symbols("n", lower=0)

@prim_func
def f(y: InOut[(n + 16777216,), f32]):
    for i in range(n):
        with block("y"):
            vi = ordered(i)
            y[vi + 16777216] = y[vi]
"""


@pytest.mark.parametrize(
    ("text", "enumerated"), [(EMPTY, footprints), (DISTANT, further_footprints)]
)
def test_the_work_is_limited(text, enumerated):
    """Neither an init that never runs nor the number of iterations makes an enumeration long."""
    tree = tree_of(parse(text, check=False).prims[0])
    loop = next(x for x in tree.loops.values() if x.var.name == "i")
    start = time.process_time()
    found = list(enumerated(tree, loop))
    assert found
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([(None, 3)], [(None, 4)], False),
        ([(None, 3)], [(5, 3)], True),
        ([(None, 3)], [(5, None)], True),
        ([(None, None)], [(5, 4)], True),
        ([(1, None), (2, None)], [(3, None), (None, 7)], True),
        ([(1, None), (2, None)], [(3, None), (4, None)], False),
        ([], [(None, None)], False),
        ([(None, k) for k in range(300)], [(None, k) for k in range(299, 600)], True),
        ([(None, k) for k in range(3000)], [(None, k) for k in range(3000, 6000)], False),
    ],
)
def test_elements_overlap_if_their_known_indices_agree(one, other, expected):
    buffer = parse(PROGRAM).prims[0].buffer_params[0]
    first, second = (Footprint(unknown={buffer: set(part)}) for part in (one, other))
    assert may_overlap(first, second, buffer) is expected
    assert may_overlap(second, first, buffer) is expected
