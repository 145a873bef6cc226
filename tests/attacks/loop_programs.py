"""Hand-written programs with NumPy references, which the random families do not contain.

A program is a function as text, without its decorator and without the declarations of its symbols.
Loops may repeat a name. Symbols that are not a dimension by themselves become integer parameters.
"""

from __future__ import annotations

import inspect
import re
import warnings
from dataclasses import dataclass, field
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.ir.interpreter import run_prim
from tilewright.ir.loop.nodes import BufferParam
from tilewright.ir.script import parse

from tests.fuzz.inputs import arguments, iterations, legal
from tests.fuzz.oracles import Original, snapshot
from tests.fuzz.program import Indices, Program
from tests.strategies import scalars, symbols_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tilewright.ir.loop.nodes import PrimFunc
    from tilewright.ir.symbolic import Var

SIZES = (0, 1, 2, 3, 7, 16, 17, 33, 67, 130)
WORK = 1500
"""The largest number of statements of one run."""

REGISTERED: dict[str, Case] = {}


@dataclass(frozen=True)
class Case:
    """A program, its reference, and the sizes of its runs."""

    name: str
    text: str
    reference: Callable[..., Any]
    exact: bool = True
    indices: Mapping[str, Indices] = field(default_factory=dict)
    sizes: Sequence[Mapping[str, int]] | None = None
    prepare: Callable[..., Any] | None = None
    tolerance: float = 1e-4
    gpu: bool = True

    @property
    def has_gpu_rule(self) -> bool:
        """Whether the default rule binds all loops; a loop that is parallel stays on CPUs."""
        return self.gpu and " in parallel(" not in self.text

    def original(self) -> tuple[Original, list[dict[Var, int]]]:
        """Return the program with its results, which equal the reference, and its sizes."""
        module = parse(self.text)
        made = Program("attack", self.text, exact=self.exact, indices=self.indices)
        original = Original(made, module)
        function = original.function
        affordable = [
            env
            for env in self._sizes(symbols_of(function))
            if legal(made, function, env) and iterations(function.body, env) <= WORK
        ]
        for env in affordable:
            given = arguments(made, function, env)
            if self.prepare is not None:
                _call(self.prepare, function, given, env)
            arrays, wanted = snapshot(given), snapshot(given)
            run_prim(function, arrays, scalars(function, env))
            _call(self.reference, function, wanted, env)
            self._compare(arrays, wanted, env)
            original.runs[tuple(env.values())] = given, arrays
        assert affordable, self.name
        return original, affordable

    def _sizes(self, symbols: Sequence[Var]) -> Iterator[dict[Var, int]]:
        if not symbols:
            yield {}
        elif self.sizes is not None:
            for chosen in self.sizes:
                yield {v: chosen[v.name] for v in symbols}
        else:
            for k, size in enumerate(SIZES):
                yield dict.fromkeys(symbols, size)
                if len(symbols) > 1:
                    yield {v: SIZES[(k + 3 * p + 1) % 10] for p, v in enumerate(symbols)}

    def _compare(self, actual, wanted, env: Mapping[Var, int]) -> None:
        for mine, reference in zip(actual, wanted, strict=True):
            message = f"{self.name} at {env}"
            if self.exact or mine.dtype.kind in "iub":
                both = (x if x.dtype.isbuiltin == 1 else x.astype("f8") for x in (mine, reference))
                np.testing.assert_array_equal(*both, message)
            else:
                close = self.tolerance
                np.testing.assert_allclose(mine, reference, close, close, err_msg=message)


def _call(reference, function: PrimFunc, arrays, env: Mapping[Var, int]) -> None:
    """Call a reference with the arrays and symbols that its required parameters name."""
    buffers = [p.buffer.name for p in function.params if isinstance(p, BufferParam)]
    known = {v.name: x for v, x in env.items()} | dict(zip(buffers, arrays, strict=True))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = inspect.signature(reference).parameters.values()
        reference(**{p.name: known[p.name] for p in wanted if p.default is p.empty})


def program(symbols: str, text: str, *, lower: int = 0, **options):
    """Register the decorated function as the reference of a program."""
    names = symbols.split()
    body = dedent(text).strip("\n")
    head = "".join(f'{s} = symbols("{s}", lower={lower})\n' for s in names)
    signature = body[body.index("(") : body.index("):\n")]
    integers = [s for s in names if not re.search(rf"[(,] *{s} *[,)]|\b{s}: Int", signature)]
    body = body.replace("(", "(" + "".join(f"{s}: Int, " for s in integers), 1)
    found = re.match(r"def (\w+)", body)
    assert found, text
    assert found[1] not in REGISTERED, text
    whole = f"{head}\n@prim_func\n{_renamed(body)}\n"

    def register(reference):
        REGISTERED[found[1]] = Case(found[1], whole, reference, **options)
        return reference

    return register


def _renamed(body: str) -> str:
    """Return the text with a different name for each loop."""
    lines, scopes, counts = [], [], {}
    for line in body.split("\n"):
        depth = len(line) - len(line.lstrip())
        while line.strip() and scopes and scopes[-1][0] >= depth:
            scopes.pop()
        outer = {old: new for _, old, new in scopes if old != new}
        text = re.sub(r"\"\w+\"|'\w+'|\b[a-z]\w*\b", lambda m, o=outer: o.get(m[0], m[0]), line)
        loop = re.match(r" *for (\w+) in (.*)", line)
        if loop:
            name, count = loop[1], counts.get(loop[1], 0)
            counts[name] = count + 1
            new = f"{name}_{count}" if count else name
            text = f"{line[:depth]}for {new} in {text.split(' in ', 1)[1]}"
            scopes.append((depth, name, new))
        lines.append(text)
    return "\n".join(lines)
