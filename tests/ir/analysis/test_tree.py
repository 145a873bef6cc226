"""Tests of the index of a loop-level function, which shares the parts of an earlier index."""

from tilewright.ir.analysis import tree_of
from tilewright.ir.loop.nodes import Alloc, Bind, Block, For, Let, PrimFunc, Stmt
from tilewright.ir.loop.visit import children, walk
from tilewright.ir.script import parse
from tilewright.schedules import Schedule

RAGGED = """
n = symbols("n", lower=1)

@prim_func
def f(
    starts: Buffer[(n + 1,), i64], x: Buffer[(n, 8), f32], y: Out[(n, 8), f32], z: InOut[(n,), f32]
):
    for i in range(n):
        with checked(starts[i], 0, n) as lo:
            for j in range(8):
                with block("a"):
                    vi, vl, vj = spatial(i), spatial(n, lo), spatial(j)
                    y[vi, vj] = x[vl, vj]
    for i2 in range(n):
        t = alloc((8,), f32)
        for j2 in range(8):
            with block("t"):
                vi2, vj2 = spatial(i2), spatial(j2)
                t[vj2] = x[vi2, vj2] * 2.0
        for j3 in range(8):
            with block("b"):
                vi3, vj3 = spatial(i2), reduce(j3)
                with init(): z[vi3] = 0.0
                s = t[vj3] + 1.0
                z[vi3] += s
    for i4 in range(n):
        with block("c"):
            vi4 = spatial(i4)
            z[vi4] = z[vi4] + 1.0
    for i5 in range(n):
        with block("d"):
            vi5 = spatial(i5)
            z[vi5] = z[vi5] * 2.0
"""


def names_of(statement: Stmt) -> set[str]:
    """Return the names that a statement and its descendants bind."""
    found: set[str] = set()
    for inner in walk(statement):
        match inner:
            case For(var=variable) | Let(var=variable):
                found.add(variable.name)
            case Block(name=name, iters=iters):
                found |= {name, *(v.var.name for v in iters)}
            case Alloc(buffer=buffer):
                found.add(buffer.name)
            case Bind(local=local):
                found.add(local.name)
            case _:
                pass
    return found


def equals_a_traversal(function: PrimFunc) -> None:
    """Compare the index of a function with a plain traversal."""
    tree, statements = tree_of(function), list(walk(function.body))
    assert list(tree.order) == statements
    assert list(tree.order.values()) == list(range(len(statements)))
    assert tree.parent == {child: s for s in statements for child in children(s)}
    assert list(tree.loops.values()) == [s for s in statements if isinstance(s, For)]
    assert list(tree.blocks.values()) == [s for s in statements if isinstance(s, Block)]
    assert list(tree.lets) == [s for s in statements if isinstance(s, Let)]
    scoped = [s.buffer for s in statements if isinstance(s, Alloc)]
    assert list(tree.allocs) == [*function.buffers, *scoped]
    assert names_of(function.body) <= tree.names()
    outermost = [b for b in tree.blocks.values() if tree.block_around(b) is None]
    assert list(tree.outermost_blocks()) == outermost
    for inner in statements:
        nearest = [b for b in tree.blocks_in(inner) if b is not inner]
        assert all(tree.contains(inner, b) for b in nearest)


def test_the_index_after_each_step_equals_a_traversal():
    sch = Schedule(parse(RAGGED))
    equals_a_traversal(sch.module.prim("f"))
    for step in (
        lambda: sch.split("j", (None, 4)),
        lambda: sch.cache_read("a", "x", "local"),
        lambda: sch.compute_inline("t"),
        lambda: sch.parallel("i4"),
        lambda: sch.blockize("i5"),
    ):
        step()
        equals_a_traversal(sch.module.prim("f"))
        equals_a_traversal(parse(str(sch.module)).prim("f"))


def test_lets_in_a_statement_are_outside_of_its_blocks():
    tree = tree_of(parse(RAGGED).prim("f"))
    (let,) = tree.lets
    loops = {x.var.name: x for x in tree.loops.values()}
    assert tree.lets_in(loops["i"]) == (let,)
    assert tree.lets_in(let) == (let,)
    assert tree.lets_in(loops["j"]) == ()
    assert tree.lets_in(loops["i2"]) == ()
    assert tree.outer_lets(let.load.buffer) == (let,)
