"""Shaders that record a loop that the driver ends before its condition does.

Mesa's driver for processors, llvmpipe, ends every loop of an invocation after the loops together
had 65,535 iterations, and continues behind it. Such a shader has wrong results without an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from .emitter import INDENT

_FOR: Final = re.compile(r"( *)for \((var [^;]*); ([^;]*); ([^;]*)\) \{")
_LOOP: Final = re.compile(r"( *)loop \{")

_RECORD: Final = """\
@group(0) @binding({binding}) var<storage, read_write> tw_ended: atomic<u32>;

fn tw_loop_ended() {{
    atomicStore(&tw_ended, {number}u);
}}

"""


@dataclass(frozen=True, slots=True)
class _Open:
    """A loop that is not closed yet: its indentation, and the condition of its early end."""

    indent: str
    early: str
    flag: str = ""


def guarded(text: str, binding: int, number: int) -> str:
    r"""Return a shader that stores a number if one of its loops ends while its condition holds.

    Parameters
    ----------
    text : str
        A shader of :func:`.emit_shaders`.
    binding : int
        The binding of the word that the number is stored to.
    number : int
        The number, not 0.

    Examples
    --------
    >>> made = guarded("for (var i = 0i; i < n; i++) {\n    f(i);\n}", 1, 7)
    >>> made.split("\n")[0]
    '@group(0) @binding(1) var<storage, read_write> tw_ended: atomic<u32>;'
    """
    lines: list[str] = []
    stack: list[_Open] = []
    flags = 0
    for line in text.split("\n"):
        counted, endless = _FOR.fullmatch(line), _LOOP.fullmatch(line)
        if counted:
            indent, start, condition, step = counted.groups()
            lines += [f"{indent}{{", f"{indent}{start};", f"{indent}for (; {condition}; {step}) {{"]
            stack.append(_Open(indent, condition))
        elif endless:
            (indent,), flag = endless.groups(), f"tw_whole_{flags}"
            flags += 1
            lines += [f"{indent}{{", f"{indent}var {flag} = false;", line]
            stack.append(_Open(indent, f"!{flag}", flag))
        elif stack and line == f"{stack[-1].indent}}}":
            ended = stack.pop()
            lines += [line, f"{ended.indent}if {ended.early} {{"]
            lines += [f"{ended.indent}{INDENT}tw_loop_ended();", f"{ended.indent}}}"]
            lines.append(f"{ended.indent}}}")
        elif stack and stack[-1].flag and line.strip() == "break;":
            indent = line.removesuffix("break;")
            lines += [f"{indent}{stack[-1].flag} = true;", line]
        else:
            lines.append(line)
    if len(lines) == text.count("\n") + 1:
        return text
    enables = [line for line in lines if line.startswith("enable ")]
    body = "\n".join(line for line in lines if line not in enables)
    head = "".join(f"{line}\n" for line in enables)
    return head + _RECORD.format(binding=binding, number=number) + body
