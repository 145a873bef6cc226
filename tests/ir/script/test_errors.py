"""Every mistake in a text is named, and points at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.ir.errors import TilewrightError
from tilewright.ir.script import ParseError, parse

LOOP = """n, m = symbols("n m", lower=1)
@prim_func
def f(A: Buffer[(n, m), f32], B: Buffer[(n,), i64], C: Out[(n,), f32]):
    for i in range(n):
        {}
"""
BLOCK = LOOP.format('with block("b"):\n            {}')
GRAPH = """n = symbols("n", lower=1)
constant("w", (4,), f32)
@graph_func
def main(x: Tensor[(n, 4), f32], t: Tuple[Tensor[(n,), f32]]):
    {}
    return x
"""
FUNCTION = """n = symbols("n")
@prim_func
def f({}):
    pass
"""

# Name, text, error class, words of the message, the quoted part under the carets.
MISTAKES = [
    # Python itself
    ("not python", "x = 1 +", "ScriptSyntaxError", "invalid syntax", ""),
    (
        "indent",
        "@prim_func\ndef f():\npass",
        "ScriptSyntaxError",
        "expected an indented block",
        "p",
    ),
    ("open bracket", "f(", "ScriptSyntaxError", "'(' was never closed", "("),
    ("null", "a\0b", "ScriptSyntaxError", "null bytes", "a"),
    ("surrogate", "'\ud800'", "ScriptSyntaxError", "not Unicode", ""),
    # modules
    ("statement", "while x: pass", "ScriptSyntaxError", "no such statement in a module", "while"),
    ("import", "import os", "ScriptSyntaxError", "no such statement", "import os"),
    ("call", "print(1)", "ScriptSyntaxError", "no statement 'print'", "print(1)"),
    ("decorator", "def f(): pass", "ScriptSyntaxError", "needs one decorator", "def"),
    (
        "two decorators",
        "@a\n@prim_func\ndef f(): pass",
        "ScriptSyntaxError",
        "one decorator",
        "def",
    ),
    ("twice", "@prim_func\ndef f(): pass\n" * 2, "DuplicateNameError", "two functions 'f'", "def"),
    ("symbols names", 'n, m = symbols("n k")', "ScriptSyntaxError", "names on the left", "symbols"),
    ("symbols range", 'n = symbols("n", lower=3, upper=2)', "ScriptSyntaxError", "no value", "sym"),
    ("symbols option", 'n = symbols("n", low=3)', "ScriptSyntaxError", "no argument 'low'", "3"),
    ("attribute value", "module(a=1)", "ScriptSyntaxError", "a string is expected", "1"),
    ("constant shape", 'constant("w", 4, f32)', "ScriptSyntaxError", "is a tuple", "4"),
    (
        "constant twice",
        'constant("w", (), f32)\n' * 2,
        "DuplicateNameError",
        "two constants",
        "con",
    ),
    ("spread", "module(**x)", "ScriptSyntaxError", "after ** stands", "**x"),
    (
        "target",
        '@prim_func(target=Target("gpu7"))\ndef f(): pass',
        "ScriptSyntaxError",
        "no target",
        "Target",
    ),
    ("target form", "@prim_func(target=3)\ndef f(): pass", "ScriptSyntaxError", "a target is", "3"),
    # parameters
    ("no annotation", FUNCTION.format("x"), "ScriptSyntaxError", "no annotation", "x"),
    ("star", FUNCTION.format("*x"), "ScriptSyntaxError", "plain names", "x"),
    ("default", FUNCTION.format("x: Int = 3"), "ScriptSyntaxError", "no default", "3"),
    ("dtype", FUNCTION.format("x: Buffer[(n,), f31]"), "UnknownNameError", "no dtype 'f31'", "f31"),
    (
        "shape",
        FUNCTION.format("x: Buffer[n, f32]"),
        "ScriptSyntaxError",
        "a tuple is expected",
        "n",
    ),
    ("symbol", FUNCTION.format("x: Buffer[(k,), f32]"), "UnknownNameError", "no variable 'k'", "k"),
    (
        "two buffers",
        FUNCTION.format("x: Int, y: Out[(n,), f32]").replace("pass", "y = alloc((1,), f32)"),
        "DuplicateNameError",
        "two buffers 'y'",
        "y",
    ),
    (
        "option",
        FUNCTION.format("x: Buffer((n,), f32, stride=1)"),
        "ScriptSyntaxError",
        "no argument",
        "1",
    ),
    (
        "layout",
        FUNCTION.format("x: Buffer((n,), f32, layout=3)"),
        "ScriptSyntaxError",
        "a layout is",
        "3",
    ),
    # statements
    (
        "loop kind",
        LOOP.format("for j in banana(n): pass"),
        "UnknownNameError",
        "no loop kind 'banana'",
        "banana",
    ),
    ("loop over", LOOP.format("for j in A: pass"), "UnknownNameError", "no loop kind 'A'", "A"),
    (
        "loop else",
        LOOP.format("for j in range(n): pass\n        else: pass"),
        "ScriptSyntaxError",
        "no else",
        "pass",
    ),
    (
        "loop target",
        LOOP.format("for j, k in range(n): pass"),
        "ScriptSyntaxError",
        "one variable",
        "j, k",
    ),
    (
        "loop again",
        LOOP.format("for i in range(n): pass"),
        "DuplicateNameError",
        "'i' is in scope",
        "i",
    ),
    (
        "loop arguments",
        LOOP.format("for j in range(): pass"),
        "ScriptSyntaxError",
        "0 positional",
        "range()",
    ),
    (
        "bounds",
        LOOP.format("for j in range(n, bounds=3): pass"),
        "ScriptSyntaxError",
        "a pair",
        "3",
    ),
    ("statement in f", LOOP.format("return 3"), "ScriptSyntaxError", "no such statement", "return"),
    ("with", LOOP.format("with x: pass"), "ScriptSyntaxError", "after with stands", "x"),
    (
        "with word",
        LOOP.format("with open(3): pass"),
        "UnknownNameError",
        "no statement 'with open'",
        "open",
    ),
    (
        "let name",
        LOOP.format("with checked(B[i], 0, n): pass"),
        "ScriptSyntaxError",
        "names the integer",
        "checked",
    ),
    (
        "two loops",
        LOOP.format("for j in range(n): pass\n        for j in range(n): pass"),
        "DuplicateNameError",
        "two loops 'j'",
        "j",
    ),
    # accesses and elements
    (
        "buffer",
        LOOP.format("D[i] = 0.0"),
        "UnknownNameError",
        "no buffer 'D'; buffers are A, B, C",
        "D",
    ),
    (
        "load",
        LOOP.format("C[i] = D[i]"),
        "UnknownNameError",
        "no buffer 'D'; buffers are A, B, C",
        "D",
    ),
    (
        "rank",
        LOOP.format("C[i, 0] = 0.0"),
        "ScriptSyntaxError",
        "2 indices into buffer 'C' of rank 1",
        "C[i, 0]",
    ),
    ("slice", LOOP.format("C[i:] = 0.0"), "ScriptSyntaxError", "not a slice", "i:"),
    (
        "variable",
        LOOP.format("C[q] = 0.0"),
        "UnknownNameError",
        "no variable 'q'; variables are n, m, i",
        "q",
    ),
    ("indirect", LOOP.format("C[B[i]] = 0.0"), "ScriptSyntaxError", "read from memory", "B[i]"),
    (
        "index operator",
        LOOP.format("C[i / 2] = 0.0"),
        "ScriptSyntaxError",
        "no operator Div",
        "i / 2",
    ),
    ("name", LOOP.format("C[i] = q"), "UnknownNameError", "no variable 'q'", "q"),
    (
        "function",
        LOOP.format("C[i] = foo(A[i, 0])"),
        "UnknownNameError",
        "no function 'foo'",
        "foo",
    ),
    (
        "arity",
        LOOP.format("C[i] = exp(A[i, 0], 1.0)"),
        "ScriptSyntaxError",
        "2 positional arguments where 1",
        "exp",
    ),
    (
        "keyword",
        LOOP.format("C[i] = exp(A[i, 0], x=1.0)"),
        "ScriptSyntaxError",
        "no argument 'x'",
        "1.0",
    ),
    (
        "open number",
        LOOP.format("C[i] = f32(1.0 < 2.0)"),
        "ScriptTypeError",
        "dtype of this number",
        "1.0",
    ),
    (
        "open integer",
        LOOP.format("C[i] = f32(isnan(i))"),
        "ScriptTypeError",
        "dtype of this integer",
        "i",
    ),
    ("float as int", LOOP.format("B[i] = 1.5"), "ScriptTypeError", "1.5 is no i64", "1.5"),
    ("bool as float", LOOP.format("C[i] = True"), "ScriptTypeError", "a f32 is expected", "True"),
    ("no element", LOOP.format("C[i] = [1]"), "ScriptSyntaxError", "is not an element", "[1]"),
    ("unpacking", LOOP.format("C[i] = exp(*A)"), "ScriptSyntaxError", "cannot be unpacked", "*A"),
    ("condition", LOOP.format("if n: pass"), "ScriptSyntaxError", "a condition is expected", "n"),
    (
        "integer",
        LOOP.format("for j in range(n < 2): pass"),
        "ScriptSyntaxError",
        "an integer is expected",
        "n < 2",
    ),
    ("huge", LOOP.format("C[i] = " + "9" * 5000), "ScriptSyntaxError", "integer", ""),
    # blocks
    (
        "iter kind",
        BLOCK.format("vi = banana(i)"),
        "ScriptSyntaxError",
        "is bound by spatial",
        "banana(i)",
    ),
    (
        "iter extent",
        BLOCK.format("vi = spatial(i + 1)"),
        "ScriptSyntaxError",
        "only the variable of a loop",
        "i + 1",
    ),
    ("iter name", BLOCK.format("i = spatial(i)"), "DuplicateNameError", "'i' is in scope", "i"),
    (
        "iter twice",
        BLOCK.format("v, v = spatial(i), spatial(i)"),
        "DuplicateNameError",
        "two iteration variables",
        "v",
    ),
    (
        "iter target",
        BLOCK.format("C[0], v = spatial(i), spatial(i)"),
        "ScriptSyntaxError",
        "a name is expected",
        "C[0]",
    ),
    ("region", BLOCK.format("reads(A)"), "ScriptSyntaxError", "a region such as", "A"),
    (
        "region rank",
        BLOCK.format("reads(A[0])"),
        "ScriptSyntaxError",
        "1 ranges of buffer 'A' of rank 2",
        "A[0]",
    ),
    ("region range", BLOCK.format("reads(C[0:])"), "ScriptSyntaxError", "start:stop", "0:"),
    (
        "two guards",
        BLOCK.format("guard(i < 2)\n            guard(i < 3)"),
        "DuplicateNameError",
        "two guards",
        "guard",
    ),
    (
        "two blocks",
        LOOP.format('with block("b"): pass\n        with block("b"): pass'),
        "DuplicateNameError",
        "two blocks 'b'",
        '"b"',
    ),
    (
        "block name",
        LOOP.format("with block(3): pass"),
        "ScriptSyntaxError",
        "a string is expected",
        "3",
    ),
    # facts
    (
        "fact",
        LOOP.replace("    for i in range(n):\n        {}", "    fact(n < 4)\n    fact(n > 5)"),
        "ScriptSyntaxError",
        "contradicts",
        "fact(n > 5)",
    ),
    (
        "discharge",
        LOOP.replace("    for i in range(n):\n        {}", '    fact(n < 4, by="magic")'),
        "UnknownNameError",
        "by 'magic'",
        '"magic"',
    ),
    # graphs
    (
        "value",
        GRAPH.format("y: Object = exp(z)"),
        "UnknownNameError",
        "no value 'z'; values are x, t",
        "z",
    ),
    ("again", GRAPH.format("x: Object = exp(x)"), "DuplicateNameError", "two values 'x'", "x"),
    (
        "nested",
        GRAPH.format("y: Object = exp(exp(x))"),
        "ScriptSyntaxError",
        "an operand is no call",
        "exp(x)",
    ),
    (
        "operator",
        GRAPH.format("y = banana(x)"),
        "ScriptTypeError",
        "no operator 'banana'",
        "banana",
    ),
    ("deduction", GRAPH.format("y = softmax(x, axis=7)"), "ScriptTypeError", "axis", "softmax"),
    (
        "annotation",
        GRAPH.format("y: Banana = exp(x)"),
        "ScriptSyntaxError",
        "an annotation is expected",
        "Banana",
    ),
    (
        "annotation kind",
        GRAPH.format("y: List[x] = exp(x)"),
        "UnknownNameError",
        "no annotation 'List'",
        "List",
    ),
    (
        "annotation form",
        GRAPH.format("y: Tensor[f32] = exp(x)"),
        "ScriptSyntaxError",
        "not annotated so",
        "Tensor",
    ),
    (
        "constant",
        GRAPH.format('y: Object = exp(const("v"))'),
        "UnknownNameError",
        "no constant 'v'",
        '"v"',
    ),
    (
        "needs a note",
        GRAPH.format("y = call(g, x)"),
        "ScriptSyntaxError",
        "needs an annotation",
        "y",
    ),
    ("needs a name", GRAPH.format("exp(x)"), "ScriptSyntaxError", "needs a name", "exp(x)"),
    (
        "outputs",
        GRAPH.format("y: Object = call_tir(g, x)"),
        "ScriptSyntaxError",
        "outputs of this call",
        "call_tir",
    ),
    (
        "versions",
        GRAPH.format("y: Tensor[(), f32] = call_tir(g, x, versions=3)"),
        "ScriptSyntaxError",
        "versions are",
        "3",
    ),
    (
        "version",
        GRAPH.format("y: Tensor[(), f32] = call_tir(g, x, versions=(3,))"),
        "ScriptSyntaxError",
        "a version is",
        "3",
    ),
    (
        "branches",
        GRAPH.format("if x:\n        y: Object = x\n    else:\n        z = x"),
        "ScriptSyntaxError",
        "gives 'y'",
        "z",
    ),
    (
        "branch end",
        GRAPH.format("if x:\n        pass\n    else:\n        z = x"),
        "ScriptSyntaxError",
        "ends with its result",
        "pass",
    ),
    (
        "no return",
        GRAPH.format("pass").replace("    return x\n", ""),
        "ScriptSyntaxError",
        "ends with return",
        "pass",
    ),
    ("return twice", GRAPH.format("return x"), "ScriptSyntaxError", "no such statement", "return"),
    ("field", GRAPH.format('y = t["a"]'), "ScriptSyntaxError", "an integer is expected", '"a"'),
    (
        "statement in graph",
        GRAPH.format("while x: pass"),
        "ScriptSyntaxError",
        "no such statement",
        "while",
    ),
    (
        "stage",
        GRAPH.format("pass").replace("@graph_func", '@graph_func(stage="x")'),
        "ScriptSyntaxError",
        "no stage",
        '"x"',
    ),
    ("hint", GRAPH.format("hint()"), "ScriptSyntaxError", "a hint names", "hint()"),
    (
        "launch library",
        GRAPH.format('launch_library("x", x)'),
        "ScriptSyntaxError",
        "outputs are a tuple",
        "launch",
    ),
    (
        "inner scope",
        GRAPH.format(
            "if x:\n        a: Object = exp(x)\n        y: Object = a\n    else:\n        y = a"
        ),
        "UnknownNameError",
        "no value 'a'",
        "a",
    ),
]


@pytest.mark.parametrize(
    ("text", "kind", "words", "quoted"), [m[1:] for m in MISTAKES], ids=[m[0] for m in MISTAKES]
)
def test_mistakes_are_named_and_located(text: str, kind: str, words: str, quoted: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    error = caught.value
    assert type(error).__name__ == kind
    assert isinstance(error, TilewrightError)
    assert words in error.message
    line = text.split("\n")[error.line - 1] if error.line <= text.count("\n") + 1 else ""
    assert error.place.text == line
    assert line[error.column - 1 :].startswith(quoted)
    assert "^" in str(error)
    assert error.to_json()["details"]["line"] == error.line


def test_how_an_error_looks(golden) -> None:
    shown = []
    for name in (
        "buffer",
        "open number",
        "iter extent",
        "loop kind",
        "nested",
        "indirect",
        "target",
    ):
        text = next(m[1] for m in MISTAKES if m[0] == name)
        with pytest.raises(ParseError) as caught:
            parse(text)
        shown.append(str(caught.value))
    golden("errors.txt", "\n\n".join(shown))


def test_carets_count_characters_not_bytes() -> None:
    with pytest.raises(ParseError) as caught:
        parse('module(a="ü", b=3)')
    assert caught.value.place.caret() == 'module(a="ü", b=3)\n                ^'


def mistake_in(text: str) -> ParseError | None:
    try:
        parse(text)
    except ParseError as error:
        return error
    return None


def test_any_prefix_of_a_program_is_a_program_or_a_located_error() -> None:
    from tests.ir.script.texts import GRAPHS, LOOPS

    for text in (LOOPS, GRAPHS):
        lines = text.splitlines()
        for count in range(len(lines)):
            error = mistake_in("\n".join(lines[:count]))
            assert error is None or 1 <= error.line <= count + 1


def test_a_text_is_a_str() -> None:
    with pytest.raises(TilewrightError, match="is a str, not PosixPath") as caught:
        parse(Path("double.tw"))  # pyright: ignore[reportArgumentType]
    assert "read_text()" in caught.value.hint
