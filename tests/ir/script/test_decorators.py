"""Functions in notebook cells, by decorator."""

import re
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.ir.script import SourceUnavailableError, module, parse, to_text
from tilewright.ir.script.vocabulary import *  # noqa: F403

n, k = symbols("n k", lower=1)  # noqa: F405
WIDTH = 16
half = tw.script.vocabulary.f16


@prim_func  # noqa: F405
def matmul(A: Buffer[(n, k), f32], B: Buffer[(k, WIDTH), half], C: Out[(n, WIDTH), f32]):  # noqa: F405
    """Multiply."""
    for i in parallel(n):  # noqa: F405
        for j in range(WIDTH):
            for r in range(k):
                with block("mm"):  # noqa: F405
                    vi, vj, vr = spatial(i), spatial(j), reduce(r)  # noqa: F405
                    with init():  # noqa: F405
                        C[vi, vj] = 0.0
                    C[vi, vj] += A[vi, vr] * f32(B[vr, vj])  # noqa: F405


def test_names_are_resolved_in_the_defining_scope() -> None:
    assert to_text(matmul) == (
        'n, k = symbols("n k", lower=1)\n\n'
        "@prim_func\n"
        "def matmul(A: Buffer[(n, k), f32], B: Buffer[(k, 16), f16], C: Out[(n, 16), f32]):\n"
        "    for i in parallel(n):\n"
        "        for j in range(16):\n"
        "            for r in range(k):\n"
        '                with block("mm"):\n'
        "                    vi, vj, vr = spatial(i), spatial(j), reduce(r)\n"
        "                    with init(): C[vi, vj] = 0.0\n"
        "                    C[vi, vj] += A[vi, vr] * f32(B[vr, vj])"
    )


def test_local_names_terms_options_and_prefixes() -> None:
    q = tw.script.symbols("q", lower=4, multiple_of=4)
    quarter = q // 4

    @tw.script.prim_func(target=Target("cpu", threads=2), note="x", width=WIDTH)  # noqa: F405
    def f(y: tw.script.vocabulary.Out[(quarter, q), f32]):  # noqa: F405
        for i in range(quarter):
            for j in range(q):
                y[i, j] = -inf  # noqa: F405

    assert to_text(f) == (
        'q = symbols("q", lower=4, multiple_of=4)\n\n'
        '@prim_func(target=Target("cpu", threads=2), note="x", width=16)\n'
        "def f(y: Out[(q // 4, q), f32]):\n"
        "    for i in range(q // 4):\n"
        "        for j in range(q):\n"
        '            with block("y"):\n'
        "                vi, vj = spatial(i), spatial(j)\n"
        "                y[vi, vj] = -inf"
    )


def test_a_store_outside_of_blocks_is_put_in_a_block() -> None:
    @prim_func  # noqa: F405
    def f(x: Buffer[(n,), f32], y: Out[(n,), f32]):  # noqa: F405
        for i in range(n):
            y[i] = x[i]

    assert to_text(f) == to_text(parse(to_text(f)))
    tw.compile(module(f))


def test_graph_functions_and_modules() -> None:
    @graph_func  # noqa: F405
    def main(x: Tensor[(n, 4), f32]):  # noqa: F405
        y = softmax(x, axis=-1)  # noqa: F405
        return y  # noqa: RET504

    whole = module(matmul, main, model="both")
    assert list(whole.functions) == ["matmul", "main"]
    assert "y: Tensor[(n, 4), f32] = softmax(x, axis=-1)" in to_text(whole)
    assert to_text(parse(to_text(whole))) == to_text(whole)


def test_functions_do_not_share_symbols() -> None:
    @prim_func  # noqa: F405
    def f(y: Out[(n,), f32]):  # noqa: F405
        for i in range(n):
            y[i] = 0.0

    @prim_func  # noqa: F405
    def g(y: Out[(n,), f32]):  # noqa: F405
        for i in range(n):
            y[i] = 0.0

    assert f.buffer_params[0].shape != g.buffer_params[0].shape


def test_errors_have_locations_in_the_file() -> None:
    with pytest.raises(tw.script.ParseError) as caught:

        @prim_func  # noqa: F405
        def bad(y: Out[(n,), f32]):  # noqa: F405
            for i in range(n):
                y[i] = z[i]  # noqa: F405

    lines = Path(__file__).read_text().splitlines()
    assert re.search(r"y\[i\] = z\[i\]", lines[caught.value.line - 1])
    assert caught.value.message == "no buffer 'z'; buffers are y"


def test_missing_source_raises_a_named_error() -> None:
    scope: dict[str, object] = {}
    exec("def f(): pass", scope)
    with pytest.raises(SourceUnavailableError, match="source of"):
        prim_func(scope["f"])  # noqa: F405
