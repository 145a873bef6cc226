"""Calls of an exported library with outputs, workspaces, and limits of the caller, from C."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.export.destinations import check_suffixes
from tilewright.codegen.export.errors import ExportError
from tilewright.ir.dtype import f32
from tilewright.ir.module import Constant
from tilewright.ir.script import parse

from tests.codegen.export.test_shared import build

X, Y = "parameter 'x'", "parameter 'y'"
C = "function 'main', result 'c' (Tensor((n, 40), f32)): "
D = "function 'main', result 'd' (Tensor((n,), f32)): "
MAIN = "function 'main': "


TEXT = """
n = symbols("n", lower=0)
m = symbols("m", lower=1)

constant("weight", (24, 40), f32)
constant("square", (40, 40), f32)

@graph_func
def main(x: Tensor[(n, 24), f32], y: Tensor[(n, 40), f32]):
    a = matmul(x, const("weight"))
    p = softmax(a, axis=-1)
    q = matmul(p, const("square"))
    c = add(q, y)
    d = sum(c, axes=(-1,), keepdims=False)
    return c, d

@graph_func
def scores(x: Tensor[(n, m), f32]):
    r = permute_dims(x, axes=(1, 0))
    t = matmul(x, r)
    p = softmax(t, axis=-1)
    s = matmul(p, x)
    return s

@prim_func
def accumulate(x: Buffer[(n,), f32], total: InOut[(n,), f32]):
    for i in range(n):
        total[i] = total[i] + x[i]
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A model of which the functions need workspaces."""
    rng = np.random.default_rng(0)
    arrays = {
        "weight": rng.standard_normal((24, 40)).astype(np.float32),
        "square": rng.standard_normal((40, 40)).astype(np.float32),
    }
    constants = {k: Constant(v.shape, f32, lambda v=v: v) for k, v in arrays.items()}
    made = tw.export(parse(TEXT, constants=constants), tmp_path_factory.mktemp("e") / "small",
                     name="small")  # fmt: skip
    return made.directory


@pytest.fixture(scope="module")
def lines(exported, tmp_path_factory) -> dict[str, str]:
    """The output of the program by name."""
    program = build("into.c", exported, tmp_path_factory.mktemp("c") / "into", "-pthread")
    done = subprocess.run(
        [program, exported / "small.safetensors"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(line.split(": ", 1) for line in done.stdout.splitlines())


def test_outputs_workspaces_trim_and_limits(lines):
    assert lines["failures"] == "0", lines


def test_a_workspace_one_byte_too_short_gives_the_needed_bytes(lines):
    needed = int(lines["workspace"])
    text = f"23 -1 {MAIN}the call needs a workspace of {needed} bytes, got {needed - 1} bytes"
    assert lines["short"] == text
    assert lines["empty"] == text.replace(f"got {needed - 1}", "got 0")


@pytest.mark.parametrize(
    ("name", "code", "text"),
    [
        ("misaligned", 5, MAIN + "the address of the workspace is not a multiple of 64 bytes"),
        ("negative", 11, MAIN + "the size of the workspace is negative: -1"),
        ("no size", 15, MAIN + "the size of tw_call is 0 bytes; the library requires at least 24"),
        ("small size", 15, MAIN + "the size of tw_call is 16 bytes; the library requires at"),
        ("unknown field", 15, MAIN + "tw_call has non-zero fields beyond byte 24"),
        ("small needs", 15, MAIN + "the size of tw_needs is 8 bytes; the library requires at"),
        ("null needs", 14, MAIN + "the pointer that receives the needs is null"),
        ("output in input", 8, D + "the output shares memory with parameter 'x'"),
        ("output in output", 8, D + "the output shares memory with result 'c'"),
        ("output in workspace", 8, MAIN + "the workspace shares memory with result 'd'"),
        ("input in workspace", 8, MAIN + "the workspace shares memory with parameter 'y'"),
        ("shape", 3, D + "expected shape (64,), got shape (63,)"),
        ("rank", 2, D + "expected rank 1, got rank 2 (shape (64, 1))"),
        ("dtype", 1, D + "expected dtype f32, got i32"),
        ("strides", 4, D + "expected compact row-major elements, got strides (2,)"),
        ("alignment", 5, D + "expected an address that is a multiple of 4 bytes"),
        ("null data", 14, D + "the data pointer is null"),
        ("null output", 14, D + "the tensor is null"),
        ("negative limit", 11, "arena_limit is -1; it must be at least 0"),
    ],
)
def test_a_mistake_is_reported_by_name(lines, name, code, text):
    assert lines[name].startswith(f"{code} -1 {text}")


def test_errors_of_arguments_are_those_of_other_calls(lines):
    assert lines["argument"].startswith("3 0 function 'main', parameter 'x'")
    assert lines["inout"].startswith("8 1 function 'accumulate', parameter 'total'")
    assert "14 -1 function 'main': the workspace of" in lines["null workspace"]


def test_a_limit_that_no_call_fits_is_reported_with_its_numbers(lines):
    assert lines["limit"].startswith(f"22 -1 {MAIN}cannot allocate ")
    assert lines["limit"].endswith("bytes of workspace: 0 of 100 bytes are in use")


def test_a_function_with_the_symbol_of_another_one_is_refused():
    check_suffixes(["main", "put_into"])
    with pytest.raises(ExportError, match="the function 'into' of function 'main'"):
        check_suffixes(["main", "main_into"])


def test_a_result_of_which_the_shape_depends_on_data(tmp_path):
    text = """
n = symbols("n", lower=1)
k = symbols("k", lower=0)

@graph_func
def main(x: Tensor[(n,), f32]):
    found = nonzero(x)
    y = match_cast(found, Tensor[(k, 1), i64])
    return y
"""
    made = tw.export(parse(text), tmp_path / "small", name="small")
    program = build("unknown_shape.c", made.directory, tmp_path / "program")
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    wanted = "function 'main', result 'y' (Tensor((k, 1), i64))"
    assert done.stdout.splitlines() == [
        "needs: 0, shape (-1, 1), flags 3",
        "fits: 0, elements 0 2",
        f"does not fit: 3 {wanted}: expected shape (2, 1), got shape (3, 1)",
    ]
