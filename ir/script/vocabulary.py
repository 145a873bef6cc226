"""The keywords of the text format as Python names, for functions in notebook cells.

``from tilewright.ir.script.vocabulary import *`` lets editors and linters resolve all names of a
program. Only the parser interprets the keywords: a function under ``@prim_func`` is parsed from
its source and never called.

Examples
--------
>>> n, m = symbols("n m", lower=1)
>>> Buffer[(n, m), f32]
Buffer
>>> exp(1.0)
Traceback (most recent call last):
    ...
tilewright.ir.words.OutsideFunctionError: ...'exp' was called outside of ...
  use it inside a function decorated with @prim_func or @graph_func
"""

from __future__ import annotations

from typing import Any, Final

from ...nearest import did_you_mean
from ...target.target import Target
from .. import dtype as _dtypes
from ..dtype import *  # noqa: F403  # each dtype is a keyword
from ..loop import element_functions
from ..loop.element_functions import *  # noqa: F403  # each function is a keyword
from ..symbolic import InvalidSymbolError, Var, ceildiv, select, var
from ..words import Annotation, Word
from .decorators import graph_func, module, prim_func

_OPTIONS: Final = ("lower", "upper", "multiple_of")


def symbols(names: str, **options: int | None) -> Any:
    """Create symbols for the shapes of functions.

    Parameters
    ----------
    names : str
        Names separated by spaces or commas.
    **options : int
        ``lower`` and ``upper``, both inclusive, and ``multiple_of``.

    Returns
    -------
    Var or tuple of Var
        A symbol for one name, a tuple for several.

    Examples
    --------
    >>> symbols("n m", lower=1)
    (n, m)
    """
    unknown = next((name for name in options if name not in _OPTIONS), None)
    if unknown is not None:
        question = did_you_mean(unknown, _OPTIONS)
        raise InvalidSymbolError(
            f"symbols has no option {unknown!r}{question and f'; {question}'}",
            where=f"symbols({names!r}, ...)",
            hint=f"options are {', '.join(_OPTIONS)}",
        )
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
reinterpret, scan, reducer = map(Word, ("reinterpret", "scan", "reducer"))
add, mul, xor = map(Word, ("add", "mul", "xor"))
argmax, argmin, welford = map(Word, ("argmax", "argmin", "welford"))
logsumexp, online_softmax, linear_recurrence = map(
    Word, ("logsumexp", "online_softmax", "linear_recurrence")
)
call_tir, call_library, call, match_cast = map(
    Word, ("call_tir", "call_library", "call", "match_cast")
)
const, op, when, constant, binding = map(Word, ("const", "op", "when", "constant", "binding"))
alloc_storage, view, launch, launch_library = map(
    Word, ("alloc_storage", "view", "launch", "launch_library")
)
kill, check, copy, updates = map(Word, ("kill", "check", "copy", "updates"))
loop, each = Word("loop"), Word("each")
inf: Final = float("inf")
nan: Final = float("nan")

__all__ = [  # noqa: RUF022  # grouped as above
    "Var", "Target", "ceildiv", "select", "symbols", "prim_func", "graph_func", "module",
    "Buffer", "Out", "InOut", "State", "Int", "Tensor", "Shape", "Prim", "Tuple", "Callable",
    "Object", "serial", "parallel", "vectorized", "unrolled", "thread", "block", "spatial",
    "reduce", "ordered", "init", "guard", "reads", "writes", "span", "proved", "checked",
    "clamped", "alloc", "fact", "hint", "origin", "attributes", "where", "index", "condition",
    "reinterpret", "scan", "reducer", "expr", "call_tir", "call_library", "call", "match_cast",
    "const", "op", "when", "constant", "binding", "alloc_storage", "view", "launch",
    "launch_library", "kill", "check", "copy", "updates", "loop", "each", "inf", "nan",
    "add", "mul", "xor", "argmax", "argmin", "welford", "logsumexp", "online_softmax",
    "linear_recurrence",
]  # fmt: skip
__all__ += element_functions.__all__
__all__ += _dtypes.__all__
