"""Well-formedness rules of loop-level functions: one rejected program per rule."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from tilewright.errors import MalformedProgramError
from tilewright.ir.dtype import bool_, f32, i64
from tilewright.ir.graph.operators import lower_call
from tilewright.ir.loop import verify as loop_verify
from tilewright.ir.loop.nodes import (
    Alloc,
    Binary,
    Bind,
    Block,
    Buffer,
    Cast,
    Compare,
    For,
    Index,
    Let,
    Load,
    Number,
    PrimFunc,
    ScalarParam,
    Seq,
    Store,
    Unary,
    Where,
)
from tilewright.ir.loop.rules import DTYPES, RULES
from tilewright.ir.loop.visit import allocations, replace_statement, stores, walk
from tilewright.ir.symbolic import as_expr, var
from tilewright.ir.verify import IllFormedProgramError, verify, violations
from tilewright.schedules import Schedule

from tests.ir.graph.cases import LOOP_CASES
from tests.ir.graph.test_operators import Program
from tests.ir.script.texts import unverified as parse
from tests.strategies import prim_funcs

HEAD = 'n, m = symbols("n m", lower=1)\n@prim_func\n'
SIGNATURE = HEAD + "def f(x: Buffer[(n, m), f32], y: Out[(n,), f32], w: Buffer[(n,), i64]):\n"
LOOP = SIGNATURE + "    for i in range(n):\n"
BLOCK = LOOP + '        with block("b"):\n            vi = spatial(i)\n'


def prim(text: str) -> PrimFunc:
    return parse(text).prim("f")


def edit(func: PrimFunc, node: type, **changes: object) -> PrimFunc:
    """Change fields of the first statement of a class."""
    old = next(s for s in walk(func.body) if isinstance(s, node))
    return replace(func, body=replace_statement(func.body, old, replace(old, **changes)))


GOOD = prim(BLOCK + "            y[vi] = x[vi, 0]")
REDUCTION = prim(
    SIGNATURE
    + """\
    for i in range(n):
        for j in range(m):
            with block("b"):
                vi, vj = spatial(i), reduce(j)
                with init(): y[vi] = 0.0
                y[vi] += x[vi, vj]
"""
)
SCOPED = prim(
    LOOP
    + """\
        t = alloc((1,), f32)
        with block("t"):
            vi = spatial(i)
            t[0] = x[vi, 0]
        with block("y"):
            wi = spatial(i)
            y[wi] = t[0]
"""
)
BOUND = prim(BLOCK + "            t = x[vi, 0]\n            y[vi] = t * t")
NAMED = next(s for s in walk(BOUND.body) if isinstance(s, Bind))
ARGMAX = """\
@prim_func
def f(x: Buffer[(8, 4), f32], y: Out[(8,), f32], p: Out[(8,), i64]):
    for i in range(8):
        for k in range(4):
            with block("b"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi], p[vi] = -inf, 9223372036854775807
                y[vi], p[vi] = argmax(x[vi, vk], vk)
"""
OWN = next(allocations(SCOPED.body)).buffer
WRITE, READ = (s for s in walk(SCOPED.body) if isinstance(s, Block))
INNER = """\
            for j in range(1):
                with block("inner"):
                    v = spatial(n, vi + j)
                    y[v] = x[v, 0]
"""
NESTED = prim(BLOCK + INNER)
STARTED = prim(
    SIGNATURE
    + """\
    for i in range(n):
        with block("b"):
            vi = spatial(i)
            reads(x[vi, 0:4])
            for j in range(4):
                with block("inner"):
                    v, w = spatial(n, vi), reduce(4, j)
                    with init(): y[v] = 0.0
                    y[v] += x[v, w]
"""
)
X, Y, W = GOOD.buffer_params
I = GOOD.body.var
BLOCK_NODE = next(s for s in walk(GOOD.body) if isinstance(s, Block))
VI = BLOCK_NODE.iters[0].var
ZERO = Number(0.0, f32)
LOADED = Load(X, (VI, as_expr(0)))
INTEGER = Load(W, (VI,))
EXP_OF_INTEGER = Store(Y, (VI,), Cast(f32, Unary("exp", INTEGER)))
UNDECLARED = Buffer(99, "undeclared", (as_expr(4),), f32)


def with_body(statement: object) -> PrimFunc:
    """Replace the body of the block of the well-formed function."""
    return edit(GOOD, Block, body=statement)


def with_buffer(**changes: object) -> PrimFunc:
    """Add a temporary buffer."""
    return replace(GOOD, buffers=(replace(Buffer(50, "t", (as_expr(4),), f32), **changes),))


ONE_LOOP = For(60, var("j", lower=0), as_expr(4), Seq(()))

BROKEN: list[tuple[str, str, PrimFunc]] = [
    ("L1", "2 nodes have uid 1", with_buffer(uid=1)),
    ("L2", "2 buffers are named 'x'", with_buffer(name="x")),
    ("L2", "2 loops are named 'i'", edit(GOOD, Block, body=replace(ONE_LOOP, var=var("i")))),
    (
        "L2",
        "another variable named 'i' is in scope",
        edit(GOOD, Block, body=replace(ONE_LOOP, var=var("i"))),
    ),
    (
        "L2",
        "2 blocks are named 'b'",
        replace(GOOD, body=Seq((GOOD.body, replace(BLOCK_NODE, uid=70)))),
    ),
    ("L2", "2 symbols are named 'n'", replace(GOOD, params=(*GOOD.params, ScalarParam(var("n"))))),
    ("L3", "buffer name 'a b'", with_buffer(name="a b")),
    ("L3", "function name 'a.b'", replace(GOOD, name="a.b")),
    (
        "L4",
        "an index of 'y' uses variable 'q', which is not in scope",
        with_body(Store(Y, (var("q"),), ZERO)),
    ),
    (
        "L5",
        "an index of 'y' uses loop variable 'i' from outside the block",
        with_body(Store(Y, (I,), ZERO)),
    ),
    (
        "L6",
        "buffer 'undeclared' is not declared; buffers are w, x, y",
        with_body(Store(UNDECLARED, (VI,), ZERO)),
    ),
    ("L7", "expected 1 index into buffer 'y', got 2", with_body(Store(Y, (VI, VI), ZERO))),
    (
        "L7",
        "expected 2 ranges of buffer 'x', got 1",
        edit(
            GOOD, Block, reads=(replace(BLOCK_NODE.reads[0], ranges=BLOCK_NODE.writes[0].ranges),)
        ),
    ),
    (
        "L8",
        "a value of dtype i64 is stored in buffer 'y' of dtype f32",
        with_body(Store(Y, (VI,), Number(1, i64))),
    ),
    (
        "L8",
        "number True is not a value of dtype f32",
        with_body(Store(Y, (VI,), Number(True, f32))),
    ),
    (
        "L8",
        "add is not defined for dtypes f32 and i64",
        with_body(Store(Y, (VI,), Binary("add", LOADED, Number(1, i64)))),
    ),
    ("L8", "exp is not defined for dtype i64", with_body(EXP_OF_INTEGER)),
    (
        "L8",
        "shl is not defined for dtypes f32 and f32",
        with_body(Store(Y, (VI,), Binary("shl", LOADED, Number(2.0, f32)))),
    ),
    (
        "L8",
        "not is not defined for dtype f32",
        with_body(Store(Y, (VI,), Unary("not", LOADED))),
    ),
    (
        "L8",
        "and is not defined for dtypes f32 and f32",
        with_body(Store(Y, (VI,), Binary("and", LOADED, LOADED))),
    ),
    (
        "L8",
        "comparison lt is not defined for dtypes f32 and i64",
        with_body(Store(Y, (VI,), Where(Compare("lt", LOADED, INTEGER), ZERO, ZERO))),
    ),
    (
        "L8",
        "the condition of where must have dtype bool, got f32",
        with_body(Store(Y, (VI,), Where(LOADED, ZERO, ZERO))),
    ),
    (
        "L8",
        "the two values of where must have the same dtype, got f32 and i64",
        with_body(Store(Y, (VI,), Where(Number(True, bool_), LOADED, INTEGER))),
    ),
    (
        "L8",
        "an index is loaded from 'x' of dtype f32; expected an integer dtype",
        with_body(Let(var("v"), as_expr(0), as_expr(8), LOADED, "checked", Store(Y, (VI,), ZERO))),
    ),
    (
        "L9",
        "the block reads buffer 'x' but declares no region of it",
        edit(GOOD, Block, reads=()),
    ),
    (
        "L9",
        "the block writes y[vi] outside of its declared regions for",
        prim(BLOCK + "            writes(y[0:1])\n            y[vi] = 0.0"),
    ),
    (
        "L9",
        "the block reads x[vi, j] outside of its declared regions for",
        prim(
            BLOCK + "            reads(x[vi, 0:3])\n            for j in range(4): y[vi] = x[vi, j]"
        ),
    ),
    (
        "L10",
        "a write index of buffer 'y' contains reduction variable 'vj'",
        prim(
            BLOCK.replace("vi = spatial(i)", "vj = reduce(i)")
            + "            y[vj] = x[vj, 0] + y[vj]"
        ),
    ),
    (
        "L10",
        "buffer 'y' has no init and is not read by the update",
        prim(BLOCK.replace("vi = spatial(i)", "vj = reduce(i)") + "            y[0] = x[vj, 0]"),
    ),
    ("L10", "'y' is written by only one of init and body", edit(REDUCTION, Block, init=Seq(()))),
    (
        "L11",
        "no parameter defines symbol 'n': it must be a dimension by itself (n, not n + 1)",
        prim(HEAD + "def f(y: Out[(n + 1,), f32]): pass"),
    ),
    (
        "L12",
        "loop variable 'i' is bound twice",
        replace(GOOD, body=Seq((GOOD.body, replace(ONE_LOOP, var=I)))),
    ),
    (
        "L13",
        "number of strides: expected 2, one per dimension, got 1",
        prim(HEAD + "def f(x: Buffer((n, m), f32, strides=(1,))): pass"),
    ),
    (
        "L13",
        "number of layout inputs: expected 2, one per dimension, got 1",
        prim(HEAD + "def f(x: Buffer((n, m), f32, layout=lambda i: (i,))): pass"),
    ),
    ("L13", "alignment 3 is not a power of two", with_buffer(alignment=3)),
    (
        "L14",
        "parameter 'x' has access mode 'in' but is written",
        prim(LOOP + "        x[i, 0] = 0.0"),
    ),
    ("L15", "a serial loop cannot have a thread tag, got 'x'", edit(GOOD, For, thread="x")),
    ("L15", "a thread-bound loop requires a thread tag", edit(GOOD, For, kind="thread")),
    (
        "L16",
        "must be the name of an intrinsic, got 3",
        edit(NESTED, Block, annotations=(("intrinsic", 3),)),
    ),
    (
        "L16",
        "its body is not a perfect nest around a block with a single store",
        edit(GOOD, Block, annotations=(("intrinsic", "some.dot"),)),
    ),
    (
        "L16",
        "it contains an init",
        edit(STARTED, Block, annotations=(("intrinsic", "some.dot"),)),
    ),
    (
        "L19",
        "the store to 'y' is outside of blocks",
        replace(GOOD, body=replace(GOOD.body, body=Store(Y, (I,), ZERO))),
    ),
    (
        "L20",
        "its range is proved, but nothing that discharges the proof is named",
        prim(BLOCK + "            with proved(w[vi], 0, n) as v:\n                y[vi] = x[v, 0]"),
    ),
    (
        "L21",
        "the bindings of block 'b' are not independent",
        prim(
            LOOP
            + '        with block("b"):\n            vi, vj = spatial(i), spatial(2 * n, 2 * i)\n'
            + "            y[vi] = x[vj // 2, 0]"
        ),
    ),
    (
        "L17",
        "access y[n + vi]: index n + vi of axis 0 is not in [0, n) for all arguments",
        prim(BLOCK + "            y[vi + n] = 0.0"),
    ),
    (
        "L17",
        "divisor 0 != 0 in vi // 0 for all arguments",
        with_body(Store(Y, (VI,), Index(VI // 0, f32))),
    ),
    ("L18", "output 'y' is never written", with_body(Seq(()))),
    (
        "L18",
        "temporary 't' is read and never written",
        prim(
            SIGNATURE
            + "    t = alloc((4,), f32)\n    for i in range(n):\n"
            + '        with block("b"):\n            vi = spatial(i)\n            y[vi] = t[0]'
        ),
    ),
    (
        "L21",
        "not independent: v1 * 2 == v2 in every iteration",
        prim(
            "@prim_func\ndef f(x: Buffer[(16,), f32], y: InOut[(16, 32), f32]):\n"
            "    for i in range(16):\n"
            '        with block("b"):\n'
            "            v1, v2 = spatial(16, i), spatial(32, 2 * i)\n"
            "            y[v1, v2] = x[v1]"
        ),
    ),
    (
        "L23",
        "loop 'i' is parallel, but iteration 1 reads y[1], which iteration 0 writes",
        prim(
            "@prim_func(scheduled=True)\ndef f(x: Buffer[(8,), f32], y: InOut[(9,), f32]):\n"
            "    for i in parallel(8):\n"
            '        with block("b"):\n'
            "            vi = spatial(i)\n"
            "            y[vi + 1] = y[vi] + x[vi]"
        ),
    ),
    (
        "L22",
        "the init of block 'b' cannot run before the reduction",
        prim(
            "@prim_func\ndef f(m: Int, n: Int, x: Buffer[(8,), f32], y: InOut[(8,), f32]):\n"
            "    for k in range(m):\n        for i in range(n % (k + 1) - 1):\n"
            '            with block("b"):\n'
            "                vi, vk = spatial(8, i + 1), reduce(8, k)\n"
            "                with init(): y[vi] = 0.0\n"
            "                y[vi] += x[vk]"
        ),
    ),
    (
        "L24",
        "statements follow an allocation outside of its body",
        edit(SCOPED, For, body=Seq((Alloc(OWN, WRITE.body), READ))),
    ),
    (
        "L24",
        "buffer 't' is allocated in its own scope",
        edit(SCOPED, For, body=Alloc(OWN, next(allocations(SCOPED.body)))),
    ),
    (
        "L6",
        "buffer 't' is used outside of the scope of its allocation",
        edit(SCOPED, For, body=Seq((Alloc(OWN, WRITE.body), READ))),
    ),
    (
        "L4",
        "the shape of 't' uses variable 'k', which is not in scope",
        edit(SCOPED, Alloc, buffer=replace(OWN, shape=(var("k"),))),
    ),
    ("L1", "2 nodes have uid", edit(SCOPED, Alloc, buffer=replace(OWN, uid=WRITE.uid))),
    (
        "L25",
        "statements follow a value outside of its scope",
        edit(BOUND, Block, body=Seq((NAMED, NAMED.body))),
    ),
    (
        "L25",
        "value 't' is used outside of the scope of its bind",
        edit(BOUND, Block, body=NAMED.body),
    ),
    ("L25", "value 't' is bound in its own scope", edit(BOUND, Bind, body=NAMED)),
    ("L25", "value 't' is bound outside of blocks", edit(BOUND, For, body=NAMED)),
    (
        "L26",
        "the init stores another element of 'p' than the body",
        prim(ARGMAX.replace("p[vi] = -inf", "p[7 - vi] = -inf")),
    ),
    (
        "L26",
        "'y' and 'p' are stored at different iterations: only one of them is indexed by 'vi'",
        prim(ARGMAX.replace("p[vi] =", "p[0] =")),
    ),
    (
        "L26",
        "the body is not a reduction by 'argmax': it has 1 stores, and the reducer has 2 results",
        edit(prim(ARGMAX), Block, body=next(stores(BOUND.body))),
    ),
]


@pytest.mark.parametrize(
    ("rule", "message", "func"), BROKEN, ids=[f"{b[0]} {b[1]}" for b in BROKEN]
)
def test_a_violation_is_reported(rule: str, message: str, func: PrimFunc) -> None:
    found = [v for v in violations(func) if v.rule.number == rule]
    assert any(message in v.message for v in found), [str(v) for v in violations(func)]


def test_every_rule_has_a_rejected_program() -> None:
    assert {b[0] for b in BROKEN} == {r.number for r in RULES}
    assert [r.number for r in RULES] == [f"L{k + 1}" for k in range(len(RULES))]


def test_the_original_programs_are_well_formed() -> None:
    assert violations(GOOD) == ()
    assert violations(REDUCTION) == ()


def test_location_and_uid_of_a_violation() -> None:
    (violation,) = [v for v in violations(with_body(EXP_OF_INTEGER)) if v.rule is DTYPES]
    assert violation.location == "function 'f', loop 'i', block 'b'"
    assert violation.uid == BLOCK_NODE.uid
    assert str(violation) == (
        "[L8 dtypes agree] function 'f', loop 'i', block 'b': exp is not defined for dtype i64"
    )


def test_verify_reports_all_violations() -> None:
    total = Binary("add", EXP_OF_INTEGER.value, Cast(f32, Unary("not", LOADED)))
    bad = edit(GOOD, Block, body=Store(Y, (VI,), total), reads=())
    with pytest.raises(IllFormedProgramError) as caught:
        verify(bad)
    error = caught.value
    assert isinstance(error, MalformedProgramError)
    assert "(and 3 more)" in error.message
    assert "requires: the operands of an element expression have" in error.message
    assert "[L8 dtypes agree]" in error.message
    assert error.hint == "cast one of the operands"
    rules = ["L8", "L8", "L9", "L9"]
    assert [v["rule"] for v in error.details["violations"]] == rules
    verify(GOOD)


def test_the_access_of_a_violation_is_underlined(golden) -> None:
    programs = [
        prim(LOOP + "        x[i, 0] = 0.0"),
        edit(NESTED, For, thread="x"),
        edit(GOOD, Block, reads=()),
        prim(HEAD + "def f(y: Out[(n + 1,), f32]): pass"),
    ]
    shown: list[str] = []
    for program in programs:
        with pytest.raises(IllFormedProgramError) as caught:
            verify(program)
        shown.append(str(caught.value))
        assert caught.value.to_json()["excerpts"]
        assert "<mark" in caught.value._repr_html_()
    golden("violations.txt", "\n\n".join(shown))


@pytest.mark.parametrize("program", [b[2] for b in BROKEN], ids=[f"{b[0]} {b[1]}" for b in BROKEN])
def test_every_violation_is_rendered(program: PrimFunc) -> None:
    with pytest.raises(IllFormedProgramError) as caught:
        verify(program)
    first = caught.value.violations[0]
    assert first.rule.claim in str(caught.value)
    assert first.rule.fix in str(caught.value)
    assert first.location in str(caught.value)


def test_a_reduction_may_allocate_in_its_body() -> None:
    text = (
        "@prim_func\ndef f(x: Buffer[(4, 8), f32], y: Out[(4,), f32]):\n"
        "    for i in range(4):\n        for j in range(8):\n"
        '            with block("y"):\n'
        "                vi, vj = spatial(i), reduce(j)\n"
        "                with init(): y[vi] = 0.0\n"
        "                t = alloc((8,), f32)\n"
        "                t[vj] = x[vi, vj] + 1.0\n"
        "                y[vi] += t[vj] * t[vj]"
    )
    assert violations(parse(text)) == ()


def test_a_reduction_may_allocate_in_its_init() -> None:
    text = (
        "@prim_func\ndef f(x: Buffer[(4, 8), f32], y: Out[(4,), f32]):\n"
        "    for i in range(4):\n        for j in range(8):\n"
        '            with block("y"):\n'
        "                vi, vj = spatial(i), reduce(j)\n"
        "                with init():\n"
        "                    t = alloc((1,), f32)\n"
        "                    t[0] = 0.0\n"
        "                    y[vi] = t[0]\n"
        "                y[vi] += x[vi, vj]"
    )
    assert violations(parse(text)) == ()


def test_conditions_around_an_access_are_used() -> None:
    guarded = BLOCK + "            reads(x[vi, 0:4])\n            for j in range(8):\n"
    inside = guarded + "                if j < 4:\n                    y[vi] = x[vi, j]"
    assert violations(prim(inside)) == ()
    outside = inside.replace("j < 4", "j < 5")
    assert [v.rule.number for v in violations(prim(outside))] == ["L9"]
    lazy = guarded + "                y[vi] = where(j < 4, x[vi, j], 0.0)"
    assert violations(prim(lazy)) == ()


def test_regions_of_a_nested_block() -> None:
    text = """\
    for i in range(n):
        with block("outer"):
            vi = spatial(i)
            reads(x[vi, 0:{}])
            writes(y[vi])
            for j in range(4):
                with block("inner"):
                    v, w = spatial(n, vi), spatial(m, j * 2)
                    reads(x[v, span(w, 2)])
                    y[v] = x[v, w] + x[v, w + 1]
"""
    assert violations(prim(SIGNATURE + text.format(8))) == ()
    found = violations(prim(SIGNATURE + text.format(7)))
    assert [(v.rule.number, v.location.split(", ")[-1]) for v in found] == [("L9", "block 'outer'")]


def test_regions_around_a_nested_block_with_a_tail_hold_its_accesses() -> None:
    text = """\
@prim_func
def f(x: Buffer[(64,), f32], y: Out[(64,), f32]):
    for i in range(64):
        with block("b"):
            vi = spatial(i)
            y[vi] = x[vi] * 2.0
"""
    sch = Schedule(parse(text))
    sch.split("i", (None, 16))
    sch.blockize("i_1")
    sch.split("i_1", (None, 5))
    sch.blockize("i_1_1")
    nested = str(sch)
    # The box around the last tile of 5 elements ends after the 16 elements of the outer block.
    assert "reads(x[vvi_0 * 16 + vi_1_0 * 5:vvi_0 * 16 + vi_1_0 * 5 + 5])" in nested
    assert violations(sch.module) == ()
    for region in ("x", "y"):
        whole = f"{region}[vi_0 * 16:vi_0 * 16 + 16]"
        assert nested.count(whole) == 1
        small = prim(nested.replace(whole, whole.replace("+ 16", "+ 15")))
        assert [v.rule.number for v in violations(small)] == ["L9"]


@given(prim_funcs(exact=False))
def test_random_functions_are_well_formed(func: PrimFunc) -> None:
    assert violations(func) == ()


@pytest.mark.parametrize("case", LOOP_CASES, ids=str)
def test_the_loops_of_every_operator_are_well_formed(case) -> None:
    program = Program(case)
    function = lower_call(program.call, program.value.info, "f").function
    assert {v.rule.number for v in violations(function)} <= {"L11"}


def test_a_function_is_checked_once_for_its_structure_and_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = BLOCK + "            y[vi] = x[vi, 0] * 37.25\n"
    made: list[PrimFunc] = []
    checker = loop_verify._Checker
    monkeypatch.setattr(loop_verify, "_Checker", lambda f: made.append(f) or checker(f))
    func = prim(text)
    assert violations(func) == violations(prim(text)) == ()
    assert made == [func]
    other = replace(func, name="not a name")
    assert [v.rule.name for v in violations(other)] == ["valid names"]
    assert made == [func, other]
    assert violations(prim(text.replace("37.25", "37.5"))) == ()
    assert len(made) == 3
    assert violations(other)  # a function with violations is checked each time
    assert len(made) == 4
