"""Recognition of expressions in exported programs that only compute on sizes."""

from __future__ import annotations

import ast
import re
from typing import Final

from ...locks import parse_expression

_LONGEST: Final = 100_000
_LARGEST: Final = 10**40
_MAX_EXPONENT: Final = 64
_SIZE_TEXT: Final = re.compile(r"[\w '+\-*/%(),.<>=!]*", re.ASCII)
_GUARD_TEXT: Final = re.compile(r"[\w '+\-*/%(),.<>=!\[\]]*", re.ASCII)
_PLAIN: Final = re.compile(r"[\w.\-+<>=/:$@, ]{0,1000}")
_POWERS: Final = frozenset(("Pow", "PowByNatural"))
_FUNCTIONS: Final = frozenset((
    "Symbol", "Integer", "Rational", "Float", "Add", "Mul", "Mod", "PythonMod", "FloorDiv",
    "CleanDiv", "CeilDiv", "ModularIndexing", "Max", "Min", "Abs", "Identity", "Where",
    "IntTrueDiv", "FloatTrueDiv", "ToFloat", "TruncToInt", "FloorToInt", "CeilToInt", "Equality",
    "Unequality", "LessThan", "StrictLessThan", "GreaterThan", "StrictGreaterThan", "Eq", "Ne",
    "Le", "Lt", "Ge", "Gt", "And", "Or", "Not", "floor", "ceiling",
))  # fmt: skip
_ASSUMPTIONS: Final = frozenset((
    "integer", "positive", "nonnegative", "negative", "zero", "real", "finite",
))  # fmt: skip
_GUARD_FUNCTIONS: Final = frozenset((
    "min", "max", "Min", "Max", "Mod", "PythonMod", "FloorDiv", "CeilDiv",
))  # fmt: skip
_GUARD_METHODS: Final = frozenset((
    "size", "stride", "storage_offset",
))  # fmt: skip
_PLAIN_NODES: Final = (
    ast.Expression, ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Compare, ast.Load,
    ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
)  # fmt: skip


def is_plain(text: str) -> bool:
    """Return whether a text is a path or a version: without quotes, brackets, and line breaks.

    Examples
    --------
    >>> is_plain("encoder.layer.0.weight"), is_plain("x'; import os")
    (True, False)
    """
    return _PLAIN.fullmatch(text) is not None


def is_identifier(text: str) -> bool:
    """Return whether a text is empty or consists of letters, digits, and underscores."""
    return re.fullmatch(r"\w{0,1000}", text) is not None


def is_size(text: str) -> bool:
    """Return whether a text is arithmetic on symbols and numbers, as sympy prints it.

    Examples
    --------
    >>> is_size("Add(Symbol('s0', integer=True), Integer(3))"), is_size("s0 // 2 + 1")
    (True, True)
    >>> is_size("__import__('os').system('ls')"), is_size("Pow(9, Pow(9, 9))")
    (False, False)
    """
    tree = _parsed(text, _SIZE_TEXT)
    return tree is not None and all(map(_is_size_node, ast.walk(tree))) and _strings_name(tree)


def is_guard(text: str) -> bool:
    """Return whether a text is a condition on the sizes of inputs.

    Examples
    --------
    >>> is_guard("L['x'].size()[0] <= 2*L['past'][0].size()[1]"), is_guard("exit()")
    (True, False)
    """
    tree = _parsed(text, _GUARD_TEXT)
    return tree is not None and all(map(_is_guard_node, ast.walk(tree)))


def _parsed(text: str, allowed: re.Pattern[str]) -> ast.Expression | None:
    if len(text) > _LONGEST or not allowed.fullmatch(text):
        return None
    try:
        return parse_expression(text.strip())
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _is_size_node(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
            if name in _POWERS:
                return not keywords and len(args) == 2 and _is_exponent(args[1])
            return name in _FUNCTIONS and (name == "Symbol" or not keywords)
        case ast.keyword(arg=name, value=ast.Constant(value=bool())):
            return name in _ASSUMPTIONS
        case ast.Constant(value=str(text)):
            return re.fullmatch(r"\w+", text) is not None
        case ast.Name(id=name):
            return not name.startswith("_")
        case _:
            return _is_arithmetic(node)


def _strings_name(tree: ast.Expression) -> bool:
    """Return whether all strings are the names of symbols."""
    named: set[int] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="Symbol"), args=[ast.Constant() as name]):
                named.add(id(name))
            case ast.Constant(value=str()) if id(node) not in named:
                return False
            case _:
                pass
    return True


def _is_guard_node(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name), keywords=[]):
            return name in _GUARD_FUNCTIONS
        case ast.Call(func=ast.Attribute(attr=name), args=[], keywords=[]):
            return name in _GUARD_METHODS
        case ast.Attribute(attr=name):
            return not name.startswith("_")
        case ast.Subscript(slice=ast.Constant(value=int() | str())):
            return True
        case ast.Constant(value=str(text)):
            return re.fullmatch(r"[\w.]*", text) is not None
        case ast.Name(id=name):
            return name == "L" or name in _GUARD_FUNCTIONS
        case _:
            return _is_arithmetic(node)


def _is_arithmetic(node: ast.AST) -> bool:
    match node:
        case ast.BinOp(op=ast.Pow(), right=right):
            return _is_exponent(right)
        case ast.Constant(value=int(number) | float(number)):
            return abs(number) < _LARGEST
        case _:
            return isinstance(node, _PLAIN_NODES)


def _is_exponent(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="Integer"), args=[argument]):
            return _is_exponent(argument)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _is_exponent(operand)
        case ast.Constant(value=int(number)):
            return number <= _MAX_EXPONENT
        case _:
            return False
