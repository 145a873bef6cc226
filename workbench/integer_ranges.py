"""Ranges of integer arguments that a program uses as indices, from the loads of its kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from ..ir.graph.nodes import Call, CallTIR, GraphFunc, LaunchKernel, Value, ViewTensor
from ..ir.graph.operators import get_operator
from ..ir.graph.visit import all_bindings
from ..ir.loop.nodes import BufferParam, Let, PrimFunc
from ..ir.loop.visit import walk
from ..ir.module import Function, Module
from .render import Samples, at_samples
from .symbols import samples_of

Ranges: TypeAlias = "Mapping[str, tuple[int, int]]"
"""The least value and the exclusive upper bound of the elements of parameters, by name."""


def integer_ranges(program: Module, function: Function, samples: Samples) -> Ranges:
    """Return the ranges in which the loaded indices of a function are at the samples.

    Parameters
    ----------
    program : Module
        The program, whose graphs are lowered: operators have no loads.
    function : Function
        The function; the parameters of a graph are followed through views to its kernels.
    samples : Samples
        The sample values of its symbols.

    Examples
    --------
    >>> from ..ir.script import parse
    >>> module = parse('''
    ... @prim_func
    ... def pick(x: Buffer[(9,), f32], at: Buffer[(4,), i32], y: Out[(4,), f32]):
    ...     for i in range(4):
    ...         with block("y"):
    ...             vi = spatial(i)
    ...             with checked(at[vi], 0, 9) as k:
    ...                 y[vi] = x[k]
    ... ''')
    >>> integer_ranges(module, module.prim("pick"), {})
    {'at': (0, 9)}
    """
    if isinstance(function, PrimFunc):
        return _of_kernel(function, samples)
    chosen = {(function.name, name): value for name, value in samples.items()}
    lowered = program.functions.get(function.name)
    if not isinstance(lowered, GraphFunc):
        return {}
    found: dict[str, tuple[int, int]] = {}
    for name, kernel, argument in _arguments(program, lowered):
        ranges = _of_kernel(kernel, samples_of(program, kernel, chosen))
        if argument in ranges:
            found[name] = _both(found.get(name), ranges[argument])
    return found


def _arguments(program: Module, graph: GraphFunc) -> Iterator[tuple[str, PrimFunc, str]]:
    """Yield each parameter that a kernel reads, with the kernel and the name of its buffer."""
    names = {param.value.uid: param.value.name for param in graph.params}
    for binding in all_bindings(graph.bindings):
        right = binding.right
        viewed = _viewed(right)
        if viewed is not None and viewed.uid in names:
            names[binding.value.uid] = names[viewed.uid]
        if not isinstance(right, CallTIR | LaunchKernel):
            continue
        kernel = program.functions.get(right.function)
        if not isinstance(kernel, PrimFunc):
            continue
        buffers = [p for p in kernel.params if isinstance(p, BufferParam)]
        if isinstance(right, CallTIR):
            buffers = [p for p in buffers if p.access != "out"]
        for param, argument in zip(buffers, right.args, strict=False):
            if isinstance(argument, Value) and argument.uid in names:
                yield names[argument.uid], kernel, param.buffer.name


def _viewed(right: object) -> Value | None:
    """Return the value whose elements a binding only views, in either stage; None for others."""
    match right:
        case Call(op=op, args=(Value() as value, *_)) if get_operator(op).is_view:
            return value
        case ViewTensor(storage=storage):
            return storage
        case _:
            return None


def _of_kernel(kernel: PrimFunc, samples: Samples) -> dict[str, tuple[int, int]]:
    """Return the ranges of the loads of parameters that do not depend on loops."""
    params = {buffer.uid: buffer.name for buffer in kernel.buffer_params}
    found: dict[str, tuple[int, int]] = {}
    for statement in walk(kernel.body):
        if not isinstance(statement, Let) or statement.load.buffer.uid not in params:
            continue
        lower, upper = (at_samples(b, samples) for b in (statement.lower, statement.upper))
        if lower is not None and upper is not None and lower < upper:
            name = params[statement.load.buffer.uid]
            found[name] = _both(found.get(name), (lower, upper))
    return found


def _both(first: tuple[int, int] | None, second: tuple[int, int]) -> tuple[int, int]:
    """Return the intersection of two ranges; the first one if they have no common value."""
    if first is None:
        return second
    low, high = max(first[0], second[0]), min(first[1], second[1])
    return (low, high) if low < high else first
