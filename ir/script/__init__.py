"""One text format for both levels a person edits: Python syntax, parsed and never executed.

Printing and parsing are exact inverses: names, attributes, facts and access modes survive, and so
does the text itself.

Example
-------
>>> text = '''
... n = symbols("n", lower=1)
...
... @prim_func
... def double(x: Buffer[(n,), f32], y: Out[(n,), f32]):
...     for i in parallel(n):
...         with block("y_block"):
...             vi = spatial(i)
...             y[vi] = x[vi] * 2.0
... '''
>>> module = parse(text)
>>> print(to_text(module.prim("double")))
n = symbols("n", lower=1)
<BLANKLINE>
@prim_func
def double(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in parallel(n):
        with block("y_block"):
            vi = spatial(i)
            y[vi] = x[vi] * 2.0
"""

from ..module import MissingConstantError
from ..naming import is_writable, writable
from .decorators import graph_func, module, prim_func
from .errors import (
    ConstantMismatchError,
    DuplicateNameError,
    OutsideFunctionError,
    ParseError,
    Place,
    ScriptSyntaxError,
    ScriptTypeError,
    SourceUnavailableError,
    TextTooLargeError,
    UnknownNameError,
    UnprintableProgramError,
)
from .snippets import buffer_text, element_text, store_text
from .text import Rendered, Span, parse, render, to_text
from .vocabulary import symbols

__all__ = [
    "ConstantMismatchError",
    "DuplicateNameError",
    "MissingConstantError",
    "OutsideFunctionError",
    "ParseError",
    "Place",
    "Rendered",
    "ScriptSyntaxError",
    "ScriptTypeError",
    "SourceUnavailableError",
    "Span",
    "TextTooLargeError",
    "UnknownNameError",
    "UnprintableProgramError",
    "buffer_text",
    "element_text",
    "graph_func",
    "is_writable",
    "module",
    "parse",
    "prim_func",
    "render",
    "store_text",
    "symbols",
    "to_text",
    "writable",
]
