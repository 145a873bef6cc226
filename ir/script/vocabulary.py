"""The words of the text format as Python names, for functions written in a notebook cell.

``from tilewright.ir.script.vocabulary import *`` makes a cell's text ordinary Python for an
editor. The words mean something to the parser alone: a function under ``@prim_func`` is read from
its source and never called.

Examples
--------
>>> n, m = symbols("n m", lower=1)
>>> Buffer[(n, m), f32]
Buffer
>>> exp(1.0)
Traceback (most recent call last):
    ...
tilewright.ir.script.errors.OutsideFunctionError: 'exp' is a word of the text format
  it means something inside a function under @prim_func or @graph_func
"""

from __future__ import annotations

from typing import Any, Final

from ..dtype import bf16, bool_, f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64
from ..symbolic import Var, ceildiv, select, var
from ..target import Target
from .decorators import graph_func, module, prim_func
from .words import Annotation, Word


def symbols(names: str, **options: int | None) -> Any:
    """Make symbols for the shapes of functions below.

    Parameters
    ----------
    names : str
        Names between blanks. One name gives a symbol, several a tuple.
    **options : int
        ``lower`` and ``upper``, both included, and ``multiple_of``.

    Examples
    --------
    >>> symbols("n m", lower=1)
    (n, m)
    """
    multiple = options.pop("multiple_of", None) or 1
    made = tuple(var(n, **options, multiple_of=multiple) for n in names.replace(",", " ").split())
    return made[0] if len(made) == 1 else made


Buffer, Out, InOut, State = map(Annotation, ("Buffer", "Out", "InOut", "State"))
Int, Tensor, Shape, Prim = map(Annotation, ("Int", "Tensor", "Shape", "Prim"))
Tuple, Callable, Object = map(Annotation, ("Tuple", "Callable", "Object"))

serial, parallel, vectorized = map(Word, ("serial", "parallel", "vectorized"))
unrolled, thread = Word("unrolled"), Word("thread")
block, spatial, reduce, ordered = map(Word, ("block", "spatial", "reduce", "ordered"))
init, guard, reads, writes, span = map(Word, ("init", "guard", "reads", "writes", "span"))
proved, checked, clamped = map(Word, ("proved", "checked", "clamped"))
alloc, fact, hint, origin, attributes = map(Word, ("alloc", "fact", "hint", "origin", "attributes"))
where, index, condition, expr = map(Word, ("where", "index", "condition", "expr"))
exp, log, log1p, expm1, sqrt, rsqrt = map(Word, ("exp", "log", "log1p", "expm1", "sqrt", "rsqrt"))
sigmoid, tanh, erf, sin, cos, atan2 = map(Word, ("sigmoid", "tanh", "erf", "sin", "cos", "atan2"))
floor, ceil, trunc, sign, isnan, isinf = map(
    Word, ("floor", "ceil", "trunc", "sign", "isnan", "isinf")
)
call_tir, call_library, call, match_cast = map(
    Word, ("call_tir", "call_library", "call", "match_cast")
)
const, op, when, constant, binding = map(Word, ("const", "op", "when", "constant", "binding"))
alloc_storage, view, launch, launch_library = map(
    Word, ("alloc_storage", "view", "launch", "launch_library")
)
kill, check = Word("kill"), Word("check")
inf: Final = float("inf")
nan: Final = float("nan")

__all__ = [  # noqa: RUF022  # grouped as above
    "f16", "f32", "f64", "bf16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool_",
    "Var", "Target", "ceildiv", "select", "symbols", "prim_func", "graph_func", "module",
    "Buffer", "Out", "InOut", "State", "Int", "Tensor", "Shape", "Prim", "Tuple", "Callable",
    "Object", "serial", "parallel", "vectorized", "unrolled", "thread", "block", "spatial",
    "reduce", "ordered", "init", "guard", "reads", "writes", "span", "proved", "checked",
    "clamped", "alloc", "fact", "hint", "origin", "attributes", "where", "index", "condition",
    "expr", "exp", "log", "log1p", "expm1", "sqrt", "rsqrt", "sigmoid", "tanh", "erf", "sin",
    "cos", "atan2", "floor", "ceil", "trunc", "sign", "isnan", "isinf", "call_tir",
    "call_library", "call", "match_cast", "const", "op", "when", "constant", "binding",
    "alloc_storage", "view", "launch", "launch_library", "kill", "check", "inf", "nan",
]  # fmt: skip
