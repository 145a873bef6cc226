"""Temporaries whose contents do not outlive one execution of a statement."""

from __future__ import annotations

import importlib

import pytest

from tilewright.ir.analysis import tree_of, written_before_read
from tilewright.ir.analysis.facts_at import within_loop
from tilewright.ir.loop.nodes import For
from tilewright.ir.loop.visit import all_buffers, walk
from tilewright.ir.script import parse

from tests.cpu_time import relative_ms, timed

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


def indented(lines: str) -> str:
    return lines.replace("\n", "\n    ").rstrip()


def digits(index: str, condition: str, *, outer: int = 4, inner: int = 16) -> str:
    """Return a write of ``t`` in two loops whose variables are the digits of a number."""
    block = write("vj", f"j = spatial(64, {index})", condition)
    return loop("p", str(outer), loop("q", str(inner), block))


def read60() -> str:
    """Return a read of the first 60 elements."""
    return read("vk", "k < 60")


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
    "digits of a number below a limit": digits("p * 16 + q", "p * 16 + q < 60") + read60(),
    "digits of the number of a vector": loop(
        "p",
        "2",
        loop(
            "q",
            "8",
            loop("r", "4", write("vj", "j = spatial(64, p * 32 + q * 4 + r)", "p * 8 + q < 15")),
        ),
    )
    + read60(),
    "digits in the index": digits("(p * 16 + q) // 6 * 6 + (p * 16 + q) % 6", "p * 16 + q < 60")
    + read60(),
    "digits from the end": digits("59 - (p * 16 + q)", "p * 16 + q < 60") + read60(),
    "limit in a branch": loop(
        "p",
        "4",
        loop(
            "q",
            "16",
            "if p * 16 + q < 60:\n    " + indented(write("vj", "j = spatial(64, p * 16 + q)")),
        ),
    )
    + read60(),
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
    "digits of a number below a smaller limit": digits("p * 16 + q", "p * 16 + q < 59") + read60(),
    "digits above a limit": digits("p * 16 + q", "p * 16 + q < 60 and p * 16 + q > 0") + read60(),
    "limit that depends on the iteration": digits("p * 16 + q", "p * 16 + q < 60 - i") + read60(),
    "limit of other digits": digits("p * 16 + q", "p * 8 + q < 60 // 2") + read60(),
    "digits with gaps": digits("p * 16 + q", "p * 16 + q < 60", inner=15) + read60(),
    "digits that overlap": digits("p * 15 + q", "p * 16 + q < 60") + read60(),
    "too few digits": digits("p * 16 + q", "p * 16 + q < 60", outer=3) + read60(),
    "index with fewer values": digits("(p * 16 + q) % 59", "p * 16 + q < 60") + read60(),
    "digits of two numbers": digits("p * 16 + q", "p * 16 + q < 60 and q < 15") + read60(),
    "read between two digits": loop(
        "p",
        "4",
        loop("q", "16", write("vj", "j = spatial(64, p * 16 + q)", "p * 16 + q < 60")) + read60(),
    ),
}


@pytest.mark.parametrize("name", COVERED)
def test_reads_of_elements_written_before(name: str) -> None:
    assert private(COVERED[name])


@pytest.mark.parametrize("condition", ["p * 16 + q < 60", "p * 16 + q < 59"])
def test_elements_that_threads_copy_together_under_a_limit(condition: str) -> None:
    """The guard of the read limits the thread, not the threads that copied."""
    copied = loop("p", "4", loop("q", "16", write("vj", "j = spatial(64, p * 16 + q)", condition)))
    used = (
        "for k in range(16):\n"
        '    with block("r"):\n'
        "        vi, vk = spatial(n, i), spatial(16, k)\n"
        "        guard(k < 6)\n"
        "        y[vi, vk] = t[vk + 54]\n"
    )
    assert private(copied + used, collective=("q",)) == (condition == "p * 16 + q < 60")


def test_the_condition_of_a_read_does_not_limit_the_threads_that_write() -> None:
    """The thread reads under ``q < 2``; the limit of its neighbors remains unproved."""
    text = (
        "for q in range(16):\n"
        '    with block("w"):\n'
        "        vq = spatial(64, q)\n"
        "        guard(q * q < 5)\n"
        "        t[vq] = 1.0\n"
        '    with block("r"):\n'
        "        vi, vk = spatial(n, i), spatial(16, q)\n"
        "        guard(q < 2)\n"
        "        y[vi, vk] = t[vk + 8]\n"
    )
    assert not private(text, collective=("q",))


@pytest.mark.parametrize("name", EXPOSED)
def test_reads_of_elements_that_may_not_be_written(name: str) -> None:
    assert not private(EXPOSED[name])


def recurrence(index: str, condition: str, bindings: str, guard: str = "", at: str = "vj") -> str:
    """Return a block that reads the temporary it writes."""
    guards = f"    guard({guard})\n" if guard else ""
    return (
        f'with block("s"):\n    vj = ordered({bindings})\n{guards}'
        f"    t[{at}] = where(condition({condition}), t[{index}], 0.0) + 1.0\n"
    )


@pytest.mark.parametrize(
    ("body", "private_here"),
    [
        (loop("j", "64", recurrence("vj - 1", "vj >= 1", "64, j")), True),
        (loop("j", "64", recurrence("vj - 3", "vj >= 3", "64, j")), True),
        (loop("j", "64", recurrence("64 - vj", "vj >= 1", "64, j", at="63 - vj")), True),
        (loop("j", "64", recurrence("vj - 1", "vj >= 1", "64, j"), "unrolled"), True),
        (loop("j", "n", recurrence("vj - 1", "vj >= 1", "64, j", "j < 64")), True),
        (loop("a", "8", loop("b", "8", recurrence("vj - 1", "vj >= 1", "64, a * 8 + b"))), True),
        (loop("a", "8", loop("b", "8", recurrence("vj - 8", "vj >= 8", "64, a * 8 + b"))), True),
        (loop("b", "8", loop("a", "8", recurrence("vj - 8", "vj >= 8", "64, a * 8 + b"))), True),
        (loop("b", "8", loop("a", "8", recurrence("vj - 1", "vj >= 1", "64, a * 8 + b"))), False),
        (loop("j", "64", recurrence("vj + 1", "vj < 63", "64, j")), False),
        (loop("j", "64", recurrence("vj - 1", "vj >= 1", "64, j", "j % 2 == 0")), False),
        (loop("j", "64", recurrence("vj - 1", "vj >= 1", "64, j", "j >= 3")), False),
        (loop("j", "64", recurrence("63 - vj", "vj >= 1", "64, j")), False),
        (loop("j", "63", recurrence("vj", "vj >= 0", "64, j", at="vj + 1")), False),
        (loop("j", "32", recurrence("vj - 1", "vj >= 1", "64, j", at="2 * vj")), False),
    ],
)
def test_a_recurrence_reads_elements_of_earlier_iterations(body, private_here):
    """Its first iteration reads nothing, and the others only elements of earlier iterations."""
    assert private(body + read("vk").replace("t[vk]", "1.0")) is private_here


def test_iterations_at_the_same_time_do_not_read_elements_of_others():
    body = recurrence("vj - 1", "vj >= 1", "64, j")
    assert private(loop("j", "64", body) + read("vk"))
    lines = (loop("j", "64", body, "parallel") + read("vk")).splitlines()
    text = PROGRAM.format(shape="(64,)", body="\n".join("        " + line for line in lines))
    function = parse(text, check=False).prim("f")
    tree = tree_of(function)
    inside = function.body.body
    assert not written_before_read(inside, function.buffers, tree.facts(inside))


@timed
def test_a_deep_nest_that_carries_a_recurrence_is_scanned_a_limited_number_of_times():
    """Each loop was scanned twice in each scan of the loop around it: 2**14 scans of the block."""
    depth = 14
    loops = [f"{'    ' * k}    for i{k} in range(2):" for k in range(depth)]
    index = " + ".join(f"i{k} * {2 ** (depth - 1 - k)}" for k in range(depth))
    size = 2**depth
    block = [
        'with block("t"):',
        f"    v = ordered({size}, {index})",
        "    t[v + 1] = t[v] + 1.0",
        "    y[v] = t[v + 1]",
    ]
    lines = ["@prim_func", f"def f(y: Out[({size},), f32]):", f"    t = alloc(({size + 1},), f32)"]
    lines += [*loops, *("    " * (depth + 1) + line for line in block)]
    func = parse("\n".join(lines) + "\n", check=False).prim("f")
    assert written_before_read(func.body, func.buffers, func.facts) == frozenset()
    spent = relative_ms(lambda: written_before_read(func.body, func.buffers, func.facts))
    assert spent < 300


def test_statements_without_the_examined_buffers_are_not_visited(monkeypatch):
    """A query about one temporary of a long function visits only the statements that use it."""
    lines = ["@prim_func", "def f(x: Buffer[(8,), f32], y: Out[(8,), f32]):"]
    lines += [f"    t{k} = alloc((8,), f32)" for k in range(20)]
    for k in range(20):
        source = f"t{k - 1}" if k else "x"
        lines += [f"    for i{k} in range(8):", f"        t{k}[i{k}] = {source}[i{k}] + 1.0"]
    lines += ["    for j in range(8):", "        y[j] = t19[j]"]
    func = parse("\n".join(lines), check=False).prim("f")
    loops = []
    module = importlib.import_module(written_before_read.__module__)

    def entered(facts, variable, extent):
        loops.append(variable.name)
        return within_loop(facts, variable, extent)

    monkeypatch.setattr(module, "within_loop", entered)
    temporary = next(b for b in all_buffers(func) if b.name == "t7")
    assert written_before_read(func.body, {temporary}, func.facts) == {temporary}
    assert loops == ["i7", "i8"]
