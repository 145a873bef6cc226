"""Accesses of different threads, compared with an enumeration of all threads and iterations."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings, strategies as st

from tilewright.ir.analysis.occurrences import occurrences
from tilewright.ir.analysis.thread_accesses import AccessKey, ThreadAccesses, reads_own_writes
from tilewright.ir.loop.nodes import For
from tilewright.ir.loop.visit import walk
from tilewright.ir.script import parse
from tilewright.ir.symbolic import Facts, evaluate

HEAD = """
n, m = symbols("n m", lower=0)

@prim_func
def f(at: Buffer[(n,), i32], x: Buffer[(n, m), f32], y: InOut[(n, m), f32], z: InOut[(n,), f32]):
"""
ROWS = """
    for t in thread(4, "threadIdx.x"):
        for i in range(ceildiv(n, 4)):
            if i * 4 + t < n:
                for j in range(m):
                    y[i * 4 + t, j] = {value}
"""
BLOCKED = ROWS.replace("i * 4 + t", "t * ceildiv(n, 4) + i")
ONCE = """
    for t in thread(4, "threadIdx.x"):
        for i in range(n):
            if t == 0:
                z[i] = {value}
"""


def kernel(body: str, **values: str):
    """Return a function without blocks."""
    return parse(HEAD + body.format(**values), check=False).prim("f")


def loops(func) -> dict[str, For]:
    return {s.var.name: s for s in walk(func.body) if isinstance(s, For)}


def disjoint(
    func, first: tuple[str, str, bool], second: tuple[str, str, bool], *ended: str
) -> bool:
    """Ask about the accesses in two loops, by the names of loop and buffer."""
    named = loops(func)
    keys = [AccessKey(named[loop].uid, buffer, writes) for loop, buffer, writes in (first, second)]
    return ThreadAccesses(func).are_disjoint(*keys, frozenset(named[e].var for e in ended))


@pytest.mark.parametrize("body", [ROWS, BLOCKED])
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("where(condition(j >= 1), y[{0}, j - 1], 0.0)", True),
        ("y[{0}, m - 1 - j]", True),
        ("where(condition({0} >= 1), y[{0} - 1, j], 0.0)", False),
        ("where(condition({0} < n - 1), y[n - 1 - ({0}), j], 0.0)", False),
    ],
)
def test_rows_of_threads(body, value, expected):
    """A thread reads its own row in any order, but not the row of another thread."""
    row = "i * 4 + t" if body == ROWS else "t * ceildiv(n, 4) + i"
    func = kernel(body, value=value.format(row))
    assert disjoint(func, ("j", "y", True), ("j", "y", False), "i", "j") is expected
    assert disjoint(func, ("j", "y", True), ("j", "y", True), "i", "j")


def test_two_nests_over_the_same_rows():
    """The loops of the nests differ, but their values are the same."""
    second = ROWS.split("\n", 2)[2].format(value="y[i * 4 + t, m - 1 - j] * 2.0")
    second = second.replace(" i ", " k ").replace("[i ", "[k ").replace("if i", "if k")
    func = kernel(
        ROWS + second.replace(" j ", " l ").replace("- j", "- l").replace(", j]", ", l]"),
        value="1.0",
    )
    assert disjoint(func, ("j", "y", True), ("l", "y", False), "i", "j", "k", "l")
    assert disjoint(func, ("l", "y", True), ("l", "y", False), "k", "l")


@pytest.mark.parametrize(
    ("value", "expected"),
    [("z[n - 1 - i] + 1.0", False), ("where(condition(t == 0), z[n - 1 - i], 0.0)", True)],
)
def test_one_thread_that_writes(value, expected):
    """Each thread reads beside the guarded store, unless the selection is of the same thread."""
    body = ONCE.replace("if t == 0:\n                z[i] = {value}", "z[i] = {value}")
    assert not disjoint(kernel(body, value="1.0"), ("i", "z", True), ("i", "z", True), "i")
    assert disjoint(kernel(ONCE, value="1.0"), ("i", "z", True), ("i", "z", True), "i")
    guarded = ONCE + "        for k in range(n):\n            y[k, t] = {other}\n"
    func = kernel(guarded, value="1.0", other=value.replace(" i]", " k]"))
    assert disjoint(func, ("i", "z", True), ("k", "z", False), "i", "k") is expected


def test_the_same_iteration_of_a_loop_around_both():
    """The diagonal ``i + t`` belongs to one thread within an iteration only."""
    func = kernel("""
    for t in thread(4, "threadIdx.x"):
        for i in range(n - 4):
            for k in range(m):
                z[i + t] = z[i + t] + 1.0
""")
    pair = ("k", "z", True), ("k", "z", False)
    assert disjoint(func, *pair, "k")
    assert not disjoint(func, *pair, "i", "k")


def test_an_unrolled_loop_has_no_common_iteration():
    func = kernel("""
    for t in thread(4, "threadIdx.x"):
        for i in unrolled(3):
            for k in range(m):
                z[i + t] = z[i + t] + 1.0
""")
    assert not disjoint(func, ("k", "z", True), ("k", "z", False), "k")


def test_integers_from_memory_differ_between_threads():
    func = kernel("""
    for t in thread(4, "threadIdx.x"):
        with checked(at[t], 0, n) as p:
            for i in range(4):
                z[p] = z[p] + 1.0
""")
    assert not disjoint(func, ("i", "z", True), ("i", "z", False))


def test_blocks_of_threads_are_not_compared():
    func = kernel("""
    for b in thread(n, "blockIdx.x"):
        for t in thread(4, "threadIdx.x"):
            for i in range(ceildiv(m, 4)):
                if t * ceildiv(m, 4) + i < m:
                    y[b, t * ceildiv(m, 4) + i] = y[b, t * ceildiv(m, 4) + i] + 1.0
""")
    assert disjoint(func, ("i", "y", True), ("i", "y", False), "i")


def test_opaque_blocks_and_packed_elements_are_unknown():
    func = kernel(ROWS, value="1.0")
    key = AccessKey(loops(func)["j"].uid, "y", True)
    assert ThreadAccesses(func).are_disjoint(key, key, frozenset())
    assert not ThreadAccesses(func, {key.source}).are_disjoint(key, key, frozenset())
    other = key._replace(buffer="x")
    assert not ThreadAccesses(func).are_disjoint(other, other, frozenset())
    packed = parse(
        """
@prim_func
def f(y: InOut[(8,), i4]):
    for t in thread(4, "threadIdx.x"):
        for i in range(2):
            y[t * 2 + i] = 1
""",
        check=False,
    ).prim("f")
    key = AccessKey(loops(packed)["i"].uid, "y", True)
    assert not ThreadAccesses(packed).are_disjoint(key, key, frozenset())


TERMS = ("a", "t", "i", "j", "k", "u", "2 * a", "4 * t", "8 * i", "-j", "i // 2", "j % 2", "1", "3")
GUARDS = ("t == 0", "a == 1", "i >= 1", "t < 2", "j < t", "a + t < 3", "u == 0 * i")
INDICES = st.lists(st.sampled_from(TERMS), min_size=1, max_size=3).map(" + ".join)


@st.composite
def texts(draw):
    """Draw two nests that store to a buffer of two dimensions, with guards."""
    lines = ["    for a in thread(2, 'threadIdx.y'):", "        for t in thread(3, 'threadIdx.x'):"]
    for number in (1, 2):
        lines += [f"            for i{number} in range(3):"]
        lines += [
            f"                for j{number} in range({draw(st.sampled_from(['2', 't + 1']))}):"
        ]
        guards = draw(st.lists(st.sampled_from(GUARDS), max_size=2))
        depth = 20
        for guard in guards:
            lines.append(" " * depth + f"if {_named(guard, number)}:")
            depth += 4
        at = ", ".join(_named(draw(INDICES), number) for _ in range(2))
        lines.append(" " * depth + f"y[{at}] = 0.0")
    return "\n".join(lines) + "\n"


def _named(text: str, number: int) -> str:
    text = text.replace("k", f"(i{number} + j{number})").replace("u", "t")
    for name in "ij":
        text = " ".join(f"{w}{number}" if w.strip("-(") == name else w for w in text.split(" "))
    return text


def executed(access):
    """Yield the thread and the element of each execution of an access."""
    values: list[dict] = [{}]
    for binder in access.binders:
        values = [{**v, binder.var: k} for v in values for k in range(evaluate(binder.extent, v))]
    for known in values:
        if all(evaluate(guard, known) for guard in access.guards):
            thread = tuple(known[x.var] for x in access.loops if x.kind == "thread")
            yield thread, tuple(evaluate(i, known) for i in access.indices)


@settings(max_examples=40, deadline=None)
@given(texts())
def test_proofs_agree_with_an_enumeration(text):
    func = parse(HEAD + text, check=False).prim("f")
    assert isinstance(func.facts, Facts)
    found = list(occurrences(func.body))
    variables = frozenset(x.var for access in found for x in access.loops)
    known = ThreadAccesses(func)
    for first, second in itertools.combinations_with_replacement(found, 2):
        keys = [AccessKey(a.source, "y", True) for a in (first, second)]
        if known.are_disjoint(*keys, variables):
            elements: dict = {}
            for thread, element in executed(first):
                elements.setdefault(element, set()).add(thread)
            for thread, element in executed(second):
                assert elements.get(element, {thread}) == {thread}, text


OWN = """
    for t in thread(4, "threadIdx.x"):
        for u in thread(2, "threadIdx.y"):
            for i in range(n):
                z[{write}] = z[{read}] + 1.0
"""


@pytest.mark.parametrize(
    ("write", "read", "expected"),
    [
        ("t", "t", True),
        ("t", "i", False),
        ("t", "3 - t", False),
        ("t", "t + u", False),
        ("i", "i * 2", True),
        ("i * 4 + t", "i * 4 + t", True),
        ("t * 2 + u", "t * 2 + u", True),
        ("t * 2 + u", "t * 2", False),
    ],
)
def test_threads_that_read_their_own_elements(write, read, expected):
    """A store that does not depend on an axis is executed by all threads along it."""
    func = kernel(OWN, write=write, read=read)
    found = [a for a in occurrences(func.body) if a.buffer.name == "z"]
    (store,), (load,) = ([a for a in found if a.writes is kind] for kind in (True, False))
    assert reads_own_writes(store, load, func.facts) is expected
