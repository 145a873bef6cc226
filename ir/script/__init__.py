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

from ..naming import is_writable, writable
from .errors import (
    ConstantMismatchError,
    DuplicateNameError,
    MissingConstantError,
    ParseError,
    Place,
    ScriptSyntaxError,
    ScriptTypeError,
    TextTooLargeError,
    UnknownNameError,
    UnprintableProgramError,
)
from .text import Rendered, Span, parse, render, to_text

__all__ = [
    "ConstantMismatchError",
    "DuplicateNameError",
    "MissingConstantError",
    "ParseError",
    "Place",
    "Rendered",
    "ScriptSyntaxError",
    "ScriptTypeError",
    "Span",
    "TextTooLargeError",
    "UnknownNameError",
    "UnprintableProgramError",
    "is_writable",
    "parse",
    "render",
    "to_text",
    "writable",
]
