"""Tests of compute_inline and reverse_compute_inline."""

import numpy as np
import pytest

from tilewright.codegen import compile as build
from tilewright.ir.verify import violations
from tilewright.schedules import CommonRequirement
from tilewright.schedules.primitives.placement.compute_at import ComputeAt
from tilewright.schedules.primitives.placement.compute_inline import ComputeInline
from tilewright.schedules.primitives.placement.reverse_compute_inline import ReverseComputeInline

from tests.schedules.helpers import CHAIN, MATMUL, rejected, schedule

TRANSPOSED = """
@prim_func
def transposed(x: Buffer[(4, 8), i32], y: Out[(8, 4), i32]):
    t = alloc((8, 4), i32)
    for i in range(8):
        for j in range(4):
            with block("turn"):
                vi, vj = spatial(i), spatial(j)
                t[vi, vj] = x[vj, vi] + vi
    for a in range(8):
        for b in range(4):
            with block("double"):
                va, vb = spatial(a), spatial(b)
                y[va, vb] = t[va, vb] * 2
"""

PART = """
@prim_func
def part(x: Buffer[(8,), i32], y: Out[(4,), i32]):
    t = alloc((8,), i32)
    for i in range(4):
        with block("first"):
            vi = spatial(4, i)
            t[vi] = x[vi]
    for j in range(4):
        with block("second"):
            vj = spatial(j)
            y[vj] = t[vj]
"""

OVERWRITTEN = """
@prim_func
def overwritten(x: InOut[(8,), i32], y: Out[(8,), i32]):
    t = alloc((8,), i32)
    for i in range(8):
        with block("first"):
            vi = spatial(i)
            t[vi] = x[vi]
    for k in range(8):
        with block("clear"):
            vk = spatial(k)
            x[vk] = 0
    for j in range(8):
        with block("second"):
            vj = spatial(j)
            y[vj] = t[vj] + x[vj]
"""


def test_compute_inline(golden):
    sch = schedule(CHAIN)
    first, t = sch.get_block("first"), sch.get_buffer("t")
    sch.compute_inline(first)
    sch.compute_inline("second")
    golden("compute_inline.txt", str(sch))
    assert sch.state.follow(first) == ()
    assert sch.state.follow(t) == ()
    assert sch.verify().required().compared[0].exact


def test_reverse_compute_inline(golden):
    sch = schedule(TRANSPOSED)
    sch.reverse_compute_inline("double")
    golden("reverse_compute_inline.txt", str(sch))
    assert sch.verify().required().compared[0].exact


def test_requirements_of_compute_inline():
    sch = schedule(MATMUL)
    rejected(
        sch,
        ComputeInline(sch.get_block("mm")),
        ComputeInline.Requires.SPATIAL,
        "not spatial (kinds: spatial, reduce)",
    )
    chain = schedule(CHAIN)
    rejected(
        chain,
        ComputeInline(chain.get_block("third")),
        ComputeInline.Requires.WRITES_TEMPORARY,
        "is a parameter",
    )
    text = CHAIN.replace("u[vj] = t[vj] * x[vj]", "u[vj] = x[vj]")
    unread = schedule(text)
    rejected(
        unread,
        ComputeInline(unread.get_block("first")),
        ComputeInline.Requires.CONSUMERS_FOLLOW,
        "no block reads 't'",
    )
    part = schedule(PART)
    rejected(
        part,
        ComputeInline(part.get_block("first")),
        ComputeInline.Requires.COVERS_BUFFER,
        "has extent 4, but it indexes a dimension of 't' of size 8",
    )
    old = schedule(OVERWRITTEN)
    rejected(
        old,
        ComputeInline(old.get_block("first")),
        ComputeInline.Requires.KEEPS_DEPENDENCES,
        "'clear' writes input 'x' of the producer",
    )


def test_requirements_of_reverse_compute_inline():
    sch = schedule(MATMUL)
    rejected(
        sch,
        ReverseComputeInline(sch.get_block("mm")),
        ReverseComputeInline.Requires.SPATIAL,
        "not spatial",
    )
    copy = sch.cache_write("mm", "C", "local")
    rejected(
        sch,
        ReverseComputeInline(copy),
        ReverseComputeInline.Requires.PLAIN_PRODUCER,
        "'mm' does not store exactly one element",
    )
    chain = schedule(CHAIN)
    rejected(
        chain,
        ReverseComputeInline(chain.get_block("first")),
        ReverseComputeInline.Requires.ONE_PRODUCER,
        "does not read a temporary",
    )
    text = CHAIN.replace("y[vk] = u[vk] - x[vk]", "y[vk] = u[n - 1 - vk]")
    turned = schedule(text)
    rejected(
        turned,
        ReverseComputeInline(turned.get_block("third")),
        ReverseComputeInline.Requires.PLAIN_READ,
        "expected its iteration variables",
    )
    text = TRANSPOSED.replace("y[va, vb] = t[va, vb]", "y[va, vb] = t[va, va]").replace(
        "t = alloc((8, 4)", "t = alloc((8, 8)"
    )
    diagonal = schedule(text)
    rejected(
        diagonal,
        ReverseComputeInline(diagonal.get_block("double")),
        ReverseComputeInline.Requires.PLAIN_READ,
        "(va, va)",
    )
    part = schedule(PART)
    rejected(
        part,
        ReverseComputeInline(part.get_block("second")),
        ReverseComputeInline.Requires.PLAIN_READ,
        "has extent 4",
    )
    old = schedule(OVERWRITTEN)
    rejected(
        old,
        ReverseComputeInline(old.get_block("second")),
        ReverseComputeInline.Requires.KEEPS_DEPENDENCES,
        "violate a dependence on 'x'",
    )
    text = TRANSPOSED.replace("y: Out[(8, 4), i32]", "y: Out[(8,), i32]").replace(
        "y[va, vb]", "y[va]"
    )
    last = schedule(text)
    rejected(
        last,
        ReverseComputeInline(last.get_block("double")),
        ReverseComputeInline.Requires.INJECTIVE_WRITES,
        "are not injective in vb",
    )


COPIES = """
@prim_func
def copies(x: Buffer[(8,), i32], y: InOut[(8,), i32]):
    t = alloc((8,), i32)
    for i in range(8):
        with block("first"):
            vi = spatial(i)
            t[vi] = x[vi]
    for j in range(8):
        with block("second"):
            vj = spatial(j)
            y[vj] = t[vj]
"""


def test_producers_that_cannot_be_inlined():
    def inlined(old, new):
        sch = schedule(COPIES.replace(old, new))
        return sch, ComputeInline(sch.get_block("first"))

    sch, step = inlined("t[vi] = x[vi]", "t[vi] = x[vi]\n            t[vi] = 1")
    rejected(sch, step, ComputeInline.Requires.ONE_STORE, "exactly one store")
    sch, step = inlined("y[vj] = t[vj]", "t[vj] = t[vj]")
    rejected(sch, step, ComputeInline.Requires.ONLY_WRITER, "other writers: second")
    sch, step = inlined("t[vi] = x[vi]", "t[vi] += x[vi]")
    rejected(sch, step, ComputeInline.Requires.IGNORES_OLD_CONTENTS, "updates 't' in place")
    sch, step = inlined("t[vi] =", "guard(i < 5)\n            t[vi] =")
    rejected(sch, step, ComputeInline.Requires.WRITES_ALL_READ, "'second' may read other elements")


def test_consumers_that_cannot_be_inlined():
    def inlined(old, new):
        sch = schedule(COPIES.replace(old, new))
        return sch, ReverseComputeInline(sch.get_block("second"))

    sch, step = inlined("y[vj] = t[vj]", "y[vj] = t[vj]\n            y[vj] = 1")
    rejected(sch, step, ReverseComputeInline.Requires.ONE_STORE, "exactly one store")
    sch, step = inlined("y[vj] = t[vj]", "t[vj] = t[vj]")
    rejected(sch, step, ReverseComputeInline.Requires.ONLY_WRITER, "other writers: first")
    sch, step = inlined("y[vj] = t[vj]", "y[vj] += t[vj]")
    rejected(sch, step, ReverseComputeInline.Requires.IGNORES_OLD_CONTENTS, "updates 'y' in place")
    sch, step = inlined("t[vi] =", "guard(i < 5)\n            t[vi] =")
    rejected(sch, step, ReverseComputeInline.Requires.SAME_ITERATIONS, "may run other iterations")


@pytest.mark.parametrize("store", ["t[vi] += x[vi]", "t[vi] = x[vi]\n            t[vi] = 1"])
def test_a_producer_with_two_stores_or_an_update_is_not_plain(store):
    sch = schedule(COPIES.replace("t[vi] = x[vi]", store))
    rejected(
        sch,
        ReverseComputeInline(sch.get_block("second")),
        ReverseComputeInline.Requires.PLAIN_PRODUCER,
        "does not store exactly one element of 't'",
    )


ROWS = """
n = symbols("n", lower=0)

@prim_func
def rows(x: Buffer[(n, 8), i32], y: Out[(n, 8), i32]):
    for i in range(n):
        t = alloc((8,), i32)
        for j in range(8):
            with block("first"):
                vi, vj = spatial(i), spatial(j)
                t[vj] = x[vi, vj] * 2
        for k in range(8):
            with block("second"):
                {iters}
                {store}
"""


def rows(store="y[vi, vk] = t[7 - vk] + t[vk] * t[vk]", iters="vi, vk = spatial(i), spatial(k)"):
    return schedule(ROWS.format(store=store, iters=iters))


@pytest.mark.parametrize("factors", [None, (None, 3), (3, None)])
def test_a_temporary_of_each_iteration_is_inlined(factors: tuple[int | None, ...] | None) -> None:
    """The row of the temporary is that of the consumer."""
    sch = rows()
    if factors is not None:
        sch.split("i", factors=factors)
    sch.compute_inline("first")
    assert "alloc" not in str(sch)
    assert "x[vi, -vk + 7] * 2" in str(sch)
    assert sch.verify().ok


def test_temporaries_of_nested_loops_are_inlined():
    text = ROWS.replace("        t = alloc", "        u = alloc((8,), i32)\n        t = alloc")
    text = text.replace("= x[vi, vj] * 2", "= x[vi, vj] * 2\n                u[vj] = x[vi, vj]")
    text = text.format(store="y[vi, vk] = t[vk] + u[vk]", iters="vi, vk = spatial(i), spatial(k)")
    sch = schedule(text)
    sch.compute_inline("first")
    assert "y[vi, vk] = x[vi, vk] * 2 + x[vi, vk]" in str(sch)
    assert sch.verify().ok


def test_a_consumer_that_does_not_determine_the_iteration():
    for iters, store in (
        ("vk = spatial(k)", "y[0, vk] = t[vk]"),
        ("vi, vk = reduce(i), spatial(k)", "y[0, vk] += t[vk]"),
    ):
        sch = schedule(ROWS.format(store=store, iters=iters).replace("Out[", "InOut["))
        rejected(
            sch,
            ComputeInline(sch.get_block("first")),
            ComputeInline.Requires.DETERMINED_ITERATIONS,
            "computes elements for 'vi' = i, which the iteration variables of block 'second' do",
        )


def test_a_variable_that_varies_while_the_buffer_is_allocated_is_an_index():
    text = ROWS.format(store="y[vi, vk] = t[vk]", iters="vi, vk = spatial(i), spatial(k)")
    alloc = "        t = alloc((8,), i32)\n"
    text = text.replace(alloc, "").replace("    for i in", "    t = alloc((8,), i32)\n    for i in")
    sch = schedule(text)
    rejected(
        sch,
        ComputeInline(sch.get_block("first")),
        ComputeInline.Requires.COVERS_BUFFER,
        "are not its spatial iteration variables, each once",
    )


@pytest.mark.parametrize("row", ["i", "k"])
def test_the_iterations_of_a_temporary_that_are_not_computed(row: str) -> None:
    text = ROWS.format(
        store="y[vi, vk] = t[vk]",
        iters=f"vi, vk = spatial(i), spatial(k)\n                guard({row} + i < 6)",
    )
    sch = schedule(text.replace("t[vj] =", "guard(i + j < 6)\n                t[vj] =", 1))
    step = ComputeInline(sch.get_block("first"))
    if row == "k":
        sch.apply(step)
        assert sch.verify().ok
    else:
        rejected(sch, step, ComputeInline.Requires.WRITES_ALL_READ, "may read other elements")


LAST = """
n = symbols("n", lower=0)

@prim_func
def last(x: Buffer[(n,), i32], y: Out[(n,), i32]):
    t = alloc((n + 1,), i32)
    for i in range(1):
        with block("first"):
            vi = spatial(i)
            t[{write}] = x[0]
    for j in range(n):
        with block("second"):
            vj = spatial(j)
            y[{out}] = t[{read}] + x[vj]
"""


def test_a_symbol_is_not_an_iteration_variable():
    """The only index is a symbol, which looks like an iteration variable."""
    sch = schedule(LAST.format(write="n", out="vj", read="n"))
    step = ComputeInline(sch.get_block("first"))
    rejected(sch, step, ComputeInline.Requires.COVERS_BUFFER, "the write indices (n)")
    step = ReverseComputeInline(sch.get_block("second"))
    rejected(sch, step, ReverseComputeInline.Requires.PLAIN_PRODUCER)
    sch.compute_at("first", "j")
    assert sch.verify().ok


LOADED_INDEX = """
@prim_func
def f(at: Buffer[(8,), i32], x: Buffer[(8,), i32], y: Out[(8,), i32]):
    t = alloc((8,), i64)
    for i in range(8):
        with block("first"):
            vi = spatial(i)
            t[vi] = i64(at[vi]){change}
    for j in range(8):
        with block("second"):
            vj = spatial(j)
            with checked(t[vj], 0, 8) as p:
                y[vj] = x[p]
"""
OUTER_INDEX = """
@prim_func
def f(at: Buffer[(8,), i32], x: Buffer[(8,), i32], y: Out[(8,), i32]):
    t = alloc((8,), i32)
    for i in range(8):
        with block("first"):
            vi = spatial(i)
            t[vi] = at[vi]
    for j in range(8):
        with checked(t[j], 0, 8) as p:
            with block("second"):
                vj, vp = spatial(j), spatial(8, p)
                y[vj] = x[vp] + t[vj]
"""
AT, VALUES = np.array([3, 1, 4, 1, 5, 7, 2, 6], np.int32), np.arange(8, dtype=np.int32) * 10


def test_an_index_is_loaded_from_the_input_of_the_inlined_block():
    sch = schedule(LOADED_INDEX.format(change=""))
    sch.compute_inline("first")
    assert "checked(at[vj], 0, 8)" in str(sch)
    assert violations(sch.module) == ()
    np.testing.assert_array_equal(build(sch)(AT, VALUES), VALUES[AT])


def test_an_index_that_the_producer_computes_is_not_inlined():
    for text, message in (
        (LOADED_INDEX.format(change=" + 0"), "'first' computes its elements"),
        (OUTER_INDEX, "the integer 'p' is loaded outside of blocks"),
    ):
        sch = schedule(text)
        rejected(
            sch,
            ComputeInline(sch.get_block("first")),
            ComputeInline.Requires.INDEX_IS_LOAD,
            message,
        )


def test_a_block_does_not_move_past_an_integer_that_is_loaded_from_its_output():
    sch = schedule(OUTER_INDEX)
    step = ComputeAt(sch.get_block("first"), sch.get_loop("j"))
    rejected(sch, step, ComputeAt.Requires.KEEPS_DEPENDENCES, "from which the integer 'p'")


LEAVES = """
n = symbols("n", lower=0)

@prim_func
def f(s: Buffer[(n,), i32], y: Out[(n,), i32]):
    t = alloc((n,), i32)
    for e in {kind}(n):
        with block("a"):
            ve = spatial(e)
            t[ve] = s[ve] + 1
    for i in range(n):
        u = alloc(({shape},), i32)
        with block("b"):
            vi = spatial(i)
            u[{at}] = t[vi] * 2
        with block("c"):
            vi = spatial(i)
            y[vi] = s[vi]
"""


@pytest.mark.parametrize("kind", ["range", "parallel"])
def test_a_temporary_that_no_block_reads_is_allocated_around_the_producer(kind: str) -> None:
    sch = schedule(LEAVES.format(kind=kind, shape="n", at="vi"))
    sch.reverse_compute_inline("b")
    assert "u = alloc((n,), i32)\n    for e" in str(sch)
    assert not violations(sch.module)
    sch.verify()


def test_a_temporary_of_an_iteration_does_not_leave_its_loop() -> None:
    """Its shape depends on the loop; or iterations of the producer would write one element."""
    sch = schedule(LEAVES.format(kind="range", shape="i + 1", at="vi"))
    where = "'u' is allocated in each iteration of 'i'"
    rejected(sch, ReverseComputeInline(sch.get_block("b")), CommonRequirement.ALLOCATED, where)
    sch = schedule(LEAVES.format(kind="parallel", shape="1", at="0"))
    requirement = ReverseComputeInline.Requires.INJECTIVE_WRITES
    rejected(sch, ReverseComputeInline(sch.get_block("b")), requirement, "not injective in vi")


def test_a_temporary_whose_uses_move_into_a_loop_is_allocated_around_it() -> None:
    sch = schedule("""
n = symbols("n", lower=0)

@prim_func
def f(s: Buffer[(n,), i32], y: Out[(n,), i32]):
    for e in range(n):
        t = alloc((n,), i32)
        with block("a"):
            ve = spatial(e)
            t[ve] = s[ve]
        u = alloc((n,), i32)
        with block("b"):
            ve = spatial(e)
            u[ve] = t[ve] * 2
    for i in range(n):
        with block("c"):
            vi = spatial(i)
            y[vi] = 1
""")
    sch.reverse_compute_inline("b")
    assert "for e in range(n):\n        u = alloc((n,), i32)\n        with block" in str(sch)
    assert not violations(sch.module)
    sch.verify()
