"""Parse errors: class, message and location."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.errors import TilewrightError
from tilewright.ir.script import ParseError

from tests.ir.script.texts import parse

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

# Name, text, error class, part of the message, start of the underlined text.
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
    ("surrogate", "'\ud800'", "ScriptSyntaxError", "invalid source text", ""),
    # modules
    (
        "statement",
        "while x: pass",
        "ScriptSyntaxError",
        "unsupported statement in a module",
        "while",
    ),
    ("import", "import os", "ScriptSyntaxError", "unsupported statement", "import os"),
    ("call", "print(1)", "ScriptSyntaxError", "no statement 'print'", "print(1)"),
    ("decorator", "def f(): pass", "ScriptSyntaxError", "needs exactly one decorator", "def"),
    (
        "two decorators",
        "@a\n@prim_func\ndef f(): pass",
        "ScriptSyntaxError",
        "exactly one decorator",
        "def",
    ),
    (
        "twice",
        "@prim_func\ndef f(): pass\n" * 2,
        "DuplicateNameError",
        "duplicate function 'f'",
        "def",
    ),
    (
        "symbols names",
        'n, m = symbols("n k")',
        "ScriptSyntaxError",
        "expected the names on the left to be 'n, k', got 'n, m'",
        "symbols",
    ),
    (
        "symbols range",
        'n = symbols("n", lower=3, upper=2)',
        "ScriptSyntaxError",
        "no valid value",
        "sym",
    ),
    (
        "symbols option",
        'n = symbols("n", low=3)',
        "ScriptSyntaxError",
        "unexpected keyword argument 'low'",
        "3",
    ),
    ("attribute value", "module(a=1)", "ScriptSyntaxError", "expected a string, got 1", "1"),
    (
        "constant shape",
        'constant("w", 4, f32)',
        "ScriptSyntaxError",
        "expected a tuple of integers as shape, got 4",
        "4",
    ),
    (
        "constant twice",
        'constant("w", (), f32)\n' * 2,
        "DuplicateNameError",
        "duplicate constant 'w'",
        "con",
    ),
    (
        "spread",
        "module(**x)",
        "ScriptSyntaxError",
        "expected a dictionary after **, got 'x'",
        "**x",
    ),
    (
        "target",
        '@prim_func(target=Target("gpu7"))\ndef f(): pass',
        "ScriptSyntaxError",
        "unknown target 'gpu7'",
        "Target",
    ),
    (
        "target form",
        "@prim_func(target=3)\ndef f(): pass",
        "ScriptSyntaxError",
        "expected a target, got 3",
        "3",
    ),
    # parameters
    (
        "no annotation",
        FUNCTION.format("x"),
        "ScriptSyntaxError",
        "annotation of parameter 'x', got none",
        "x",
    ),
    (
        "star",
        FUNCTION.format("*x"),
        "ScriptSyntaxError",
        "variadic parameters are not supported",
        "x",
    ),
    (
        "default",
        FUNCTION.format("x: Int = 3"),
        "ScriptSyntaxError",
        "default values of parameters",
        "3",
    ),
    ("dtype", FUNCTION.format("x: Buffer[(n,), f31]"), "UnknownNameError", "no dtype 'f31'", "f31"),
    (
        "shape",
        FUNCTION.format("x: Buffer[n, f32]"),
        "ScriptSyntaxError",
        "expected a tuple, got 'n'",
        "n",
    ),
    ("symbol", FUNCTION.format("x: Buffer[(k,), f32]"), "UnknownNameError", "no variable 'k'", "k"),
    (
        "two buffers",
        FUNCTION.format("x: Int, y: Out[(n,), f32]").replace("pass", "y = alloc((1,), f32)"),
        "DuplicateNameError",
        "duplicate buffer 'y' in this function",
        "y",
    ),
    (
        "option",
        FUNCTION.format("x: Buffer((n,), f32, stride=1)"),
        "ScriptSyntaxError",
        "unexpected keyword argument 'stride'",
        "1",
    ),
    (
        "layout",
        FUNCTION.format("x: Buffer((n,), f32, layout=3)"),
        "ScriptSyntaxError",
        "expected a lambda as layout, got 3",
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
        "else is not supported on loops",
        "pass",
    ),
    (
        "loop target",
        LOOP.format("for j, k in range(n): pass"),
        "ScriptSyntaxError",
        "expected one loop variable, got a tuple",
        "j, k",
    ),
    (
        "loop again",
        LOOP.format("for i in range(n): pass"),
        "DuplicateNameError",
        "variable 'i' is already in scope",
        "i",
    ),
    (
        "loop arguments",
        LOOP.format("for j in range(): pass"),
        "ScriptSyntaxError",
        "expected 1 to 2 positional arguments, got 0",
        "range()",
    ),
    (
        "bounds",
        LOOP.format("for j in range(n, bounds=3): pass"),
        "ScriptSyntaxError",
        "expected a pair of bounds, got 3",
        "3",
    ),
    (
        "statement in f",
        LOOP.format("return 3"),
        "ScriptSyntaxError",
        "unsupported statement",
        "return",
    ),
    ("with", LOOP.format("with x: pass"), "ScriptSyntaxError", "a call after with, got 'x'", "x"),
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
        "expected a variable for the integer",
        "checked",
    ),
    (
        "two loops",
        LOOP.format("for j in range(n): pass\n        for j in range(n): pass"),
        "DuplicateNameError",
        "duplicate loop 'j'",
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
        "expected 1 index into buffer 'C', got 2",
        "C[i, 0]",
    ),
    ("slice", LOOP.format("C[i:] = 0.0"), "ScriptSyntaxError", "got a slice", "i:"),
    (
        "variable",
        LOOP.format("C[q] = 0.0"),
        "UnknownNameError",
        "no variable 'q'; variables are n, m, i",
        "q",
    ),
    (
        "indirect",
        LOOP.format("C[B[i]] = 0.0"),
        "ScriptSyntaxError",
        "got an element of a buffer",
        "B[i]",
    ),
    (
        "index operator",
        LOOP.format("C[i / 2] = 0.0"),
        "ScriptSyntaxError",
        "unsupported operator '/'",
        "i / 2",
    ),
    ("name", LOOP.format("C[i] = q"), "UnknownNameError", "no variable 'q'", "q"),
    (
        "function",
        LOOP.format("C[i] = foo(A[i, 0])"),
        "UnknownNameError",
        "no element function 'foo'",
        "foo",
    ),
    (
        "arity",
        LOOP.format("C[i] = exp(A[i, 0], 1.0)"),
        "ScriptSyntaxError",
        "expected 1 positional argument, got 2",
        "exp",
    ),
    (
        "keyword",
        LOOP.format("C[i] = exp(A[i, 0], x=1.0)"),
        "ScriptSyntaxError",
        "unexpected keyword argument 'x'",
        "1.0",
    ),
    (
        "open number",
        LOOP.format("C[i] = f32(1.0 < 2.0)"),
        "ScriptTypeError",
        "cannot infer the dtype of this number",
        "1.0",
    ),
    (
        "open integer",
        LOOP.format("C[i] = f32(isnan(i))"),
        "ScriptTypeError",
        "cannot infer the dtype of this integer",
        "i",
    ),
    ("float as int", LOOP.format("B[i] = 1.5"), "ScriptTypeError", "expected i64, got 1.5", "1.5"),
    (
        "bool as float",
        LOOP.format("C[i] = True"),
        "ScriptTypeError",
        "expected f32, got True",
        "True",
    ),
    (
        "no element",
        LOOP.format("C[i] = [1]"),
        "ScriptSyntaxError",
        "expected an element, got a list",
        "[1]",
    ),
    ("unpacking", LOOP.format("C[i] = exp(*A)"), "ScriptSyntaxError", "unpacking arguments", "*A"),
    ("condition", LOOP.format("if n: pass"), "ScriptSyntaxError", "expected a condition", "n"),
    (
        "integer",
        LOOP.format("for j in range(n < 2): pass"),
        "ScriptSyntaxError",
        "expected an integer, got a condition",
        "n < 2",
    ),
    ("huge", LOOP.format("C[i] = " + "9" * 5000), "ScriptSyntaxError", "integer", ""),
    # blocks
    (
        "iter kind",
        BLOCK.format("vi = banana(i)"),
        "ScriptSyntaxError",
        "expected spatial, reduce or ordered, got banana(...)",
        "banana(i)",
    ),
    (
        "iter extent",
        BLOCK.format("vi = spatial(i + 1)"),
        "ScriptSyntaxError",
        "cannot infer the extent",
        "i + 1",
    ),
    (
        "iter name",
        BLOCK.format("i = spatial(i)"),
        "DuplicateNameError",
        "'i' is already in scope",
        "i",
    ),
    (
        "iter twice",
        BLOCK.format("v, v = spatial(i), spatial(i)"),
        "DuplicateNameError",
        "duplicate iteration variable 'v'",
        "v",
    ),
    (
        "iter target",
        BLOCK.format("C[0], v = spatial(i), spatial(i)"),
        "ScriptSyntaxError",
        "expected the name of an iteration variable, got a subscript",
        "C[0]",
    ),
    ("region", BLOCK.format("reads(A)"), "ScriptSyntaxError", "expected a region, got 'A'", "A"),
    (
        "region rank",
        BLOCK.format("reads(A[0])"),
        "ScriptSyntaxError",
        "expected 2 ranges of buffer 'A', got 1",
        "A[0]",
    ),
    ("region range", BLOCK.format("reads(C[0:])"), "ScriptSyntaxError", "start and stop", "0:"),
    (
        "two guards",
        BLOCK.format("guard(i < 2)\n            guard(i < 3)"),
        "DuplicateNameError",
        "duplicate guard(...)",
        "guard",
    ),
    (
        "two blocks",
        LOOP.format('with block("b"): pass\n        with block("b"): pass'),
        "DuplicateNameError",
        "duplicate block 'b'",
        '"b"',
    ),
    (
        "block name",
        LOOP.format("with block(3): pass"),
        "ScriptSyntaxError",
        "expected a string, got 3",
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
        "no discharge 'magic'; discharges are entry_check",
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
    ("again", GRAPH.format("x: Object = exp(x)"), "DuplicateNameError", "duplicate value 'x'", "x"),
    (
        "nested",
        GRAPH.format("y: Object = exp(exp(x))"),
        "ScriptSyntaxError",
        "expected an operand, got a nested call",
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
        "expected an annotation, got 'Banana'",
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
        "invalid Tensor annotation",
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
        "needs an annotation",
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
        "cannot infer the outputs of this call",
        "call_tir",
    ),
    (
        "versions",
        GRAPH.format("y: Tensor[(), f32] = call_tir(g, x, versions=3)"),
        "ScriptSyntaxError",
        "expected a tuple of versions",
        "3",
    ),
    (
        "version",
        GRAPH.format("y: Tensor[(), f32] = call_tir(g, x, versions=(3,))"),
        "ScriptSyntaxError",
        "expected when(guard, function) as version",
        "3",
    ),
    (
        "branches",
        GRAPH.format("if x:\n        y: Object = x\n    else:\n        z = x"),
        "ScriptSyntaxError",
        "expected 'y' as the result of the else branch, got 'z'",
        "z",
    ),
    (
        "branch end",
        GRAPH.format("if x:\n        pass\n    else:\n        z = x"),
        "ScriptSyntaxError",
        "an assignment of the result",
        "pass",
    ),
    (
        "no return",
        GRAPH.format("pass").replace("    return x\n", ""),
        "ScriptSyntaxError",
        "must end with a return statement",
        "pass",
    ),
    (
        "return twice",
        GRAPH.format("return x"),
        "ScriptSyntaxError",
        "unsupported statement",
        "return",
    ),
    (
        "field",
        GRAPH.format('y = t["a"]'),
        "ScriptSyntaxError",
        "expected an integer, got 'a'",
        '"a"',
    ),
    (
        "statement in graph",
        GRAPH.format("while x: pass"),
        "ScriptSyntaxError",
        "unsupported statement",
        "while",
    ),
    (
        "stage",
        GRAPH.format("pass").replace("@graph_func", '@graph_func(stage="x")'),
        "ScriptSyntaxError",
        "no stage",
        '"x"',
    ),
    ("hint", GRAPH.format("hint()"), "ScriptSyntaxError", "expected a symbol name", "hint()"),
    ("hint", GRAPH.format('hint("m", 3)'), "UnknownNameError", "no symbol 'm'", '"m"'),
    ("overflow", LOOP.format("C[i] = 1e400"), "ScriptSyntaxError", "larger than", "1e400"),
    ("overflow", LOOP.format("C[i] = -1e309"), "ScriptSyntaxError", "larger than", "1e309"),
    (
        "launch library",
        GRAPH.format('launch_library("x", x)'),
        "ScriptSyntaxError",
        "expected a tuple of values as outputs, got none",
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
def test_error_class_message_and_location(text: str, kind: str, words: str, quoted: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    error = caught.value
    assert type(error).__name__ == kind
    assert isinstance(error, TilewrightError)
    assert words in error.message
    line = text.split("\n")[error.line - 1] if error.line <= text.count("\n") + 1 else ""
    assert error.location.text == line
    assert line[error.column - 1 :].startswith(quoted)
    assert "^" in str(error)
    assert error.to_json()["details"]["line"] == error.line


def test_rendered_errors(golden) -> None:
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
    assert str(caught.value.location.excerpt()) == ('1 | module(a="ü", b=3)\n  |                 ^')


def parse_error_of(text: str) -> ParseError | None:
    try:
        parse(text)
    except ParseError as error:
        return error
    return None


def test_prefixes_of_programs_parse_or_raise_located_errors() -> None:
    from tests.ir.script.texts import GRAPHS, LOOPS

    for text in (LOOPS, GRAPHS):
        lines = text.splitlines()
        for count in range(len(lines)):
            error = parse_error_of("\n".join(lines[:count]))
            assert error is None or 1 <= error.line <= count + 1


def test_non_string_input_is_rejected() -> None:
    with pytest.raises(TilewrightError, match="as str, got PosixPath") as caught:
        parse(Path("double.tw"))  # pyright: ignore[reportArgumentType]
    assert "read_text()" in caught.value.hint
