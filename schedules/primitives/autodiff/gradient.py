"""The ``gradient`` primitive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ....errors import TilewrightError
from ....ir.graph.gradient import with_gradient
from ....ir.graph.nodes import GraphFunc, TensorInfo, operand_info
from ....ir.graph.operators.errors import MissingGradientError, NotDifferentiableError
from ....ir.identity import UidSource, fresh_name
from ...apply import Primitive, Rewrite
from ...handles import FunctionRef, Handle
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State
from ..graph._functions import MAIN, graph_problem


@primitive(family="autodiff", returns=FunctionRef)
@dataclass(frozen=True, slots=True)
class Gradient(Primitive):
    """Add a function that also returns the gradient of one result of a function.

    Before::

        def main(x, w):
            h = matmul(x, w)
            y = sum(h)
            return y

    After::

        def main_gradient(x, w):
            h = matmul(x, w)
            y = sum(h)
            ...
            return y, w_gradient

    Parameters
    ----------
    function : FunctionRef
        The graph-level function, which remains unchanged.
    variables : tuple of str
        The names of the parameters, and the keys of the constants, by which to differentiate; all
        floating-point parameters if empty.
    result : int
        The position of the result to differentiate. If it is not a scalar, its cotangent becomes
        the last parameter of the new function.

    Notes
    -----
    The new function computes cotangents in reverse order of the bindings (reverse mode). Shapes
    remain symbolic: the cotangent of an operand that broadcasts is summed over the dimensions that
    broadcast. An operator without a gradient of its own has that of its decomposition. Integers
    have no cotangents, and the gradient of a parameter that the result does not depend on is zero.
    Equal extremes of ``max``, ``min``, ``maximum``, and ``minimum`` share their cotangent. The
    result is the handle of the new function, an entry point of its own. Apply the step before
    ``legalize``. Cost: linear in the size of the graph; all values of the forward part that the
    gradient uses stay in memory.

    Names elsewhere: TVM ``relax.transform.Gradient``; JAX ``vjp``; Halide
    ``propagate_adjoints``.

    References
    ----------
    Griewank and Walther, Evaluating Derivatives (2008), §3.2 (reverse mode).

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @graph_func
    ... def main(x: Tensor[(3,), f32]):
    ...     t = exp(x)
    ...     y = sum(t)
    ...     return y
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> added = sch.gradient()
    >>> print(sch.module.graph(added.function))
    @graph_func
    def main_gradient(x: Tensor[(3,), f32]):
        t: Tensor[(3,), f32] = exp(x)
        y: Tensor[(), f32] = sum(t)
        one: Tensor[(), f32] = full((), 1.0, dtype="f32")
        reshape: Tensor[(1,), f32] = reshape(one, (1,))
        broadcast_to: Tensor[(3,), f32] = broadcast_to(reshape, (3,))
        x_gradient: Tensor[(3,), f32] = multiply(broadcast_to, t)
        return y, x_gradient
    """

    class Requires(Requirement):
        """The requirements of ``gradient``."""

        DATAFLOW_STAGE = "the function is a graph-level function in the dataflow stage"
        ONLY_INPUTS = "the function does not update its parameters"
        FLOATING_POINT = "the result and the parameters are floating-point tensors"
        DIFFERENTIABLE = "each operation between the parameters and the result has a gradient"

    function: FunctionRef = MAIN
    variables: tuple[str, ...] = ()
    result: int = 0

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the stage and the parameters of the function."""
        yield from graph_problem(state, self.function, self.Requires.DATAFLOW_STAGE)
        found = state.module.functions.get(self.function.function)
        params = found.params if isinstance(found, GraphFunc) else ()
        written = [p.value.name for p in params if p.access != "in"]
        if written:
            message = f"{self.function.function!r} updates {', '.join(map(repr, written))}"
            yield Problem(self.Requires.ONLY_INPUTS, message, (self.function,))

    def proofs(self, state: State) -> Iterator[Problem]:
        """Check the dtypes and the operators; shapes are proved equal on the way."""
        try:
            self._differentiated(state)
        except MissingGradientError as error:
            yield Problem(self.Requires.DIFFERENTIABLE, _text(error), (self.function,))
        except NotDifferentiableError as error:
            yield Problem(self.Requires.FLOATING_POINT, _text(error), (self.function,))

    def rewrite(self, state: State) -> Rewrite:
        """Add the function."""
        added = self._differentiated(state)
        return Rewrite(state.module.with_functions(added), (FunctionRef(added.name),))

    def _differentiated(self, state: State) -> GraphFunc:
        graph = state.module.graph(self.function.function)
        name = fresh_name(f"{graph.name}_gradient", set(state.module.functions))
        mint = UidSource(state.ordinal)
        return with_gradient(graph, self.variables, self.result, name=name, mint=mint)

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the step for a selected graph whose first result is a scalar."""
        found = state.module.functions.get(selection.function)
        if not isinstance(selection, FunctionRef) or not isinstance(found, GraphFunc):
            return
        info = operand_info(found.results[0]) if found.results else None
        if isinstance(info, TensorInfo) and info.shape == () and info.dtype.is_float:
            yield cls(selection)


def _text(error: TilewrightError) -> str:
    return f"{error.message}; {error.hint}" if error.hint else error.message
