"""Choice between the versions of a kernel with 32-bit and with 64-bit indices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from ....errors import MalformedProgramError
from ....ir.host import nodes as host
from ....ir.symbolic import Add, Const, Expr, FloorDiv, Mul, Var, const_value, to_text
from ....ir.thread.index_width import SHORT_LIMIT, SUFFIX, largest
from .context import HostContext, HostKernel, integer


def short_name(name: str) -> str:
    """Return the symbol of the version of a kernel with 32-bit indices."""
    return name + SUFFIX


def limit_texts(limits: Iterable[Expr], names: Mapping[Var, str]) -> tuple[str, ...]:
    """Return the conditions of the version with 32-bit indices as text."""
    return tuple(f"{to_text(limit, names)} < 2**31" for limit in limits)


def kernel_limits(kernels: Mapping[str, HostKernel]) -> Mapping[str, tuple[str, ...]]:
    """Return these conditions for each kernel that has two versions."""
    return MappingProxyType(
        {
            name: limit_texts(kernel.limits, {s: s.name for s in kernel.symbols})
            for name, kernel in kernels.items()
            if kernel.limits
        }
    )


def short_indices(
    context: HostContext, name: str, limits: Iterable[Expr], values: Iterable[tuple[Var, Expr]]
) -> host.Value | bool:
    """Return whether the version with 32-bit indices runs.

    Parameters
    ----------
    context : HostContext
        The state of lowering a function.
    name : str
        The kernel.
    limits : iterable of Expr
        The limits of its version with 32-bit indices; none if there is no such version.
    values : iterable of tuple of Var and Expr
        The values of the integer parameters of the kernel.

    Returns
    -------
    host.Value or bool
        A condition at run time, or a truth value if it is known.
    """
    given = tuple(limits)
    if not given:
        return False
    terms = dict(values)
    constants = {v: c for v, e in terms.items() if (c := const_value(e)) is not None}
    known = [limit for limit in given if limit.free <= constants.keys()]
    if any(largest(limit, constants) >= SHORT_LIMIT for limit in known):
        return False
    rest = [limit for limit in given if limit not in known]
    if not rest:
        return True
    sizes = _Magnitudes(context, name, terms)
    fits = [host.Comparison("lt", sizes.of(limit), integer(SHORT_LIMIT)) for limit in rest]
    found: host.Value = fits[0]
    for other in fits[1:]:
        found = host.Arithmetic("and", found, other)
    return found


class _Magnitudes:
    """The emitter of the values of limits, at most the limit of sizes."""

    def __init__(self, context: HostContext, name: str, terms: Mapping[Var, Expr]) -> None:
        self._context = context
        self._where = f"launch of {name!r}"
        self._terms = terms
        self._known: dict[Expr, host.Value] = {}

    def of(self, limit: Expr) -> host.Value:
        """Return the value of a limit or a part of it."""
        if limit not in self._known:
            self._known[limit] = self._compute(limit)
        return self._known[limit]

    def _compute(self, limit: Expr) -> host.Value:
        context = self._context
        match limit:
            case Const(value):
                return integer(value)
            case Var():
                value = context.ready(self._terms[limit], self._where)
                return context.invoke("tw_magnitude", value)
            case Add(terms, constant):
                total = integer(constant) if constant else None
                for term, c in terms:
                    part = self.of(term)
                    part = part if c == 1 else context.invoke("tw_scale", integer(c), part)
                    total = part if total is None else context.invoke("tw_join", total, part)
                return integer(0) if total is None else total
            case Mul(factors):
                total = self.of(factors[0])
                for factor in factors[1:]:
                    total = context.invoke("tw_scale", total, self.of(factor))
                return total
            case FloorDiv(numerator, divisor):
                divided = self.of(numerator), integer(const_value(divisor) or 1)
                return context.assign("quotient", host.Arithmetic("floordiv", *divided))
            case _:
                raise MalformedProgramError(f"{limit} is not a limit of an index")
