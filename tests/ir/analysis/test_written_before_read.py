"""Temporaries whose contents do not outlive one execution of a statement."""

from __future__ import annotations

import pytest

from tilewright.ir.analysis import tree_of, written_before_read
from tilewright.ir.loop.nodes import For
from tilewright.ir.loop.visit import walk
from tilewright.ir.script import parse

PROGRAM = """
n = symbols("n", lower=0)
m = symbols("m", lower=1)

@prim_func
def f(n: Int, x: Buffer[(n * 4 + 64,), f32], c: Buffer[(64,), i32], y: Out[(n * 4 + 64, 64), f32]):
    t = alloc({shape}, f32)
    for i in range(n):
{body}
"""


def private(body: str, shape: str = "(64,)", collective: tuple[str, ...] = ()) -> bool:
    """Return whether the temporary ``t`` has no live value at the start of an iteration of i."""
    lines = "\n".join(" " * 8 + line for line in body.strip().splitlines())
    function = parse(PROGRAM.format(shape=shape, body=lines)).prim("f")
    tree = tree_of(function)
    loops = {s.var.name: s for s in walk(function.body) if isinstance(s, For)}
    body_of_i = loops["i"].body
    threads = {loops[name].var: loops[name].extent for name in collective}
    found = written_before_read(body_of_i, function.buffers, tree.facts(body_of_i), threads)
    return {b.name for b in found} == {"t"}


def write(index: str, bindings: str, *conditions: str, name: str = "w") -> str:
    guards = "".join(f"    guard({c})\n" for c in conditions)
    variables = ", ".join(f"v{part.split('=')[0].strip()}" for part in bindings.split(";"))
    values = ", ".join(part.split("=")[1].strip() for part in bindings.split(";"))
    return f'with block("{name}"):\n    {variables} = {values}\n{guards}    t[{index}] = 1.0\n'


def read(index: str, *conditions: str) -> str:
    guards = "".join(f"        guard({c})\n" for c in conditions)
    return (
        "for k in range(64):\n"
        '    with block("r"):\n'
        "        vi, vk = spatial(n, i), spatial(64, k)\n"
        f"{guards}        y[vi, vk] = t[{index}]\n"
    )


def loop(name: str, extent: str, body: str, kind: str = "range") -> str:
    inner = "\n".join("    " + line for line in body.splitlines())
    return f"for {name} in {kind}({extent}):\n{inner}\n"


FULL = loop("j", "64", write("vj", "j = spatial(64, j)"))

COVERED = {
    "whole": FULL + read("vk"),
    "reversed": FULL + read("63 - vk"),
    "two halves": loop("j", "32", write("vj", "j = spatial(64, j)"))
    + loop("h", "32", write("vh", "h = spatial(64, h + 32)", name="w2"))
    + read("vk"),
    "strided": loop("j", "32", write("vj", "j = spatial(64, j * 2)"))
    + read("vk", "k % 2 == 0").replace("t[vk]", "t[vk // 2 * 2]"),
    "fused": loop("j", "64", write("vj * 8 + vl", "j = spatial(8, j // 8); l = spatial(8, j % 8)"))
    + read("vk"),
    "guard outside of the buffer": loop("j", "80", write("vj", "j = spatial(64, j)", "j < 64"))
    + read("vk"),
    "both sides of a branch": "if i < 3:\n    "
    + write("v", " = spatial(64, 5)").replace("\n", "\n    ").rstrip()
    + "\nelse:\n    "
    + write("v", " = spatial(64, 5)", name="w2").replace("\n", "\n    ").rstrip()
    + "\n"
    + read("5"),
}

EXPOSED = {
    "written after": read("vk") + FULL,
    "one element missing": loop("j", "63", write("vj", "j = spatial(64, j)")) + read("vk"),
    "guard": loop("j", "64", write("vj", "j = spatial(64, j)", "i == 0")) + read("vk"),
    "branch": "if i < 3:\n" + "\n".join("    " + x for x in FULL.splitlines()) + "\n" + read("vk"),
    "loop that may be empty": loop("j", "n - 1", write("v", " = spatial(64, 5)")) + read("5"),
    "extent that depends on the iteration": loop("j", "i", write("vj", "j = spatial(64, j)"))
    + read("vk"),
    "strided with gaps": loop("j", "32", write("vj", "j = spatial(64, j * 2)")) + read("vk"),
    "diagonal": loop("j", "8", write("vj * 8 + vj", "j = spatial(8, j)")) + read("vk"),
    "index loaded from memory": "with checked(c[i % 64], 0, 64) as p:\n    "
    + write("v", " = spatial(64, p)").replace("\n", "\n    ").rstrip()
    + "\n"
    + read("5"),
}


@pytest.mark.parametrize("name", COVERED)
def test_reads_of_elements_written_before(name: str) -> None:
    assert private(COVERED[name])


@pytest.mark.parametrize("name", EXPOSED)
def test_reads_of_elements_that_may_not_be_written(name: str) -> None:
    assert not private(EXPOSED[name])
