"""Text of lowered graph functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import pytest

import tilewright as tw
from tilewright.codegen.lower.host.text import LAYOUTS, describe_site
from tilewright.codegen.manifest import CheckSite, FunctionSpec, ParamSpec, SiteKind

if TYPE_CHECKING:
    from collections.abc import Callable

PARAMS = (
    ParamSpec("x", "Tensor((n,), f32)", "tensor", "f32", 1, "in"),
    ParamSpec("y", "Tensor((n,), f32)", "tensor", "f32", 1, "inout"),
)
SPEC = FunctionSpec("f", PARAMS, (), (), (), (), (), (), (), 0, 0)

SITES = {
    "argument 'x': dtype, rank, alignment and device": CheckSite("argument", param=0),
    "dimension 1 of 'x' is n": CheckSite("dimension", "n", 0, 1),
    "element 2 of 'x' is n": CheckSite("dimension", "n", 0, -4),
    "'x' is n": CheckSite("dimension", "n", 0, -1),
    "stride 0 of 'y' is s": CheckSite("stride", "s", 1, 0),
    "'y' and 'x' do not overlap": CheckSite("alias", param=1, other=0),
    "divisor n is not 0": CheckSite("divisor", "n"),
    "size n * 4 is not negative": CheckSite("negative", "n * 4"),
    "size n * 4 does not overflow": CheckSite("overflow", "n * 4"),
    "memory for the workspace is available": CheckSite("memory"),
    "memory for result y is available": CheckSite("memory", "result y"),
    "the output has the shape of result y": CheckSite("output", "y", other=0),
    "no request to stop in loop y": CheckSite("stopped", "y"),
    "the grid of k: blockIdx.x is within the limit": CheckSite("grid", "k: blockIdx.x"),
    "launch of k succeeded": CheckSite("launch", "k"),
    "library of sgemm succeeded": CheckSite("library", "sgemm"),
    "device of copy succeeded": CheckSite("device", "copy"),
    "bound n >= 1": CheckSite("bound", "n >= 1"),
    "fact n <= 8": CheckSite("fact", "n <= 8"),
    "check n == m": CheckSite("check", "n == m"),
}

PROGRAM = """
n = symbols("n", lower=1)

constant("bias", (32,), f32)

@graph_func
def main(x: Tensor[(n, 32), f32], w: Tensor[(32, 32), f32]):
    a = matmul(x, w)
    b = add(a, const("bias"))
    c = softmax(b, axis=-1)
    d = exp(c)
    return d
"""


@pytest.mark.parametrize("text", SITES)
def test_checks_are_described(text: str) -> None:
    assert describe_site(SITES[text], SPEC) == text


def test_every_kind_of_check_is_described() -> None:
    assert {site.kind for site in SITES.values()} == set(get_args(SiteKind))


def test_records_have_layouts() -> None:
    assert LAYOUTS["views"].stride == 64
    assert [field.name for field in LAYOUTS["views"].fields.values()][:3] == [
        "data",
        "rank",
        "shape",
    ]


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_host_code_of_a_small_program(golden: Callable[[str, str], None], kind: str) -> None:
    cpu = tw.Target("cpu", arch="x86_64", features=("avx2",), threads=4)
    target = cpu if kind == "cpu" else tw.Target("cuda")
    lowered = tw.lower(tw.parse(PROGRAM), target, stop_after="host", kernel="main")
    golden(f"host_{kind}.txt", str(lowered))
