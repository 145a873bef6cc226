"""Temporaries of GPU kernels in registers or shared memory, shrunk to the live part."""

from __future__ import annotations

import pytest

from tilewright.ir.kernel_errors import MemoryScopeError

from tests.codegen.gpu.running import agrees
from tests.codegen.lower.passes.running import (
    GPU,
    both,
    comparison,
    program,
    racing,
    rejected,
    same_results,
    text_of,
    unchanged,
)

NAME = "compact_thread_buffers"

REVERSE = """
n = symbols("n", lower=1)

@prim_func
def reverse(x: Buffer[(n, 64), i32], y: Out[(n, 64), i32]):
    s = alloc((n, 64), i32, scope="{scope}")
    for i in {loop}:
        for a in thread(64, "threadIdx.x"):
            with block("keep"{padding}):
                vi, va = spatial(i), spatial(a)
                s[vi, va] = x[vi, va]
        for b in thread(64, "threadIdx.x"):
            with block("turn"):
                wi, wb = spatial(i), spatial(b)
                y[wi, wb] = s[{index}]
"""


def reverse(scope="shared", index="wi, 63 - wb", loop='thread(n, "blockIdx.x")', padding=""):
    """Return a program in which each thread reads an element of a temporary."""
    return REVERSE.format(scope=scope, index=index, loop=loop, padding=padding)


def declared(text):
    """Return the declaration of the temporary after the pass."""
    lines = text_of(both(NAME, text, GPU)[1]).splitlines()
    return next(line.strip() for line in lines if " = alloc(" in line)


def test_golden(golden):
    golden(f"{NAME}.txt", comparison(NAME, reverse(), GPU))


@pytest.mark.parametrize("scope", ["shared", "local", "global"])
@pytest.mark.parametrize("n", [1, 3])
def test_results(scope, n):
    same_results(*both(NAME, reverse(scope, "wi, wb"), GPU), n=n)


@pytest.mark.parametrize(
    ("scope", "index", "expected"),
    [
        ("shared", "wi, wb", 'alloc((1, 64), i32, scope="shared")'),
        ("local", "wi, wb", 'alloc((1, 1), i32, scope="local")'),
        ("global", "wi, wb", 'alloc((1, 1), i32, scope="local")'),
    ],
)
def test_scopes(scope, index, expected):
    assert declared(reverse(scope, index)) == f"s = {expected}"


@pytest.mark.parametrize(("rows", "scope"), [(64, "shared"), (65, "global")])
def test_a_small_temporary_of_one_thread_block_is_in_shared_memory(rows, scope):
    """16 KiB at most."""
    text = reverse("global", f"{rows - 1} - wi, 63 - wb", f"range({rows})")
    text = text.replace("(n, 64)", f"({rows}, 64)").replace('n = symbols("n", lower=1)\n', "")
    text = text.replace("        for b", f"    for j in range({rows}):\n        for b")
    text = text.replace("wi, wb = spatial(i)", "wi, wb = spatial(j)")
    options = "" if scope == "global" else ', scope="shared"'
    assert declared(text) == f"s = alloc(({rows}, 64), i32{options})"


def test_a_temporary_that_each_thread_computes_as_a_whole_is_private():
    text = """
@prim_func
def pairs(x: Buffer[(4, 4), f32], y: Out[(4, 4), f32]):
    s = alloc((4,), f32)
    for a in thread(4, "threadIdx.x"):
        for b in range(4):
            for i in range(4):
                for j in range(4):
                    with block("fold"):
                        vi, vj = spatial(i), reduce(j)
                        with init(): s[vi] = 0.0
                        s[vi] += x[vi, vj]
            with block("use"):
                va, vb = spatial(a), spatial(b)
                y[va, vb] = s[va] + s[vb]
"""
    assert declared(text) == 's = alloc((4,), f32, scope="local")'
    same_results(*both(NAME, text, GPU))


UPDATED = """
@prim_func
def pairs(x: Buffer[(4, 4), f32], y: Out[(4, 4), f32]):
    s = alloc((4,), f32, scope="{scope}")
    for i in range(4):
        with block("start"):
            vi = spatial(i)
            s[vi] = 1.0
    for t in thread(4, "threadIdx.x"):
        with block("update"):
            vt = spatial(t)
            s[vt] = s[vt] + x[vt, 0]
    {loop}:
        for b in range(4):
            with block("use"):
                va, vb = spatial(a), spatial(b)
                y[va, vb] = s[{index}] + x[va, vb]
"""


@pytest.mark.parametrize("index", ["va", "vb"])
def test_registers_that_another_thread_updates(index):
    """Each thread starts all elements, but updates only one of them."""
    text = UPDATED.format(scope="local", loop="for a in range(4)", index=index)
    message = "but a thread reads an element that another thread wrote"
    rejected(NAME, text, GPU, MemoryScopeError, message, "set_scope('s', 'shared')")


def test_registers_that_the_same_thread_updates():
    loop = 'for a in thread(4, "threadIdx.x")'
    text = UPDATED.format(scope="local", loop=loop, index="va")
    same_results(*both(NAME, text, GPU))


@pytest.mark.parametrize("index", ["va", "vb"])
def test_an_implicit_temporary_that_another_thread_updates_is_shared(index):
    text = UPDATED.format(scope="global", loop="for a in range(4)", index=index)
    assert 'scope="shared"' in declared(text)
    same_results(*both(NAME, text, GPU))


def test_rows_are_padded():
    assert declared(reverse(padding=", storage_align=(0, 32, 8)")) == (
        's = alloc((1, 64), i32, scope="shared", strides=(72, 1))'
    )


def test_unused_temporaries_are_removed():
    text = reverse().replace("    for i in", "    t = alloc((n,), i32)\n    for i in", 1)
    assert "t = alloc" not in text_of(both(NAME, text, GPU)[1])


def test_a_function_without_temporaries():
    text = reverse().replace('    s = alloc((n, 64), i32, scope="shared")\n', "")
    text = text.replace("y: Out", "s: InOut[(n, 64), i32], y: Out").replace("63 - wb", "wb")
    assert unchanged(NAME, text, GPU)


@pytest.mark.parametrize("scope", ["local", "fragment"])
def test_registers_that_another_thread_reads(scope):
    message = f"'s' has scope '{scope}' (private to a thread)"
    rejected(NAME, reverse(scope), GPU, MemoryScopeError, message, "set_scope('s', 'shared')")


@pytest.mark.parametrize("scope", ["shared", "global"])
def test_memory_that_another_thread_block_reads(scope):
    text = reverse(scope, "n - 1 - wi, wb")
    message = "another thread block wrote (loops bound to blockIdx.x)"
    rejected(NAME, racing(text), GPU, MemoryScopeError, message)


def test_shared_memory_of_symbolic_size():
    text = reverse("shared", "n - 1 - wi, wb", "range(n)")
    rejected(NAME, text, GPU, MemoryScopeError, "'s' has n * 64 elements, which is not a constant")


ROWS = """
n, m = symbols("n m", lower=1)

@prim_func
def rows(x: Buffer[(n, m), i32], y: Out[(n, m), i32]):
    s = alloc((n, m), i32)
    for i in thread(n, "blockIdx.x"):
        for a in thread(8, "threadIdx.x"):
            for j in range(ceildiv(m, 8)):
                with block("keep"):
                    vi, vj = spatial(i), spatial(m, j * 8 + a)
                    guard(j * 8 + a < m)
                    s[vi, vj] = x[vi, vj]
        for b in thread(8, "threadIdx.x"):
            for k in range(ceildiv(m, 8)):
                with block("turn"):
                    wi, wk = spatial(i), spatial(m, k * 8 + b)
                    guard(k * 8 + b < m)
                    y[wi, wk] = s[{index}]
"""


def test_rows_of_symbolic_size_of_thread_blocks_are_in_global_memory():
    """Each thread block accesses only its own row, which one barrier completes."""
    text = ROWS.format(index="wi, m - 1 - wk")
    assert declared(text) == "s = alloc((n, m), i32)"
    for n, m in ((1, 1), (3, 7), (2, 17)):
        agrees(program(text), program(text), {"n": n, "m": m})


def test_rows_of_another_thread_block_in_global_memory():
    text = ROWS.format(index="n - 1 - wi, wk")
    message = "another thread block wrote"
    rejected(NAME, racing(text), GPU, MemoryScopeError, message)


PACKED = """
m = symbols("m", lower=0)

@prim_func
def rows(x: Buffer[(8, m), i2], y: Out[(8, m), i8]):
    for t in thread(8, "threadIdx.x"):
        with block("row"):
            vt = spatial(t)
            s = alloc({shape}, i2)
            for j in range(m):
                with block("copy"):
                    wt, wj = spatial(vt), spatial(j)
                    s[{written}] = x[wt, wj]
            for k in range(m):
                with block("turn"):
                    ut, uk = spatial(vt), spatial(k)
                    y[ut, uk] = i8(s[{read}])
"""


@pytest.mark.parametrize(
    ("shape", "written", "read"),
    [("(m,)", "wj", "m - 1 - uk"), ("(m, 8)", "wj, wt", "m - 1 - uk, ut")],
)
def test_threads_do_not_share_bytes_of_packed_temporaries(shape, written, read):
    """The copies of several threads in one byte would lose stores, as a store changes a byte."""
    text = PACKED.format(shape=shape, written=written, read=read)
    assert "8, 4), i2)" in declared(text)
    for m in (0, 1, 7, 33):
        agrees(program(text), program(text), {"m": m})


CLIPPED = """
@prim_func
def clipped(x: Buffer[(3, 4, 11), i32], y: Out[(3, 4, 11), i32]):
    for t in thread(3, "threadIdx.x"):
        s = alloc((4, 11), i32)
        for a in range(64):
            for j in range(4):
                with block("copy"):
                    vt, va, vj = spatial(t), spatial(11, a - 2), spatial(j)
                    guard(a >= 2 and a <= 12)
                    s[vj, va] = x[vt, vj, va]
        for b in range(11):
            for k in range(4):
                with block("use"):
                    wt, wb, wk = spatial(t), spatial(b), spatial(k)
                    y[wt, wk, wb] = s[wk, wb]
"""


def test_a_dimension_whose_written_interval_is_larger_is_unchanged():
    """The interval from -2 to 61 had the size of the dimension, but its own start."""
    assert declared(CLIPPED) == 's = alloc((4, 11), i32, scope="local")'
    agrees(program(CLIPPED), program(CLIPPED), {})
