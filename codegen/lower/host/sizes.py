"""Checks that sizes are not negative and do not overflow, executed once per new shape.

Constant sizes are checked when the program is compiled.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ....errors import MalformedProgramError
from ....ir.analysis.widths import compared, fits
from ....ir.host import nodes as host
from ....ir.symbolic import (
    Add,
    Const,
    Expr,
    FloorDiv,
    Max,
    Min,
    Mod,
    Mul,
    Select,
    Var,
    const_value,
)
from ...errors import StaticSizeError
from ...manifest import CheckSite
from .context import HostContext, integer

LIMIT = 1 << 60
"""The number of bytes or elements that counts as an overflow, as in the run-time library."""


def check_static_size(size: Expr, name: str, function: str) -> None:
    """Check that a constant size of a tensor in bytes does not overflow.

    Raises
    ------
    StaticSizeError
        If it does; the message contains its number of bits.
    """
    value = const_value(size)
    if value is None or value < LIMIT:
        return
    raise StaticSizeError(
        f"{name} has {value} bytes, a number of {value.bit_length()} bits; sizes must be less "
        f"than 2**{LIMIT.bit_length() - 1}",
        where=f"function {function!r}",
        hint="use smaller constants in the shapes of the program",
        details={"name": name, "bits": value.bit_length()},
    )


def _check_constant(term: Expr, function: str) -> None:
    value = const_value(term)
    if value is not None and not fits(value):
        raise StaticSizeError(
            f"integer {value} does not fit into 64 bits",
            where=f"function {function!r}",
            hint="use smaller constants in the program",
            details={"name": str(value), "bits": value.bit_length()},
        )


class Sizes:
    """The emitter of size checks; each size is checked once."""

    def __init__(self, context: HostContext) -> None:
        """Initialize without checked sizes."""
        self.context = context
        self.checked: set[Expr] = set()

    def check(self, sizes: Sequence[Expr]) -> None:
        """Emit checks that sizes are at least 0 and that no intermediate value overflows."""
        context = self.context
        known: dict[Expr, host.Value] = {}
        for size in dict.fromkeys(sizes):
            if const_value(size) is not None or size in self.checked:
                continue
            value = context.ready(size, "a size")
            largest = self.magnitude(size, known)
            fits = host.Comparison("lt", largest, integer(LIMIT))
            context.guard(fits, CheckSite("overflow", str(size)), value)
            if (size.lower or -1) < 0:
                site = CheckSite("negative", str(size))
                context.guard(host.Comparison("ge", value, integer(0)), site, value)

    def fit(self, terms: Iterable[Expr]) -> None:
        """Emit checks that no intermediate value of integer terms overflows."""
        known: dict[Expr, host.Value] = {}
        for term in dict.fromkeys(terms):
            _check_constant(term, self.context.function.name)
            if const_value(term) is None and term not in self.checked:
                for symbol in sorted(term.free, key=lambda v: v.name):
                    self.context.ready(symbol, "an index")  # a division may run in a branch only
                largest = self.magnitude(term, known)
                smaller = host.Comparison("lt", largest, integer(LIMIT))
                self.context.guard(smaller, CheckSite("overflow", str(term)), largest)

    def magnitude(self, expr: Expr, known: dict[Expr, host.Value]) -> host.Value:
        """Return an upper bound of the absolute values of a term and all its subterms."""
        if expr not in known:
            known[expr] = self.compute(expr, known)
        return known[expr]

    def compute(self, expr: Expr, known: dict[Expr, host.Value]) -> host.Value:
        """Compute the bound of one term from the bounds of its subterms."""
        match expr:
            case Const(value):
                return integer(min(abs(value), LIMIT))
            case Var():
                return self.context.invoke("tw_magnitude", host.Term(expr))
            case Add(terms, constant):
                parts: list[host.Value] = [
                    self.times(self.magnitude(t, known), integer(min(abs(c), LIMIT)))
                    if abs(c) != 1
                    else self.magnitude(t, known)
                    for t, c in terms
                ]
                offset = [integer(min(abs(constant), LIMIT))] if constant else []
                return self.joined([*parts, *offset])
            case Mul(factors):
                value = self.magnitude(factors[0], known)
                for factor in factors[1:]:
                    value = self.times(value, self.magnitude(factor, known))
                return value
            case FloorDiv(numerator, divisor) | Mod(numerator, divisor):
                return self.joined([self.magnitude(e, known) for e in (numerator, divisor)])
            case Min(args) | Max(args):
                return self.joined([self.magnitude(a, known) for a in args])
            case Select(condition, then, otherwise):
                used = (then, otherwise, *compared(condition))
                return self.joined([self.magnitude(e, known) for e in used])
            case _:  # `Expr` is an open base class; the cases above are all kinds of terms.
                raise MalformedProgramError(
                    f"cannot bound size {expr}: unsupported term {type(expr).__name__}"
                )

    def times(self, a: host.Value, b: host.Value) -> host.Value:
        """Emit a multiplication that saturates on overflow."""
        return self.context.invoke("tw_scale", a, b)

    def joined(self, parts: Sequence[host.Value]) -> host.Value:
        """Emit an addition that saturates on overflow."""
        total = parts[0]
        for part in parts[1:]:
            total = self.context.invoke("tw_join", total, part)
        return total
