"""Forms of blocks: their computation without names, sizes, and dtypes."""

from __future__ import annotations

from functools import lru_cache

from ..ir.analysis import Tree
from ..ir.loop.nodes import (
    Binary,
    Bind,
    Block,
    Compare,
    Element,
    If,
    Let,
    Load,
    Store,
    Ternary,
    Unary,
)
from ..ir.loop.visit import operands, walk


@lru_cache(maxsize=4096)
def block_form(block: Block) -> str:
    """Return the computation of a block as text without names, sizes, and dtypes.

    Blocks have the same form if their iteration variables have the same kinds, and their stores the
    same operations.

    Examples
    --------
    >>> from ..ir.script import parse
    >>> module = parse('''
    ... @prim_func
    ... def f(x: Buffer[(8,), f32], y: Out[(8,), f32]):
    ...     for i in range(8):
    ...         y[i] = max(x[i], 0.0)
    ... ''')
    >>> (block,) = Tree(module.prim("f")).blocks.values()
    >>> block_form(block)
    'spatial: max(load, number)'
    """
    kinds = ", ".join(v.kind for v in block.iters)
    parts = (_part(inner) for inner in walk(block.body))
    return f"{kinds}: {'; '.join(part for part in parts if part)}"


def _part(statement: object) -> str:
    match statement:
        case Store(value=value) | Bind(value=value):
            return _text(value)
        case Let() | If():
            return type(statement).__name__.lower()
        case _:
            return ""


def _text(element: Element) -> str:
    match element:
        case Load():
            return "load"
        case Unary(op=op) | Binary(op=op) | Ternary(op=op) | Compare(op=op):
            name = op
        case _:
            name = type(element).__name__.lower()
    inner = ", ".join(map(_text, operands(element)))
    return f"{name}({inner})" if inner else name


def occurrence(tree: Tree, block: Block) -> int:
    """Return the position of a block among the blocks of its form, in program order."""
    form = block_form(block)
    alike = [b for b in tree.blocks.values() if b is block or block_form(b) == form]
    return alike.index(block)


def with_form(tree: Tree, form: str, position: int) -> Block | None:
    """Return the block of a form at a position among those of its form, None without one."""
    alike = [b for b in tree.blocks.values() if block_form(b) == form]
    return alike[position] if 0 <= position < len(alike) else None
