"""Errors about statements of Python that loop-level functions do not have."""

from __future__ import annotations

import ast
from typing import Final

from ....nearest import did_you_mean
from ...loop.combiners import REDUCERS
from ..errors import ParseError, ScriptSyntaxError
from .arguments import Arguments, called_name
from .source import Source, text_of

STATEMENTS: Final = "assignments, alloc, for, if, pass, with block(...), with checked(...)"

_KEYWORDS: Final[dict[type[ast.stmt], tuple[str, str]]] = {
    ast.While: ("while", "write a loop with a known extent: for i in range(n):"),
    ast.Return: ("return", "functions of loops return nothing: store results in Out parameters"),
    ast.Break: ("break", "loops run to their end: write a condition around the statements"),
    ast.Continue: ("continue", "write if around the statements instead"),
    ast.FunctionDef: ("def", "define functions beside each other, not inside each other"),
    ast.Import: ("import", "programs use only the names of the text format"),
    ast.ImportFrom: ("import", "programs use only the names of the text format"),
    ast.Assert: ("assert", "write fact(condition) at the start of the function"),
    ast.AnnAssign: ("assignment with annotation", "allocate a buffer: t = alloc((8,), f32)"),
}


def unsupported_statement(source: Source, node: ast.stmt) -> ParseError:
    """Return an error about a statement that loop-level functions do not support."""
    word, hint = _described(node)
    message = f"unsupported statement in a loop-level function{word and f': {word}'}"
    return source.error(node, message, hint or f"statements are {STATEMENTS}")


def _described(node: ast.stmt) -> tuple[str, str]:
    """Return the name of a statement and a hint; either is empty if there is none."""
    match node:
        case ast.AugAssign():
            return "", "augmented assignments are +=, -=, *= and /=; write y[i] = y[i] // 2.0"
        case ast.Assign(value=ast.Call() as call) if called_name(call):
            name = str(called_name(call))
            known = did_you_mean(name, REDUCERS)
            return (
                f"several results of {name!r}",
                known or f"reducers are {', '.join(REDUCERS)}, and those that the block defines",
            )
        case ast.Assign():
            return "several targets", "write one assignment per buffer"
        case ast.Expr(value=ast.Call() as call) if called_name(call):
            return f"call of {called_name(call)}", f"statements are {STATEMENTS}"
        case _:
            return _KEYWORDS.get(type(node), ("", ""))


def assigned_name_hint(node: ast.expr, value: ast.expr) -> str:
    """Return the hint for an assignment to a name instead of a buffer element."""
    if not isinstance(node, ast.Name):
        return "write A[i, j], or A[()] for a buffer of rank 0"
    called = called_name(value) or ""
    if called.endswith("program_id"):
        return f'an index of a thread block is a loop: for {node.id} in thread(n, "blockIdx.x"):'
    return f"allocate a buffer: {node.id} = alloc((), f32), and write {node.id}[()] = ..."


def check_starts_at_zero(source: Source, node: ast.For, arguments: Arguments) -> None:
    """Raise an error for ``range(start, stop)`` and ``range(start, stop, step)``.

    The second argument of a loop is the name of a thread axis, which is a string.
    """
    values = arguments.positional
    if len(values) not in (2, 3) or _is_string(values[1]):
        return
    kind, name = called_name(arguments.node), text_of(node.target)
    start, stop = values[0], values[1]
    step = values[2] if len(values) == 3 else None
    extent = _difference(stop, start)
    index = name if _is_zero(start) else f"{name} + {text_of(start)}"
    if step is not None:
        extent = _quotient(extent, step)
        scaled = f"{name} * {text_of(step)}"
        index = scaled if _is_zero(start) else f"{scaled} + {text_of(start)}"
    use = "" if index == name else f" and use {index} in place of {name}"
    raise ScriptSyntaxError(
        f"loops start at 0 and have step 1: expected {kind}(extent), got {text_of(arguments.node)}",
        location=source.location(arguments.node),
        hint=f"write for {name} in {kind}({extent}):{use}",
    )


def _is_string(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0


def _integer(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 20 else None


def _difference(stop: ast.expr, start: ast.expr) -> str:
    left, right = text_of(stop), text_of(start)
    a, b = _integer(left), _integer(right)
    if a is not None and b is not None:
        return str(max(a - b, 0))
    if b == 0:
        return left
    return (
        f"{left} - {right}"
        if isinstance(start, ast.Constant | ast.Name)
        else (f"{left} - ({right})")
    )


def _quotient(extent: str, step: ast.expr) -> str:
    a, b = _integer(extent), _integer(text_of(step))
    if a is not None and b:
        return str(-(-a // b))
    return f"ceildiv({extent}, {text_of(step)})"
