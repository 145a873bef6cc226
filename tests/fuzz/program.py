"""Random programs as text, and the parts that the families of programs share.

Programs are text, so that a failing one can be pasted into a test. Each declares which integers of
its inputs are indices. Arithmetic is exact on the data of `inputs` (integers wrap around, floats
are small integers), so that results compare bit for bit in any order of evaluation; programs with
rounding have ``exact=False``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from textwrap import dedent, indent
from typing import TYPE_CHECKING, Literal

from tilewright.ir.script import parse

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence

    from tilewright.ir.loop.nodes import PrimFunc
    from tilewright.ir.module import Module

INTEGERS = ("i8", "u8", "i32", "i64")
FLOATS = ("f16", "bf16", "f32", "f64")
NUMBERS = (*INTEGERS, *FLOATS)
COMMON = ("f32", "f32", "f32", "i32", "i8", "f16", "f64")
"""The dtypes of programs whose structure matters more than their dtype."""


@dataclass(frozen=True)
class Indices:
    """The values of an input that a program uses as indices.

    Parameters
    ----------
    low, high : str
        The values are at least ``low`` and less than ``high``, terms of the symbols.
    order : str
        ``any`` with repetitions, ``sorted`` from ``low`` on, or ``distinct``.
    """

    low: str
    high: str
    order: Literal["any", "sorted", "distinct"] = "any"


@dataclass(frozen=True)
class Program:
    """The text of a function ``random``, the meaning of its inputs, and whether it is exact.

    Parameters
    ----------
    family : str
        The family that made it.
    text : str
        The program; it parses to a module of one function.
    exact : bool
        Whether results compare bit for bit.
    indices : Mapping of str to Indices
        The inputs that are used as indices.
    relations : tuple of str
        Conditions on the symbols beyond their declarations, for inputs that cannot exist otherwise.
    """

    family: str
    text: str
    exact: bool = True
    indices: Mapping[str, Indices] = field(default_factory=dict)
    relations: tuple[str, ...] = ()

    @property
    def module(self) -> Module:
        """The parsed module."""
        return parse(self.text)

    @property
    def function(self) -> PrimFunc:
        """The parsed function."""
        return self.module.prims[0]


class Maker:
    """A source of random parts of one program."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.symbols: dict[str, int] = {}

    def chance(self, probability: float) -> bool:
        """Return True with a probability."""
        return self.rng.random() < probability

    def extent(self, symbol: str, *constants: int, least: int = 0) -> str:
        """Draw a symbol (more often than a constant), with lower bound 0 half of the time."""
        if self.chance(0.65):
            self.symbols[symbol] = least or self.rng.randint(0, 1)
            return symbol
        return str(self.rng.choice(constants or (1, 3, 4, 6, 16)))

    def symbol(self, name: str, least: int = 0) -> str:
        """Declare a symbol."""
        self.symbols[name] = least or self.rng.randint(0, 1)
        return name

    def dtype(self, *options: str) -> str:
        """Draw a dtype."""
        return self.rng.choice(options or NUMBERS)

    def pick(self, *options: str) -> str:
        """Draw one of several texts."""
        return self.rng.choice(options)

    def value(self, dtype: str, *loads: str) -> str:
        """Draw an element that is exact: sums, differences, extrema and small products."""
        first, *rest = loads
        for load in rest:
            first = self.pick(
                f"{first} + {load}", f"{first} - {load}", f"max({first}, {load})",
                f"min({first}, {load})", f"where({first} > {load}, {first}, {load})",
            )  # fmt: skip
        if not rest or self.chance(0.3):
            first = self.pick(
                first, f"-({first})", f"({first}) + {dtype}(1)", f"({first}) * {dtype}(2)",
                f"max({first}, {zero(dtype)})", f"abs({first})",
            )  # fmt: skip
        return first

    def text(self, params: Sequence[str], body: str, local: Sequence[str] = ()) -> str:
        """Return a function with the declarations of the drawn symbols.

        A symbol that is not a dimension by itself becomes an integer parameter.
        """
        shown = ", ".join(params)
        used = {s: low for s, low in self.symbols.items() if re.search(rf"\b{s}\b", shown + body)}
        lines = [f'{s} = symbols("{s}", lower={low})' for s, low in used.items()]
        scalars = [f"{s}: Int" for s in used if not re.search(rf"[(,] *{s}[,)]", shown)]
        head = f"def random({', '.join([*scalars, *params])}):"
        temporaries = "".join(f"    {line}\n" for line in local)
        inner = indent(dedent(body).strip("\n"), "    ")
        return "\n".join([*lines, "", "@prim_func", head, f"{temporaries}{inner}\n"])


def buffer(name: str, dims: Sequence[str], dtype: str, kind: str = "Buffer") -> str:
    """Return the declaration of a buffer parameter."""
    inner = ", ".join(dims) + ("," if len(dims) == 1 else "")
    return f"{name}: {kind}[({inner}), {dtype}]"


def strided(rng: random.Random, name: str, dims: Sequence[str], dtype: str) -> str:
    """Return the declaration of a matrix, sometimes with a row stride above its row length."""
    if len(dims) == 2 and rng.random() < 0.2:
        pad = rng.choice([1, 4])
        return f"{name}: Buffer(({dims[0]}, {dims[1]}), {dtype}, strides=({dims[1]} + {pad}, 1))"
    return buffer(name, dims, dtype)


def alloc(name: str, dims: Sequence[str], dtype: str) -> str:
    """Return the allocation of a temporary."""
    inner = ", ".join(dims) + ("," if len(dims) == 1 else "")
    return f"{name} = alloc(({inner}), {dtype})"


def at(name: str, indices: Sequence[str]) -> str:
    """Return the access of an element."""
    return f"{name}[{', '.join(indices)}]" if indices else f"{name}[()]"


def nest(loops: Sequence[tuple[str, str]], lines: Sequence[str]) -> str:
    """Return lines inside loops over extents."""
    found = [f"{'    ' * d}for {v} in range({e}):" for d, (v, e) in enumerate(loops)]
    return "\n".join([*found, *("    " * len(loops) + line for line in lines)])


def block(
    m: Maker, name: str, axes: Sequence[tuple[str, str, str]], lines: Sequence[str], guard: str = ""
) -> str:
    """Return a block whose axis ``vi`` is bound to loop ``i``, sometimes with other loop orders.

    Parameters
    ----------
    m : Maker
        The source of the order.
    name : str
        The name of the block.
    axes : Sequence of tuple
        The loop, its extent, and the kind of the axis or its binding, as ``spatial(n, i)``; an
        extent may contain earlier loops.
    lines : Sequence of str
        The stores.
    guard : str
        A condition over the loops.
    """
    loops = [(loop, extent) for loop, extent, _ in axes]
    if m.chance(0.3) and not any(re.search(rf"\b{v}\b", e) for v, _ in loops for _, e in loops):
        first, *rest = loops
        loops = [*rest, first]
    kinds = ", ".join(k if "(" in k else f"{k}({loop})" for loop, _, k in axes)
    head = [f'with block("{name}"):', f"    {', '.join(f'v{v}' for v, _, _ in axes)} = {kinds}"]
    guards = [f"    guard({guard})"] if guard else []
    return nest(loops, [*head, *guards, *(f"    {line}" for line in lines)]) + "\n"


def zero(dtype: str) -> str:
    """Return the element 0 of a dtype."""
    return "False" if dtype == "bool" else f"{dtype}(0)"


def lowest(dtype: str) -> str:
    """Return the neutral element of ``max``."""
    return {"i8": "i8(-128)", "u8": "u8(0)", "i32": "i32(-2147483648)"}.get(
        dtype, "-inf" if dtype in FLOATS else f"{dtype}(-1000)"
    )


def highest(dtype: str) -> str:
    """Return the neutral element of ``min``."""
    return {"i8": "i8(127)", "u8": "u8(255)", "i32": "i32(2147483647)"}.get(
        dtype, "inf" if dtype in FLOATS else f"{dtype}(1000)"
    )
