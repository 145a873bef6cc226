"""The text format of graph-level and loop-level programs: Python syntax that is never executed.

Printing and parsing are exact inverses: names, attributes, facts and access modes are preserved,
and so is the text itself.

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
from ..naming import is_valid_name, to_valid_name
from ..words import OutsideFunctionError
from .decorators import graph_func, module, prim_func
from .errors import (
    BufferScopeError,
    ConstantMismatchError,
    DuplicateNameError,
    ParseError,
    ScriptSyntaxError,
    ScriptTypeError,
    SourceLocation,
    SourceUnavailableError,
    TextTooLargeError,
    UnknownNameError,
    UnprintableProgramError,
)
from .snippets import buffer_text, element_text, store_text
from .text import Rendered, Span, parse, render, to_text
from .vocabulary import symbols

__all__ = [
    "BufferScopeError",
    "ConstantMismatchError",
    "DuplicateNameError",
    "MissingConstantError",
    "OutsideFunctionError",
    "ParseError",
    "Rendered",
    "ScriptSyntaxError",
    "ScriptTypeError",
    "SourceLocation",
    "SourceUnavailableError",
    "Span",
    "TextTooLargeError",
    "UnknownNameError",
    "UnprintableProgramError",
    "buffer_text",
    "element_text",
    "graph_func",
    "is_valid_name",
    "module",
    "parse",
    "prim_func",
    "render",
    "store_text",
    "symbols",
    "to_text",
    "to_valid_name",
]
