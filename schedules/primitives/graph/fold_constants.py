"""The ``fold_constants`` primitive."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....ir.dtype import from_numpy
from ....ir.graph.nodes import (
    Binding,
    Call,
    ConstantRef,
    Dims,
    GraphFunc,
    Operand,
    ScalarLiteral,
    TensorInfo,
    Value,
)
from ....ir.graph.operators import get_operator
from ....ir.graph.visit import map_inner, map_operands, replace_values
from ....ir.module import Constant, Module
from ....ir.sizes import storage_bytes
from ....ir.symbolic import Expr, const_value, product
from ...apply import Primitive, Rewrite
from ...handles import BindingRef, FunctionRef, Handle, Removed
from ...problem import Problem
from ...quantized_weights import converts_weight
from ...registry import primitive
from ...requirement import Requirement
from ...state import State
from ._functions import MAIN, graph_problem


@primitive(family="graph")
@dataclass(frozen=True, slots=True)
class FoldConstants(Primitive):
    """Fold operators on constants whose results are small.

    Before::

        t = mul(scale, 0.5)
        y = add(x, t)  # scale: a constant

    After::

        y = add(x, folded_1)  # a new constant

    Parameters
    ----------
    function : FunctionRef
        The graph-level function.
    limit : int
        The maximum size of one result in bytes.

    Notes
    -----
    ``lift_transforms`` handles larger results: it computes them when the program is loaded. Tensors
    of at most 8 bits per element are not converted to a wider float dtype, because a matrix product
    may convert them itself. Cost: one evaluation of each folded operator.

    Names elsewhere: TVM ``relax.transform.FoldConstant``; Halide: none.

    References
    ----------
    Relax (ASPLOS '25), §4 (constant folding).

    Examples
    --------
    >>> import numpy as np
    >>> import tilewright as tw
    >>> text = '''
    ... constant("scale", (2,), f32)
    ...
    ... @graph_func
    ... def main(x: Tensor[(4, 2), f32]):
    ...     half = multiply(const("scale"), 0.5)
    ...     y = add(x, half)
    ...     return y
    ... '''
    >>> module = tw.parse(text, constants={"scale": np.array([2, 4], np.float32)})
    >>> sch = tw.Schedule(module)
    >>> sch.fold_constants("main")
    >>> print(sch.module["main"])
    @graph_func
    def main(x: Tensor[(4, 2), f32]):
        y: Tensor[(4, 2), f32] = add(x, const("folded.c47c025396c03754", Tensor[(2,), f32]))
        return y
    """

    class Requires(Requirement):
        """The requirements of ``fold_constants``."""

        DATAFLOW_STAGE = "the function is a graph-level function in the dataflow stage"

    function: FunctionRef = MAIN
    limit: int = 65536

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the level and the stage of the function."""
        yield from graph_problem(state, self.function, self.Requires.DATAFLOW_STAGE)

    def rewrite(self, state: State) -> Rewrite:
        """Fold in program order, so that folded results are operands of further folding."""
        graph = state.module.graph(self.function.function)
        fold = _Fold(state.module, self.limit)
        rebuilt = replace(graph, bindings=fold.bindings(graph.bindings))
        rebuilt = replace_values(rebuilt, fold.values)
        moved: dict[Handle, tuple[Handle, ...] | Removed] = {
            BindingRef(graph.name, v.uid): Removed("folded it into a constant") for v in fold.values
        }
        return Rewrite(fold.module.with_functions(rebuilt), moved=moved)

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the step for a selected graph that calls operators."""
        found = state.module.functions.get(selection.function)
        if isinstance(found, GraphFunc) and any(isinstance(b.right, Call) for b in found.bindings):
            yield cls(FunctionRef(selection.function))


class _Fold:
    """Evaluation of operators on constants, with the results as constants of the module."""

    def __init__(self, module: Module, limit: int) -> None:
        self.module = module
        self._limit = limit
        self.values: dict[Value, Operand] = {}
        self.results: dict[Operand, Operand] = {}

    def bindings(self, bindings: Sequence[Binding]) -> tuple[Binding, ...]:
        """Fold the bindings of a list, and those of its branches and loops."""
        kept: list[Binding] = []
        for binding in bindings:
            right = map_inner(binding.right, self.bindings)
            right = map_operands(right, lambda o: self.results.get(o, o))
            if not isinstance(right, Call) or not self.try_fold(binding.value, right):
                kept.append(replace(binding, right=right))
        return tuple(kept)

    def _argument(self, operand: Operand) -> Any:
        match operand:
            case ConstantRef(key=key):
                return self.module.constants[key].load()
            case ScalarLiteral(value=value):
                return value
            case Dims(dims=dims):
                return tuple(const_value(d) for d in dims)
            case Value():
                raise TypeError(f"{operand.name!r} is not a constant")

    def try_fold(self, value: Value, call: Call) -> bool:
        """Fold one call if its operands are constant and its result is small."""
        info = value.info
        constant = all(_is_constant(a) for a in call.args)
        attributes = dict(call.attributes)
        symbolic = any(isinstance(a, Expr) for a in attributes.values())
        if (
            get_operator(call.op).is_transfer
            or not constant
            or symbolic
            or not isinstance(info, TensorInfo)
            or info.shape is None
        ):
            return False
        count = const_value(product(info.shape))
        if count is None or storage_bytes(count, info.dtype) > self._limit:
            return False
        if any(converts_weight(a, info) for a in call.args):
            return False
        args = [self._argument(a) for a in call.args]
        with np.errstate(all="ignore"):
            array = np.asarray(get_operator(call.op).reference(args, attributes))
        self._keep(value, replace(info, elements=None), np.ascontiguousarray(array))
        return True

    def _keep(self, value: Value, info: TensorInfo, array: NDArray[Any]) -> None:
        array = array.reshape(tuple(const_value(d) or 0 for d in info.shape or ()))
        digest = hashlib.sha256(f"{array.dtype}{array.shape}".encode() + array.tobytes())
        key = f"folded.{digest.hexdigest()[:16]}"
        constant = Constant(
            array.shape, from_numpy(array.dtype), lambda: array, digest.hexdigest(), "folded"
        )
        self.module = self.module.with_constants({key: constant})
        self.values[value] = self.results[value] = ConstantRef(key, info)


def _is_constant(operand: Operand) -> bool:
    match operand:
        case ConstantRef() | ScalarLiteral():
            return True
        case Dims(dims=dims):
            return all(const_value(d) is not None for d in dims)
        case Value():
            return False
