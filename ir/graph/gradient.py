"""Reverse-mode differentiation of a graph-level function in the dataflow stage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from ...nearest import nearest
from ..identity import Names, UidSource
from ..naming import to_valid_name
from .builder import GraphBuilder
from .nodes import (
    Binding,
    Call,
    CallDPSLibrary,
    CallGraph,
    CallTIR,
    ConstantRef,
    GraphFunc,
    IfElse,
    Info,
    Loop,
    MakeTuple,
    MatchCast,
    Operand,
    Rhs,
    TensorInfo,
    TupleInfo,
    TupleItem,
    Value,
    operand_info,
)
from .operators import get_operator
from .operators.errors import MissingGradientError, NotDifferentiableError
from .operators.gradients import GradientCall, conformed, zeros
from .operators.shape_inference import CallFacts
from .visit import (
    all_values,
    inner_bindings,
    map_operands,
    operands_of,
    replace_values,
    used_operands,
)

_HINT: Final = "differentiate before lowering; a custom operator can define its gradient"
_HINT_LOOPS: Final = (
    "a loop of a known number of iterations can be written as that many copies of its body; else "
    "differentiate a function that computes one iteration, and state the loop over its gradient"
)

Path: TypeAlias = tuple[int, ...]
"""The position of a tensor in nested tuples; empty for a tensor."""


def with_gradient(
    function: GraphFunc,
    parameters: Sequence[str] = (),
    result: int = 0,
    *,
    name: str | None = None,
    mint: UidSource | None = None,
) -> GraphFunc:
    """Return a function that also returns the gradient of one of its results.

    Parameters
    ----------
    function : GraphFunc
        A function in the dataflow stage whose parameters are all inputs.
    parameters : sequence of str
        The names of parameters, and the keys of constants, by which to differentiate; all
        floating-point parameters if empty.
    result : int
        The position of the result to differentiate. If it is not a scalar, its cotangent becomes
        the last parameter of the new function.
    name : str, optional
        The name of the new function.
    mint : UidSource, optional
        The source of uids of new values.

    Returns
    -------
    GraphFunc
        The function that returns the results of `function`, then one gradient per parameter, with
        its shape and dtype. The gradient of a parameter that the result does not depend on is zero.

    Raises
    ------
    NotDifferentiableError
        If a parameter or the result does not exist or is not a floating-point tensor, or if the
        function updates parameters.
    MissingGradientError
        If an operation between the parameters and the result has no gradient; all are listed.

    Examples
    --------
    >>> from ..script import parse
    >>> module = parse('''
    ... @graph_func
    ... def main(x: Tensor[(3,), f32]):
    ...     t = exp(x)
    ...     y = sum(t)
    ...     return y
    ... ''')
    >>> print(with_gradient(module.graph("main"), ("x",)))
    @graph_func
    def main(x: Tensor[(3,), f32]):
        t: Tensor[(3,), f32] = exp(x)
        y: Tensor[(), f32] = sum(t)
        one: Tensor[(), f32] = full((), 1.0, dtype="f32")
        reshape: Tensor[(1,), f32] = reshape(one, (1,))
        broadcast_to: Tensor[(3,), f32] = broadcast_to(reshape, (3,))
        x_gradient: Tensor[(3,), f32] = multiply(broadcast_to, t)
        return y, x_gradient
    """
    return _Differentiation(function, parameters, result, name or function.name, mint).function()


class _Differentiation:
    """The gradient of one result of a function."""

    def __init__(
        self,
        function: GraphFunc,
        parameters: Sequence[str],
        result: int,
        name: str,
        mint: UidSource | None,
    ) -> None:
        self.source = function
        self.where = f"function {function.name!r}"
        self._check_stage()
        self.targets = self._targets(parameters)
        self.output = self._output(result)
        self.graph = GraphBuilder.extending(function, name, mint)
        self.replaced: dict[Operand, Operand] = {}
        self.active: set[Operand] = set(self.targets)
        self.cotangents: dict[tuple[Operand, Path], Operand] = {}
        self.missing: list[str] = []

    def _error(self, message: str, hint: str = "") -> NotDifferentiableError:
        return NotDifferentiableError(message, where=self.where, hint=hint)

    def _check_stage(self) -> None:
        function = self.source
        if function.stage != "dataflow":
            raise self._error(
                f"the function is in the {function.stage} stage; expected the dataflow stage",
                "differentiate before plan_memory",
            )
        written = [p.value.name for p in function.params if p.access != "in"]
        if written:
            listed = ", ".join(map(repr, written))
            raise self._error(
                f"the function updates its parameters {listed}",
                "pass the old values as inputs, and return the new ones",
            )

    def _targets(self, names: Sequence[str]) -> tuple[Operand, ...]:
        params: dict[str, Operand] = {p.value.name: p.value for p in self.source.params}
        constants = {
            o.key: o for o in used_operands(self.source.bindings) if isinstance(o, ConstantRef)
        }
        known = {**constants, **params}
        chosen = names or [n for n, p in params.items() if _is_float(operand_info(p))]
        if not chosen:
            raise self._error("the function has no floating-point parameter")
        for name in chosen:
            if name not in known:
                near = nearest(name, known) or list(known)
                raise self._error(
                    f"no parameter {name!r}", f"parameters are {', '.join(near) or 'none'}"
                )
            info = operand_info(known[name])
            if not _is_float(info):
                message = f"parameter {name!r} is {_described(info)}"
                raise self._error(message, "gradients exist for floating-point tensors")
            if isinstance(info, TensorInfo) and info.shape is None:
                raise self._error(
                    f"the shape of parameter {name!r} is unknown, and so is that of its gradient",
                    "state the shape, or name the parameters to differentiate by",
                )
        return tuple(known[name] for name in chosen)

    def _output(self, position: int) -> Operand:
        results = self.source.results
        if not 0 <= position < len(results):
            count = "1 result" if len(results) == 1 else f"{len(results)} results"
            raise self._error(f"no result {position}: the function has {count}")
        info = operand_info(results[position])
        if not _is_float(info) or (isinstance(info, TensorInfo) and info.shape is None):
            raise self._error(
                f"result {position} is {_described(info)}",
                "differentiate a floating-point tensor of known shape",
            )
        return results[position]

    def function(self) -> GraphFunc:
        """Return the function with the gradients of the targets."""
        forward = self._forward()
        self._start()
        for binding in reversed(forward):
            self._backward(binding)
        if self.missing:
            listed = "; ".join(dict.fromkeys(self.missing))
            raise MissingGradientError(
                f"operations without a gradient: {listed}",
                where=self.where,
                hint=_HINT_LOOPS if any("the loop" in m for m in self.missing) else _HINT,
            )
        return self._finished([self._gradient(t) for t in self.targets])

    def _finished(self, gradients: Sequence[Operand]) -> GraphFunc:
        source = self.source
        results = [*(self._now(r) for r in source.results), *gradients]
        names = source.result_names
        if names:
            fresh = Names(names)
            names += tuple(fresh.fresh(f"{_name(t)}_gradient") for t in self.targets)
        finished = self.graph.finish(results, result_names=names, hints=source.hints)
        finished = replace(finished, attributes=source.attributes)
        return _renamed(finished, self._names_of(gradients, finished))

    def _names_of(self, gradients: Sequence[Operand], function: GraphFunc) -> dict[Value, Value]:
        """Return gradients under the names of their parameters; other values keep their names."""
        fixed = {*all_values(self.source), *(p.value for p in function.params)}
        names = Names(v.name for v in all_values(function))
        found: dict[Value, Value] = {}
        for target, gradient in zip(self.targets, gradients, strict=True):
            if isinstance(gradient, Value) and gradient not in fixed and gradient not in found:
                name = names.fresh(f"{_name(target)}_gradient")
                found[gradient] = Value(gradient.uid, name, gradient.info)
        return found

    def _now(self, operand: Operand) -> Operand:
        return self.replaced.get(operand, operand)

    def _start(self) -> None:
        """Set the cotangent of the result: one for a scalar, else a new parameter."""
        output = self._now(self.output)
        info = operand_info(output)
        if not isinstance(info, TensorInfo) or output not in self.active:
            return
        if info.shape == ():
            seed: Operand = self.graph.emit("full", (), 1.0, dtype=info.dtype.name, name="one")
        else:
            seed = self.graph.param(f"{_name(output)}_cotangent", replace(info, elements=None))
        self.cotangents[output, ()] = seed

    def _gradient(self, target: Operand) -> Operand:
        """Return the cotangent of a target."""
        found = self.cotangents.get((target, ()))
        return zeros(self.graph, operand_info(target)) if found is None else found

    def _forward(self) -> list[Binding]:
        """Add the bindings, with decompositions of operators; return those that are active."""
        active: list[Binding] = []
        for binding in self.source.bindings:
            right = map_operands(binding.right, self._now)
            bound = replace(binding, right=right)
            if not any(o in self.active for o in _all_operands(right)):
                self.graph.append(bound)
                continue
            for added in self._added(bound):
                if _has_float(added.value.info) and any(
                    o in self.active for o in _all_operands(added.right)
                ):
                    self.active.add(added.value)
                    active.append(added)
        return active

    def _added(self, binding: Binding) -> list[Binding]:
        """Add a binding, or the decomposition of its operator; return the added bindings."""
        right = binding.right
        op = get_operator(right.op) if isinstance(right, Call) else None
        if op is None or op.has_gradient or not op.is_decomposable or not isinstance(right, Call):
            self.graph.append(binding)
            return [binding]
        with self.graph.recorded() as bindings:
            facts = CallFacts(op.name, op.signature, right.args, right.attributes, self.graph.facts)
            results = op.decompose(facts, self.graph)
            if not results:
                self.graph.append(binding)
                return [binding]
            whole = results[0]
            if len(results) > 1:
                info = TupleInfo(tuple(map(operand_info, results)))
                whole = self.graph.bind(binding.value.name, info, MakeTuple(results))
        self.replaced[binding.value] = whole
        return [replace(b, origins=b.origins | binding.origins) for b in bindings]

    def _backward(self, binding: Binding) -> None:
        """Add the cotangents of the operands of a binding."""
        value, right = binding.value, binding.right
        slots: list[Path] = [path for owner, path in self.cotangents if owner is value]
        if not slots:
            return
        match right:
            case TupleItem(tuple_=whole, index=k):
                for path in slots:
                    self._add(whole, (k, *path), self.cotangents[value, path])
            case MakeTuple(fields=fields):
                for path in slots:
                    self._add(fields[path[0]], path[1:], self.cotangents[value, path])
            case MatchCast(value=source):
                for path in slots:
                    self._add(source, path, self.cotangents[value, path])
            case Call():
                self._call(value, right)
            case _:
                self._without_gradient(right, _operation(value, right))

    def _call(self, value: Value, call: Call) -> None:
        op = get_operator(call.op)
        facts = CallFacts(op.name, op.signature, call.args, call.attributes, self.graph.facts)
        fields: list[Path] = [()]
        if isinstance(value.info, TupleInfo):
            fields = [(k,) for k in range(len(value.info.fields))]
        given = tuple(self.cotangents.get((value, path)) for path in fields)
        site = GradientCall(facts, value, given)
        for position, operand in enumerate(call.args):
            if operand not in self.active:
                continue
            found = op.gradient(site, position, self.graph)
            if found is None:
                self._without_gradient(call, call.op)
                return
            self._add(operand, (), found)

    def _without_gradient(self, right: Rhs, described: str) -> None:
        """Note an operation; zeros go on to its operands, so that all operations are found."""
        self.missing.append(described)
        for operand in dict.fromkeys(_all_operands(right)):
            if operand in self.active:
                for path, info in _tensors(operand_info(operand)):
                    if _is_float(info) and info.shape is not None:
                        self._add(operand, path, zeros(self.graph, info))

    def _add(self, operand: Operand, path: Path, cotangent: Operand) -> None:
        info = _at(operand_info(operand), path)
        if operand not in self.active or not isinstance(info, TensorInfo) or not _is_float(info):
            return
        own = conformed(self.graph, cotangent, info)
        old = self.cotangents.get((operand, path))
        new = own if old is None else self.graph.emit("add", old, own)
        self.cotangents[operand, path] = new


def _renamed(function: GraphFunc, names: dict[Value, Value]) -> GraphFunc:
    changed = replace_values(function, names)
    bindings = (replace(b, value=names.get(b.value, b.value)) for b in changed.bindings)
    return replace(changed, bindings=tuple(bindings))


def _all_operands(right: Rhs) -> Iterator[Operand]:
    """Yield the operands of a right-hand side, including those of nested bindings."""
    yield from operands_of(right)
    for bindings in inner_bindings(right):
        yield from used_operands(bindings)


def _name(operand: Operand) -> str:
    match operand:
        case Value(name=name):
            return name
        case ConstantRef(key=key):
            return to_valid_name(key)
        case _:
            return "value"


def _is_float(info: Info) -> bool:
    return isinstance(info, TensorInfo) and info.dtype.is_float


def _tensors(info: Info, path: Path = ()) -> Iterator[tuple[Path, TensorInfo]]:
    if isinstance(info, TensorInfo):
        yield path, info
    elif isinstance(info, TupleInfo):
        for k, own in enumerate(info.fields):
            yield from _tensors(own, (*path, k))


def _has_float(info: Info) -> bool:
    return any(_is_float(tensor) for _, tensor in _tensors(info))


def _at(info: Info, path: Path) -> Info:
    for k in path:
        info = info.fields[k] if isinstance(info, TupleInfo) else info
    return info


def _described(info: Info) -> str:
    if isinstance(info, TensorInfo):
        known = "" if info.shape is not None else " of unknown shape"
        return f"a tensor of dtype {info.dtype}{known}"
    return f"not a tensor ({type(info).__name__.removesuffix('Info')})"


def _operation(value: Value, right: Rhs) -> str:
    """Return the description of an operation other than an operator."""
    match right:
        case CallTIR(function=name) | CallGraph(function=name):
            return f"the call of function {name!r}"
        case CallDPSLibrary(symbol=name):
            return f"the library function {name!r}"
        case Loop():
            return f"the loop {value.name!r}"
        case IfElse():
            return f"the branch {value.name!r}"
        case _:
            return f"{type(right).__name__} {value.name!r}"
