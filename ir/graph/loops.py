"""Annotations of graph-level loops: of the values of an iteration, and of the results."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

from ..dtype import bool_
from ..symbolic import (
    ContradictoryFactsError,
    Expr,
    Facts,
    SymInt,
    Var,
    const_value,
    free_vars,
    to_text,
    var,
)
from ..violations import Rule
from . import rules
from .nodes import Info, Loop, LoopParam, Operand, TensorInfo, TupleInfo, operand_info
from .unify import bind_dims, dims_differ, disagreement, operands_text
from .visit import info_terms, loop_symbols, substitute_info


def varying_symbols(loop: Loop, outer: Collection[Var]) -> tuple[Var, ...]:
    """Return the symbols whose values may differ between iterations: the index, and dimensions."""
    return tuple(s for s in loop_symbols(loop) if s not in outer)


def inner_facts(loop: Loop, facts: Facts) -> Facts:
    """Return the facts inside a loop: the index is less than the count."""
    if loop.count is None:
        return facts
    try:
        return facts.assume(loop.index < loop.count, origin="the count of the loop")
    except ContradictoryFactsError:
        return facts  # the body never runs


def result_fields(loop: Loop, info: Info) -> tuple[Info, ...]:
    """Return the annotations of the results of a loop; a single one is not in a tuple."""
    count = len(loop.body.results)
    if count == 1:
        return (info,)
    return info.fields if isinstance(info, TupleInfo) and len(info.fields) == count else ()


def loop_info(loop: Loop, outer: Collection[Var], name: Callable[[str], str] = str) -> Info:
    """Return the annotation of the value of a loop.

    Dimensions that may differ between iterations are new symbols, and so is the number of
    iterations of a loop with a condition; ``name`` chooses their names.

    Examples
    --------
    >>> from ..script import parse
    >>> module = parse('''
    ... n, t, u, k = symbols("n t u k", lower=0)
    ...
    ... @graph_func
    ... def main(x: Tensor[(n, 2), f32]):
    ...     @loop(k, count=3)
    ...     def y(c: Tensor[(t, 2), f32] = x) -> Tensor[(u, 2), f32]:
    ...         d = concat(c, c, axis=0)
    ...         return d
    ...     return y
    ... ''')
    >>> (binding,) = module.graph().bindings
    >>> print(loop_info(binding.right, ()))
    Tensor[(t, 2), f32]
    """
    varying = varying_symbols(loop, outer)[1:]
    after: dict[Var, SymInt] = {
        v: var(name(v.name), lower=v.lower, upper=v.upper, multiple_of=v.multiple_of)
        for v in varying
    }
    fields = [substitute_info(p.value.info, after) for p in loop.carried]
    trips = loop.count
    if trips is None or not loop.exact:
        trips = var(name(f"{loop.index.name}_count"), lower=0)
    fields += [stacked_info(operand_info(o), trips) for o in loop.stacked]
    return fields[0] if len(fields) == 1 else TupleInfo(tuple(fields))


def implied_info(loop: Loop, outer: Collection[Var]) -> Info | None:
    """Return the annotation of the value of a loop, or None if it has symbols of its own."""
    used = {v for p in loop.params for t in info_terms(p.value.info) for v in free_vars(t)}
    varies = used.intersection(varying_symbols(loop, outer))
    return None if varies or (loop.stacked and not loop.exact) else loop_info(loop, outer)


def stacked_info(slice_: Info, count: Expr) -> Info:
    """Return the annotation of a stacked output with slices of an annotation."""
    if not isinstance(slice_, TensorInfo) or slice_.shape is None:
        return slice_
    return TensorInfo((count, *slice_.shape), slice_.dtype, slice_.device)


def condition_problem(condition: Operand) -> str:
    """Describe why an operand is not a condition; empty if it is a bool tensor of shape ``()``."""
    info = operand_info(condition)
    if isinstance(info, TensorInfo) and info.dtype == bool_ and info.shape == ():
        return ""
    return f"expected a condition Tensor[(), bool], got {operands_text((condition,))}"


def loop_problems(
    loop: Loop, info: Info, facts: Facts, outer: Collection[Var]
) -> Iterator[tuple[Rule, str]]:
    """Yield the violated rules of a loop with their descriptions.

    Parameters
    ----------
    loop : Loop
        The loop.
    info : Info
        The annotation of its value.
    facts : Facts
        The facts outside of the loop.
    outer : collection of Var
        The symbols that enclosing scopes define.
    """
    if loop.index in outer:
        yield rules.LOOPS, f"index {loop.index.name!r} is already defined outside of the loop"
    if loop.condition is None and loop.count is None:
        yield rules.LOOPS, "the loop has neither a count nor a condition, so it does not end"
    if loop.condition is not None:
        problem = condition_problem(loop.condition.results[0])
        if problem or len(loop.condition.results) != 1:
            yield rules.CONDITIONS, problem or "expected one result of the condition"
    if len(loop.body.results) < len(loop.carried):
        counts = f"{len(loop.carried)} carried values, got {len(loop.body.results)}"
        yield rules.CARRIED, f"expected a next value for each of the {counts}"
        return
    shapeless = [p for p in loop.params if _unusable(p.value.info)]
    for param in shapeless:
        text = f"carried value {param.value.name!r} is annotated {param.value.info}; expected a "
        yield rules.CARRIED, f"{text}Tensor with a shape and without elements"
    if not shapeless:
        yield from _carried(loop, facts, outer)
        yield from _elements(loop, facts)
        yield from _results(loop, info, facts, outer)


def _unusable(info: Info) -> bool:
    return not isinstance(info, TensorInfo) or info.shape is None or info.elements is not None


def _carried(loop: Loop, facts: Facts, outer: Collection[Var]) -> Iterator[tuple[Rule, str]]:
    """Yield the initial and the next values that differ from the annotation of their value."""
    varying = varying_symbols(loop, outer)[1:]
    inner = inner_facts(loop, facts)
    given = [p.given for p in loop.carried]
    for word, operands, known in (("initial", given, facts), ("next", loop.next_values, inner)):
        formals = [p.value.info for p in loop.carried]
        actuals = [operand_info(o) for o in operands]
        for param, actual, problem in _differences(loop.carried, formals, actuals, varying, known):
            text = f"{param.value.name!r} is annotated {param.value.info}, but its {word} value is"
            hint = "; write a symbol for a dimension that varies" if "axis" in problem else ""
            yield rules.CARRIED, f"{text} {actual}: {problem}{hint}"


def _differences(
    params: Sequence[LoopParam],
    formals: Sequence[Info],
    actuals: Sequence[Info],
    varying: Collection[Var],
    facts: Facts,
) -> Iterator[tuple[LoopParam, Info, str]]:
    """Yield the annotations that do not match for any values of the symbols that vary."""
    bound: dict[Var, Expr] = {}
    for formal, actual in zip(formals, actuals, strict=True):
        if isinstance(formal, TensorInfo) and isinstance(actual, TensorInfo):
            bind_dims(formal, actual, bound)
    values: dict[Var, SymInt] = {v: e for v, e in bound.items() if v in varying}
    for param, formal, actual in zip(params, formals, actuals, strict=True):
        problem = disagreement(actual, substitute_info(formal, values), facts)
        if problem:
            yield param, actual, problem


def _elements(loop: Loop, facts: Facts) -> Iterator[tuple[Rule, str]]:
    """Yield the stacked inputs that have no slice for each iteration."""
    for param in loop.elements:
        source, name = operand_info(param.given), param.value.name
        if loop.count is None:
            yield rules.LOOPS, f"the loop has the stacked input {name!r}, but no count"
            return
        if not isinstance(source, TensorInfo) or not source.shape:
            yield rules.CARRIED, f"the stacked input of {name!r} has no axis 0: {source}"
            continue
        slice_ = TensorInfo(source.shape[1:], source.dtype, source.device)
        problem = disagreement(slice_, param.value.info, facts)
        if problem:
            text = f"{name!r} is annotated {param.value.info}, but it is a slice of {source}"
            yield rules.CARRIED, f"{text}: {problem}"
        if _has_partial_bytes(slice_):
            yield rules.CARRIED, f"slices of {name!r} are {slice_}; {_PARTIAL}"
        problem = dims_differ(source.shape[0], loop.count, facts)
        if problem:
            count = f"the loop has {to_text(loop.count)} iterations"
            yield rules.CARRIED, f"{count}, but {name!r} is a slice of {source}: {problem}"


_PARTIAL: Final = (
    "expected a known number of whole bytes; cast the stacked tensor to a dtype of at least 8 bits"
)


def _has_partial_bytes(slice_: TensorInfo) -> bool:
    """Return whether slices are not known to be a whole number of bytes."""
    sizes = [const_value(d) for d in slice_.shape or ()]
    known = [d for d in sizes if d is not None]
    whole = len(known) == len(sizes) and math.prod(known) * slice_.dtype.bits % 8 == 0
    return slice_.dtype.is_packed and not whole


def _results(
    loop: Loop, info: Info, facts: Facts, outer: Collection[Var]
) -> Iterator[tuple[Rule, str]]:
    """Yield the results whose annotation differs from that of the carried value or the stack."""
    varying = frozenset(varying_symbols(loop, outer))
    fields = result_fields(loop, info)
    if not fields and loop.body.results:
        count = len(loop.body.results)
        yield rules.ANNOTATION, f"the loop has {count} results, but its annotation is {info}"
        return
    bound: dict[Var, Expr] = {}
    pairs = list(zip(loop.carried, fields, strict=False))
    for param, field in pairs:
        if isinstance(param.value.info, TensorInfo) and isinstance(field, TensorInfo):
            bind_dims(param.value.info, field, bound)
    after: dict[Var, SymInt] = {v: e for v, e in bound.items() if v in varying}
    for param, field in pairs:
        problem = disagreement(substitute_info(param.value.info, after), field, facts)
        if problem:
            text = f"the last value of {param.value.name!r} is annotated {field}"
            yield rules.CARRIED, f"{text}, and the carried value {param.value.info}: {problem}"
    for operand, field in zip(loop.stacked, fields[len(loop.carried) :], strict=True):
        yield from _stacked(loop, operand, field, facts, varying)


def _stacked(
    loop: Loop, operand: Operand, field: Info, facts: Facts, varying: Collection[Var]
) -> Iterator[tuple[Rule, str]]:
    slice_, name = operand_info(operand), getattr(operand, "name", "a literal")
    if not isinstance(slice_, TensorInfo) or slice_.shape is None:
        yield rules.CARRIED, f"stacked output {name!r} is not a tensor with a shape: {slice_}"
        return
    moving = sorted(v.name for t in info_terms(slice_) for v in free_vars(t) if v in varying)
    if moving:
        text = f"the slices of stacked output {name!r} are {slice_}; their shape depends on"
        yield rules.CARRIED, f"{text} {', '.join(moving)}, which differs between iterations"
        return
    if _has_partial_bytes(slice_):
        yield rules.CARRIED, f"the slices of stacked output {name!r} are {slice_}; {_PARTIAL}"
    length = field.shape[0] if isinstance(field, TensorInfo) and field.shape else None
    count = loop.count if loop.exact and loop.count is not None else length
    if count is not None:
        problem = disagreement(stacked_info(slice_, count), field, facts)
        if problem:
            yield rules.CARRIED, f"stacked output {name!r} is annotated {field}: {problem}"
    if not loop.exact and not isinstance(length, Var):
        text = f"stacked output {name!r} is annotated {field}; the number of iterations is not "
        yield rules.CARRIED, f"{text}known before the loop, so expected a new symbol as dimension 0"
