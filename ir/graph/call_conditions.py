"""Conditions under which the arguments of a call have the shapes of the parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..loop.nodes import Buffer, BufferParam, PrimFunc
from ..symbolic import TRUE, Bool, Expr, Var, eq, substitute, to_text
from .nodes import CallTIR, Info, operand_info


@dataclass(frozen=True, slots=True)
class CallCondition:
    """A condition over the symbols of the caller, and the description of its part of the call."""

    claim: Bool
    text: str


def argument_infos(func: PrimFunc, call: CallTIR) -> Iterator[tuple[Buffer, Info]]:
    """Yield the buffer parameters of a kernel with the annotations of their arguments.

    Examples
    --------
    >>> from ..script import parse
    >>> module = parse('''
    ... @prim_func
    ... def f(y: Out[(4,), f32], x: Buffer[(4,), i32]):
    ...     for i in range(4):
    ...         y[i] = f32(x[i])
    ...
    ... @graph_func
    ... def main(x: Tensor[(4,), i32]):
    ...     y: Tensor[(4,), f32] = call_tir(f, x)
    ...     return y
    ... ''')
    >>> call = module.graph().bindings[0].right
    >>> [f"{b.name}: {info.dtype}" for b, info in argument_infos(module.prim("f"), call)]
    ['y: f32', 'x: i32']
    """
    args, outputs = iter(map(operand_info, call.args)), iter(call.outputs)
    for param in func.params:
        if isinstance(param, BufferParam):
            info = next(outputs if param.access == "out" else args, None)
            if info is not None:
                yield param.buffer, info


def symbol_values(
    func: PrimFunc, dims: Sequence[tuple[Expr, ...]], scalars: Sequence[Expr]
) -> dict[Var, Expr]:
    """Return the values of the symbols that the arguments of a kernel determine."""
    known: dict[Var, Expr] = {
        symbol: symbol for b in func.buffer_params for t in b.strides or () for symbol in t.free
    }
    for buffer, given in zip(reversed(func.buffer_params), reversed(dims), strict=True):
        pairs = zip(buffer.shape, given, strict=True)
        known |= {wanted: dim for wanted, dim in pairs if isinstance(wanted, Var)}
    known |= dict(zip(func.scalar_params, scalars, strict=True))
    return known


def bound_conditions(values: Mapping[Var, Expr], callee: str) -> Iterator[CallCondition]:
    """Yield the declared bounds of the symbols of a callee that their values need not satisfy.

    Examples
    --------
    >>> from ..symbolic import var
    >>> n, k = var("n", lower=0), var("k", lower=0, upper=4)
    >>> [c.text for c in bound_conditions({k: n}, "f")]
    ["call of 'f', symbol 'k' = n: k <= 4"]
    """
    for symbol, value in values.items():
        if symbol is value:
            continue
        claims = list[tuple[Bool, str]]()
        if symbol.lower is not None:
            claims.append((value >= symbol.lower, f"{symbol.name} >= {symbol.lower}"))
        if symbol.upper is not None:
            claims.append((value <= symbol.upper, f"{symbol.name} <= {symbol.upper}"))
        if symbol.multiple_of > 1:
            multiple = f"{symbol.name} is a multiple of {symbol.multiple_of}"
            claims.append((eq(value % symbol.multiple_of, 0), multiple))
        for claim, text in claims:
            if claim is not TRUE:
                given = f"call of {callee!r}, symbol {symbol.name!r} = {to_text(value)}"
                yield CallCondition(claim, f"{given}: {text}")


def kernel_conditions(
    kernel: PrimFunc, dims: Sequence[tuple[Expr, ...]], values: Mapping[Var, Expr]
) -> Iterator[CallCondition]:
    """Yield the conditions of a launch that are not true for all values.

    Parameters
    ----------
    kernel : PrimFunc
        The kernel.
    dims : sequence of tuple of Expr
        The dimensions of each buffer argument.
    values : Mapping of Var to Expr
        The values of the symbols of the kernel.
    """
    for buffer, given in zip(kernel.buffer_params, dims, strict=True):
        for axis, (wanted, dim) in enumerate(zip(buffer.shape, given, strict=True)):
            expected = substitute(wanted, values)
            claim = TRUE if dim is expected else eq(dim, expected)
            if claim is not TRUE:
                where = f"call of {kernel.name!r}, parameter {buffer.name!r}, dimension {axis}"
                yield CallCondition(claim, f"{where}: {to_text(dim)} == {to_text(expected)}")
    yield from bound_conditions(values, kernel.name)
