"""The printer of host functions."""

from __future__ import annotations

import pytest

from tilewright.ir.host import nodes as h
from tilewright.ir.host.text import WORDS, Field, Layout, Notes, to_text
from tilewright.ir.symbolic import var

N = var("n", lower=0)
P, Q = h.Local("p", "ptr"), h.Local("q", "ptr")
X, CODE = h.Local("x"), h.Local("code", "code")
ZERO, ONE, EIGHT = h.Integer(0), h.Integer(1), h.Integer(8)
TERM = h.Term(N * 4 + 1)

VALUES = {
    "x": X,
    "8": EIGHT,
    "-3": h.Integer(-3),
    "2**60": h.Integer(1 << 60),
    "1099511627777": h.Integer((1 << 40) + 1),
    "null": h.NullPointer(),
    "n * 4 + 1": TERM,
    "n < 4": h.Claim(N < 4),
    "(n * 4 + 1) * x": h.Arithmetic("mul", TERM, X),
    "max(x, 8)": h.Arithmetic("max", X, EIGHT),
    "(x + 1) & 8": h.Arithmetic("and", h.Arithmetic("add", X, ONE), EIGHT),
    "x == n * 4 + 1": h.Comparison("eq", X, TERM),
    "(x < 1 and x != 8)": h.Both(h.Comparison("lt", X, ONE), h.Comparison("ne", X, EIGHT)),
    "(x < 1 or n < 4)": h.Either(h.Comparison("lt", X, ONE), h.Claim(N < 4)),
    "not (n < 4)": h.Negation(h.Claim(N < 4)),
    "load.i64(p[8])": h.Read("i64", P, EIGHT),
    "p + 8": h.Moved(P, EIGHT),
    "p + (n * 4 + 1)": h.Moved(P, TERM),
    "int(p)": h.Numeric(P),
    "@kernel": h.FunctionPointer("kernel"),
    "@table": h.Static("table", (1, 2)),
}

STATEMENTS = {
    "x = 8": h.Assign(X, EIGHT),
    "let n = x": h.BindSymbol(N, X),
    "p[8]: i64 = x": h.Write("i64", P, EIGHT, X),
    "tw_release(p, 8)": h.Invoke("tw_release", (P, EIGHT)),
    "code = x(p)": h.Invoke(X, (P,), CODE),
    "launch double(p, q, n * 4 + 1)": h.HostLaunch("double", 0, P, P, P, (P, Q), (TERM,)),
    "launch double(p, scratch=q)": h.HostLaunch("double", 0, P, P, P, (P,), (), Q),
    "check(n < 4, x)  # check 7": h.Guard(h.Claim(N < 4), 7, P, (X,)),
    "p = allocate(64)": h.Reserve(P, 64),
    "x = compare_exchange(p[8], 0, 1)": h.Exchange(P, EIGHT, ZERO, ONE, X),
    "atomic_store(p[8], 1)": h.Publish(P, EIGHT, ONE),
    "x = atomic_load(p[8])": h.Observe(P, EIGHT, X),
    "pause()": h.Pause(),
    "return": h.Return(),
    "return 8": h.Return(EIGHT),
}


def lines(*body: h.Statement, notes: Notes | None = None) -> list[str]:
    """Return the printed statements of a function, without the signature."""
    return to_text(h.HostFunc("f", (P,), body), notes).splitlines()[1:]


@pytest.mark.parametrize("text", VALUES)
def test_value(text: str) -> None:
    assert lines(h.Return(VALUES[text])) == [f"    return {text}"]


@pytest.mark.parametrize("text", STATEMENTS)
def test_statement(text: str) -> None:
    assert lines(STATEMENTS[text]) == [f"    {text}"]


def test_signature_and_header() -> None:
    function = h.HostFunc("f", (P, X), (), "code", exported=True)
    assert to_text(function, Notes(header=("first", "second"))) == (
        "# first\n# second\ndef f(p: ptr, x: int) -> code:\n    pass\n"
    )


def test_chains_of_branches_have_one_level() -> None:
    inner = h.When(h.Claim(N < 8), (h.Assign(X, ONE),), (h.Assign(X, EIGHT),))
    outer = h.When(h.Claim(N < 4), (h.Assign(X, ZERO),), (inner,))
    assert lines(outer, h.While(h.Claim(N < 2), (h.Pause(),))) == [
        "    if n < 4:",
        "        x = 0",
        "    elif n < 8:",
        "        x = 1",
        "    else:",
        "        x = 8",
        "    while n < 2:",
        "        pause()",
    ]


def test_equal_names_are_made_unique() -> None:
    assert lines(h.Assign(h.Local("p"), ONE), h.Assign(h.Local("p"), ZERO)) == [
        "    p_1 = 1",
        "    p_2 = 0",
    ]


VIEW = Layout({0: Field("data"), 8: Field("shape")}, 16)
CALL = Layout({0: Field("site"), 8: Field("numbers", 8)})
LAYOUTS = {"views": VIEW, "views[].shape": WORDS, "call": CALL, "shape": WORDS}
VIEWS, RECORD, SHAPE = h.Local("views", "ptr"), h.Local("call", "ptr"), h.Local("shape_3", "ptr")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (h.Read("ptr", VIEWS, h.Integer(16)), "views[1].data"),
        (h.Read("ptr", h.Moved(VIEWS, h.Integer(16)), EIGHT), "views[1].shape"),
        (h.Moved(VIEWS, h.Integer(32)), "views[2]"),
        (h.Read("i64", h.Read("ptr", VIEWS, EIGHT), EIGHT), "views[0].shape[1]"),
        (h.Read("i64", SHAPE, EIGHT), "shape_3[1]"),
        (h.Read("i64", RECORD, ZERO), "call.site"),
        (h.Read("i64", RECORD, h.Integer(24)), "call.numbers[2]"),
        (h.Moved(RECORD, EIGHT), "address(call.numbers[0])"),
        (h.Read("i64", RECORD, h.Integer(4)), "load.i64(call[4])"),
        (h.Read("i64", RECORD, X), "load.i64(call[x])"),
        (h.Read("i64", SHAPE, h.Integer(3)), "load.i64(shape_3[3])"),
    ],
)
def test_fields_of_known_records_are_named(value: h.Value, text: str) -> None:
    assert lines(h.Return(value), notes=Notes(LAYOUTS)) == [f"    return {text}"]


def test_notes_replace_numbers() -> None:
    notes = Notes(
        LAYOUTS,
        sites={2: "dimension 1 of 'x' is 8"},
        launches={0: "binding y"},
        names={"call.numbers[0]": "first"},
    )
    body = (
        h.Guard(h.Claim(N < 4), 2, P),
        h.HostLaunch("double", 0, P, P, P, (P,), ()),
        h.Return(h.Read("i64", RECORD, EIGHT)),
    )
    assert lines(*body, notes=notes) == [
        "    check(n < 4)  # dimension 1 of 'x' is 8",
        "    launch double(p)  # binding y",
        "    return first",
    ]
