"""Footprints: the elements of iterations, by enumeration."""

from tilewright.ir.analysis.footprints import footprints
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
