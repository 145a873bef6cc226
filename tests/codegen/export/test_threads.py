"""A runtime with threads of the user's own, never more than the library reserves memory for."""

from __future__ import annotations

import subprocess

import pytest

import tilewright as tw
from tilewright.codegen.export.link import run_linker

from tests.codegen.export.test_shared import PROGRAMS

TEXT = """
n, m, k = symbols("n m k", lower=1)

@graph_func
def main(a: Tensor[(n, k), f32], b: Tensor[(k, m), f32]):
    c = matmul(a, b)
    return c
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    made = tmp_path_factory.mktemp("threads") / "product"
    target = tw.Target("cpu", threads=4)
    directory = tw.export(
        tw.parse(TEXT), made, target=target, kind="static", name="product"
    ).directory
    run_linker(
        [
            "cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-pthread", f"-I{directory}",
            str(PROGRAMS / "threads.c"), str(directory / "libproduct.a"),
            "-o", str(directory / "program"),
        ]
    )  # fmt: skip
    return directory


def run(directory, threads: int) -> str:
    done = subprocess.run(
        [directory / "program", str(threads)],
        cwd=directory, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.strip()


@pytest.mark.parametrize(("threads", "how"), [(1, "serial"), (2, "parallel"), (4, "parallel")])
def test_results_do_not_depend_on_threads(directory, threads, how):
    assert run(directory, threads) == f"0 wrong, {how}"


def test_more_threads_than_memory_is_reserved_for(directory):
    wanted = "19 the runtime has 5 threads, this library was made for at most 4"
    assert run(directory, 5) == wanted
    assert "#define product_MOST_THREADS 4\n" in (directory / "product.h").read_text()
