from __future__ import annotations

import json

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.runtime.memory_plan import SymbolValueError, UnboundSymbolError
from tilewright.ir.module import UnknownFunctionError

from tests.static_html import check_static

NETWORK = """
n = symbols("n", lower=1)

@graph_func
def main(x: Tensor[(n, 16), f32], w: Tensor[(16, 24), f32], b: Tensor[(24,), f32]):
    fact(n % 2 == 0, "the caller pads")
    y: Tensor[(n, 24), f32] = matmul(x, w)
    z: Tensor[(n, 24), f32] = add(y, b)
    s: Tensor[(n, 24), f32] = softmax(z, axis=-1)
    return s
"""

SCALE = """
@prim_func
def scale(x: Buffer[(32,), f32], y: Out[(32,), f32]):
    for i in range(32):
        with block("y"):
            vi = spatial(i)
            y[vi] = x[vi] * 2.0
"""

GATHER = """
n = symbols("n", lower=1)

@prim_func(scheduled=True)
def gather(p: Buffer[(n,), i32], x: Buffer[(8,), f32], y: Out[(n,), f32]):
    for i in range(n):
        with checked(p[i], 0, 8) as q:
            y[i] = x[q]
"""


@pytest.fixture(scope="module")
def exe():
    return tw.compile(tw.parse(NETWORK))


def test_the_summary_has_one_row_per_kernel(exe):
    summary, checks = exe.explain().tables()
    rows = {row[0]: row for row in summary.rows}
    assert rows["matmul"][2] == "matmul"
    assert rows["matmul"][5] == "n * 768"
    assert rows["matmul"][6] == "n * 160 + 1536"
    fused = next(row for name, row in rows.items() if "softmax" in str(name))
    assert fused[2] == "add, softmax"
    assert "steps" in fused[3]
    assert ("n % 2 == 0", "the caller pads") in checks.rows
    assert ("n >= 1", "range of n") in [(c, o.replace("the symbol", "n")) for c, o in checks.rows]
    assert ("dimension 0 of w is 16", "annotation of w") in checks.rows


def test_versions_have_their_condition(exe):
    module = tw.parse(NETWORK.replace('fact(n % 2 == 0, "the caller pads")', ""))
    facts = tw.compile(module).explain()
    version = next(k for k in facts.kernels if k.guard)
    assert (version.version_of, version.guard) == ("matmul", "n == 1")
    details = dict(tw.compile(module).explain("matmul").tables()[0].rows)
    assert details["has version"] == f"{version.kernel}, runs if n == 1"
    of_version = dict(tw.compile(module).explain(version.kernel).tables()[0].rows)
    assert of_version["version of"] == "matmul, runs if n == 1"


def test_counts_at_sizes(exe):
    summary = exe.explain(shapes={"n": 100}).tables()[0]
    assert summary.columns[5] == "operations at n = 100"
    assert next(row for row in summary.rows if row[0] == "matmul")[5:] == (76800, 17536)
    with pytest.raises(SymbolValueError, match="got -1"):
        str(exe.explain(shapes={"n": -1}))


CHAIN = """
n = symbols("n", lower=1)

@graph_func
def main(x: Tensor[(n, 16), f32], w: Tensor[(16, 16), f32]):
    a: Tensor[(n, 16), f32] = matmul(x, w)
    b: Tensor[(n, 16), f32] = matmul(a, w)
    c: Tensor[(n, 16), f32] = matmul(b, w)
    return c
"""


def test_the_memory_at_sizes():
    exe = tw.compile(tw.parse(CHAIN))
    w = np.zeros((16, 16), np.float32)

    def row(n):
        return exe.explain(shapes={"n": n}).tables()[1].rows

    assert row(1000) == (("main", "128 kB", "128 kB", "exact: 128 kB"),)
    exe(np.zeros((1000, 16), np.float32), w)
    assert row(900) == (("main", "115.2 kB", "115.2 kB", "of larger sizes: 128 kB"),)
    growing = "new, with room for growth: 164.2 kB"
    assert row(1001) == (("main", "128.1 kB", "128.1 kB", growing),)
    (plan,) = exe.explain(shapes={"n": 900}).to_json()["memory"]
    assert (plan["arena"], plan["call"]["arena"]) == (115_200, 128_000)


def test_sizes_that_are_too_large_for_a_memory_plan():
    exe = tw.compile(tw.parse(CHAIN))
    (row,) = exe.explain(shapes={"n": 1 << 60}).tables()[1].rows
    assert "is not less than 2**62 bytes" in row[0]


def test_the_details_of_a_kernel(exe):
    (table,) = exe.explain("matmul").tables()
    rows = dict(table.rows)
    assert table.title == "kernel matmul of main"
    assert rows["computes"] == "y = matmul(x, w)"
    assert rows["checks at run time"] == "none"
    assert "split" in rows["steps"]


def test_indices_from_memory_and_debug():
    module = tw.parse(GATHER)
    rows = dict(tw.compile(module).explain("gather").tables()[0].rows)
    assert rows["index from memory"] == "p[vi] in [0, 8), checked"
    assert rows["checks at run time"] == "1 index from memory"
    assert rows["scheduled by"] == "the program"
    rows = dict(tw.compile(module, debug=True).explain("gather").tables()[0].rows)
    assert rows["checks at run time"] == "every access, because of debug=True"


def test_print_html_and_json(exe):
    found = exe.explain()
    assert "kernels of main" in str(found)
    assert repr(found) == f"<Explanation of {len(found.kernels)} kernels>"
    assert "matmul" in check_static(found._repr_html_())
    assert json.loads(json.dumps(found.to_json()))["kernels"][0]["function"] == "main"


def test_unknown_kernels(exe):
    with pytest.raises(UnknownFunctionError, match="no kernel 'matmull'"):
        exe.explain("matmull")


def test_the_facts_survive_the_cache(exe):
    again = tw.compile(tw.parse(NETWORK))
    assert again.cached
    assert str(again.explain()) == str(exe.explain())


def test_the_steps_of_a_schedule_are_shown():
    sch = tw.Schedule(tw.parse(SCALE))
    (i,) = sch.get_loops(sch.get_block("y"))
    sch.vectorize(sch.split(i, factors=(None, 8))[1])
    rows = dict(tw.compile(sch).explain("scale").tables()[0].rows)
    assert rows["scheduled by"] == "the program, 2 steps"
    assert rows["steps"] == "split, vectorize"
    rows = dict(tw.compile(sch.module).explain("scale").tables()[0].rows)
    assert rows["scheduled by"] == "the program"


TWO_FUNCTIONS = """
n, m = symbols("n m", lower=0)

@graph_func
def first(x: Tensor[(n, 4), f32]):
    y: Tensor[(n, 4), f32] = exp(x)
    return y

@graph_func
def second(x: Tensor[(m,), f32]):
    y: Tensor[(m,), f32] = tanh(x)
    return y
"""


def test_functions_may_have_different_symbols():
    exe = tw.compile(tw.parse(TWO_FUNCTIONS))
    rows = {row[0]: row for row in exe.explain(shapes={"n": 3, "m": 5}).tables()[0].rows}
    assert (rows["exp"][5], rows["exp"][6]) == (12, 96)
    assert (rows["tanh"][5], rows["tanh"][6]) == (5, 40)
    assert "operations at m = 5" in str(exe.explain("tanh", {"m": 5}))


@pytest.mark.parametrize(
    ("shapes", "error", "message"),
    [
        ({"n": 3}, UnboundSymbolError, "no value for symbol 'm'"),
        ({"n": 3, "m": 5, "k": 1}, SymbolValueError, "no symbol 'k'"),
        ([3], SymbolValueError, "expected a mapping of symbols to sizes, got list"),
        ({"n": -1, "m": 5}, SymbolValueError, "must be an integer of at least 0"),
    ],
)
def test_sizes_are_checked_before_anything_is_printed(shapes, error, message):
    exe = tw.compile(tw.parse(TWO_FUNCTIONS))
    with pytest.raises(error, match=message):
        exe.explain(shapes=shapes)


def test_sizes_in_place_of_a_kernel_are_rejected():
    with pytest.raises(UnknownFunctionError, match="explain\\(shapes="):
        tw.compile(tw.parse(TWO_FUNCTIONS)).explain({"n": 3})


def test_a_program_without_kernels_is_stated():
    exe = tw.compile(tw.parse("@graph_func\ndef main(x: Tensor[(3,), f32]):\n    return x"))
    assert str(exe.explain()).splitlines()[0] == "kernels of main"
    assert "there are no kernels" in str(exe.explain())


def test_emulated_kernels_have_no_llvm_ir():
    exe = tw.compile(tw.parse(TWO_FUNCTIONS), tw.Target("simt"))
    with pytest.raises(UnknownFunctionError, match=r"no LLVM IR of kernel 'exp'\n.*runs thread IR"):
        exe.llvm("exp")
