"""Custom operators, whose semantics are a loop-level program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, cast

import numpy as np

from ...loop.nodes import Attributes, BufferParam, PrimFunc
from ...symbolic import Expr, Facts, SymInt, Var, as_expr, eq, free_vars, substitute, to_text
from ..call_conditions import bound_conditions
from ..nodes import Info, Operand, TensorInfo, TupleInfo, Value, operand_info
from ..unify import disagreement
from .composition import Composer
from .errors import DuplicateOperatorError, OperatorDefinitionError
from .evaluation import Array, Evaluation
from .gradients import GradientCall
from .lowering import LoweredOperator
from .operator import CUSTOM_OPERATORS, OPERATORS, Operator, register_custom
from .shape_inference import CallFacts, shape_text
from .signature import OperandSpec, Signature

ShapeRule: TypeAlias = Callable[..., Sequence[Any]]

GradientRule: TypeAlias = Callable[..., Any]
"""The cotangents of the operands from a builder, operands, results, and their cotangents."""


class CustomOperator(Operator):
    """An operator of a user, defined by a loop-level program.

    Parameters
    ----------
    x : tensor
        One operand per ``Buffer`` parameter of the program, with its dtype and shape.

    Returns
    -------
    tensor or tuple of tensors
        One result per ``Out`` parameter of the program.

    Examples
    --------
    >>> twice = custom_operator('''
    ... n = symbols("n", lower=0)
    ...
    ... @prim_func
    ... def example_twice(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    ...     for i in range(n):
    ...         y[i] = x[i] * 2.0
    ... ''')
    >>> twice.reference((np.ones(3, np.float32),))
    array([2., 2., 2.], dtype=float32)
    """

    def __init__(
        self,
        program: PrimFunc,
        shape: ShapeRule | None = None,
        gradient_rule: GradientRule | None = None,
    ) -> None:
        """Check the program."""
        self.name = program.name
        self.program = program
        self.shape = shape
        self.gradient_rule = gradient_rule
        params = [p for p in program.params if isinstance(p, BufferParam)]
        self.inputs = [p.buffer for p in params if p.access == "in"]
        self.results = [p.buffer for p in params if p.access == "out"]
        where = f"custom operator {self.name!r}"
        written = [p.buffer.name for p in params if p.access not in ("in", "out")]
        if written:
            raise OperatorDefinitionError(
                f"the program writes its input {written[0]!r}; operators do not change operands",
                where=where,
                hint=f"declare {written[0]!r} as Buffer, and write the result to an Out parameter",
            )
        if not self.inputs or not self.results:
            raise OperatorDefinitionError(
                "the program needs at least one Buffer and one Out parameter", where=where
            )
        self.signature = Signature(tuple(OperandSpec(b.name) for b in self.inputs))
        given = {d for b in self.inputs for d in b.shape if isinstance(d, Var)}
        terms = [d for b in self.results for d in b.shape] + list(program.scalar_params)
        missing = {v for t in terms for v in free_vars(as_expr(t))} - given
        if missing and shape is None:
            names = ", ".join(sorted(v.name for v in missing))
            raise OperatorDefinitionError(
                f"the shapes of the operands do not determine {names}",
                where=where,
                hint="pass a function of the shapes of the operands as `shape`",
            )

    @property
    def is_defined(self) -> bool:
        """Whether the operator has a definition in loop-level IR."""
        return True

    @property
    def has_gradient(self) -> bool:
        """Whether the definition has a gradient."""
        return self.gradient_rule is not None

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand | None:
        """Return the cotangent that the function of the definition computes."""
        if self.gradient_rule is None:
            return None
        count = len(self.results)
        results = (
            [call.result] if count == 1 else [graph.item(call.result, k) for k in range(count)]
        )
        cotangents = [call.cotangent(graph, k) for k in range(count)]
        found: Any = self.gradient_rule(graph, *call.args, *results, *cotangents)
        several: tuple[Any, ...] = (
            tuple(cast("Sequence[Any]", found)) if isinstance(found, tuple | list) else (found,)
        )
        where = f"gradient of custom operator {self.name!r}"
        if len(several) != len(self.inputs):
            raise OperatorDefinitionError(
                f"expected one cotangent per operand ({len(self.inputs)}), got {len(several)}",
                where=where,
            )
        chosen = several[position]
        if not isinstance(chosen, Value):
            raise OperatorDefinitionError(
                f"the cotangent of {self.inputs[position].name!r} is not a value of the graph: "
                f"{chosen!r}",
                where=where,
                hint="return values that graph.emit(...) returns",
            )
        have, want = operand_info(chosen), operand_info(call.args[position])
        if isinstance(have, TensorInfo) and isinstance(want, TensorInfo):
            broadcast = (have.rank or 0) > (want.rank or 0)
            problem = have.dtype != want.dtype or not broadcast
            text = disagreement(have, want, call.facts.facts) if problem else ""
            if text:
                raise OperatorDefinitionError(
                    f"the cotangent of {self.inputs[position].name!r} differs from it: {text}",
                    where=where,
                )
        return chosen

    def _bound(self, call: CallFacts) -> dict[Var, Expr]:
        """Unify the operands with the parameters; require that the shapes match."""
        bound: dict[Var, Expr] = {}
        for position, buffer in enumerate(self.inputs):
            x = call.require_rank(position, len(buffer.shape), len(buffer.shape))
            if x.dtype != buffer.dtype:
                raise call.error(position, f"expected dtype {buffer.dtype}, got {x.dtype}")
            for dim, size in zip(buffer.shape, x.shape, strict=True):
                if isinstance(dim, Var):
                    bound.setdefault(dim, size)
        for position, buffer in enumerate(self.inputs):
            for dim, size in zip(buffer.shape, call.tensor(position).shape, strict=True):
                wanted = substitute(dim, bound)
                reason = f"operand {buffer.name!r} has shape {shape_text(buffer.shape)}"
                call.require(eq(size, wanted), f"{reason}: {to_text(size)} != {to_text(wanted)}")
        if self.shape is not None:
            self._bind_results(call, bound)
        for condition in bound_conditions(bound, self.name):
            call.require(condition.claim, condition.text)
        for size in (substitute(d, bound) for b in self.results for d in b.shape):
            call.require(size >= 0, f"a size of the result is negative: {to_text(size)}")
        for fact in self.program.facts:
            if free_vars(fact.predicate) <= bound.keys():
                call.require(substitute(fact.predicate, bound), str(fact.origin))
        return bound

    def _bind_results(self, call: CallFacts, bound: dict[Var, Expr]) -> None:
        shapes = [call.tensor(k).shape for k in range(len(self.inputs))]
        found: Any = () if self.shape is None else self.shape(*shapes)
        several = _is_sequence(found) and bool(found) and _is_sequence(found[0])
        given: Sequence[Sequence[SymInt]] = found if several else [found]
        ranks = [len(s) if _is_sequence(s) else None for s in given]
        if ranks != [len(b.shape) for b in self.results]:
            wanted = ", ".join(shape_text(b.shape) for b in self.results)
            raise OperatorDefinitionError(
                f"the shape rule returned {found!r}; expected shapes like {wanted}",
                where=f"custom operator {self.name!r}",
            )
        for buffer, shape in zip(self.results, given, strict=True):
            for dim, size in zip(buffer.shape, map(as_expr, shape), strict=True):
                if isinstance(dim, Var):
                    bound.setdefault(dim, size)
        for buffer, shape in zip(self.results, given, strict=True):
            for dim, size in zip(buffer.shape, map(as_expr, shape), strict=True):
                own = substitute(dim, bound)
                reason = f"the shape rule states a result {buffer.name!r} with another shape"
                call.require(eq(size, own), f"{reason}: {to_text(size)} != {to_text(own)}")

    def _infos(self, bound: dict[Var, Expr]) -> tuple[TensorInfo, ...]:
        return tuple(
            TensorInfo(tuple(substitute(d, bound) for d in b.shape), b.dtype) for b in self.results
        )

    def deduce(self, call: CallFacts) -> Info:
        """Return the annotations of the ``Out`` parameters."""
        infos = self._infos(self._bound(call))
        return infos[0] if len(infos) == 1 else TupleInfo(infos)

    def evaluate(self, run: Evaluation) -> Array | tuple[Array, ...]:
        """Run the program in the interpreter."""
        from ...interpreter.loops import run_prim  # the interpreter imports the operators

        arrays = run.arrays()
        values: dict[Var, Expr] = {}
        for buffer, array in zip(self.inputs, arrays, strict=True):
            for dim, size in zip(buffer.shape, array.shape, strict=True):
                if isinstance(dim, Var):
                    values.setdefault(dim, as_expr(size))
        if self.shape is not None:
            infos = [
                TensorInfo(tuple(map(as_expr, a.shape)), b.dtype)
                for a, b in zip(arrays, self.inputs, strict=True)
            ]
            args = tuple(_placeholder(k, i) for k, i in enumerate(infos))
            values = self._bound(CallFacts(self.name, self.signature, args, (), Facts()))
        outputs = [
            np.empty([int(str(d)) for d in info.shape or ()], run.dtype_of(info.dtype))
            for info in self._infos(values)
        ]
        scalars = {v.name: int(str(values[v])) for v in self.program.scalar_params}
        ordered = iter(arrays), iter(outputs)
        params = [p for p in self.program.params if isinstance(p, BufferParam)]
        given = [next(ordered[0] if p.access == "in" else ordered[1]) for p in params]
        run_prim(self.program, given, scalars, precise=run.wide)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def lower(
        self,
        name: str,
        args: tuple[Operand, ...],
        attributes: Attributes,
        info: Info,
        facts: Facts | None = None,
        *,
        in_place: bool = False,
    ) -> LoweredOperator:
        """Return the program under this name."""
        del info, in_place
        call = CallFacts(self.name, self.signature, args, attributes, facts or Facts())
        bound = self._bound(call)
        scalars = tuple(bound[v] for v in self.program.scalar_params)
        function = replace(self.program, name=name)
        return LoweredOperator(function, args, self._infos(bound), scalars)


def _is_sequence(found: object) -> bool:
    return isinstance(found, tuple | list)


def _placeholder(position: int, info: TensorInfo) -> Operand:
    return Value(-1 - position, f"x{position}", info)


def custom_operator(
    program: str | PrimFunc | Any,
    *,
    shape: ShapeRule | None = None,
    gradient: GradientRule | None = None,
) -> CustomOperator:
    """Register an operator whose semantics are a loop-level program.

    Parameters
    ----------
    program : str, PrimFunc or Module
        The program: text with one ``@prim_func``, or a function. Its name is that of the operator;
        its ``Buffer`` parameters are the operands, its ``Out`` parameters the results.
    shape : callable, optional
        A function of the shapes of the operands that returns the shape of the result, or a tuple of
        shapes; needed if the shapes of the operands do not determine those of the results.
    gradient : callable, optional
        A function of a builder, the operands, the results, and the cotangents of the results, which
        returns the cotangents of the operands: values that ``graph.emit(op, ...)`` returns. Without
        it, ``sch.gradient()`` rejects a function that needs the gradient of the operator.

    Returns
    -------
    CustomOperator
        The operator; an earlier custom operator of this name is replaced.

    Raises
    ------
    OperatorDefinitionError
        If the program writes an operand, or the shapes of the results are not determined.
    DuplicateOperatorError
        If an operator of Tilewright has this name.

    Examples
    --------
    >>> import tilewright as tw
    >>> cube = tw.custom_operator('''
    ... n = symbols("n", lower=0)
    ...
    ... @prim_func
    ... def example_cube(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    ...     for i in range(n):
    ...         y[i] = x[i] * x[i] * x[i]
    ... ''')
    >>> module = tw.parse('''
    ... @graph_func
    ... def main(x: Tensor[(4,), f32]):
    ...     y = example_cube(x)
    ...     return y
    ... ''')
    >>> tw.compile(module)(np.full(4, 2, np.float32)).tolist()
    [8.0, 8.0, 8.0, 8.0]
    """
    operator_ = CustomOperator(_function(program), shape, gradient)
    if operator_.name in OPERATORS:
        raise DuplicateOperatorError(
            f"operator {operator_.name!r} is an operator of Tilewright",
            hint="choose another name for the function",
        )
    register_custom(operator_)
    return operator_


def _function(program: Any) -> PrimFunc:
    from ...module import Module
    from ...script import parse  # the parser imports the operators

    found = parse(program) if isinstance(program, str) else program
    if isinstance(found, Module):
        functions = tuple(found)
        if len(functions) == 1 and isinstance(functions[0], PrimFunc):
            return functions[0]
        raise OperatorDefinitionError(
            f"expected one loop-level function, got {len(functions)} functions",
            hint="define the semantics in one @prim_func",
        )
    if not isinstance(found, PrimFunc):
        raise OperatorDefinitionError(
            f"expected a program as text or a loop-level function, got {type(found).__name__}"
        )
    return found


def definition_of(name: str) -> str:
    """Return the program of a custom operator as text; empty for other operators."""
    found = CUSTOM_OPERATORS.get(name)
    return str(found.program) if isinstance(found, CustomOperator) else ""
