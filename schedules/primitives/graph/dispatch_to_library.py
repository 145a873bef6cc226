"""The ``dispatch_to_library`` primitive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....errors import TilewrightError
from ....ir.graph.libraries import LIBRARY_FUNCTIONS, LibraryFunction
from ....ir.graph.nodes import Binding, Call, CallDPSLibrary, GraphFunc, TensorInfo
from ....ir.graph.unify import disagreement
from ....ir.symbolic import Facts
from ....nearest import nearest
from ...apply import Primitive, Rewrite
from ...handles import BindingRef, Handle, label
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State


@primitive(family="graph", returns=BindingRef)
@dataclass(frozen=True, slots=True)
class DispatchToLibrary(Primitive):
    """Replace a call of an operator by a call of a library function that implements it.

    Before::

        y = matmul(x, w)

    After::

        y: Tensor[(n, 64), f32] = call_library("blas.sgemm", x, w)

    Parameters
    ----------
    binding : BindingRef
        The call of the operator.
    library : str
        The name of the library function.

    Notes
    -----
    The function states which calls it implements. The interpreter executes its reference, so
    ``sch.verify()`` finds a function whose reference differs from the operator. Apply the step
    before ``legalize``. The call is not fused with others, and is rejected for targets that have no
    native function. The result is the handle of the binding, which persists. Cost: constant.

    Names elsewhere: TVM ``relax.backend.dispatch_to_library``, BYOC; Halide: none.

    References
    ----------
    Relax (ASPLOS '25), §4.6 (partial lowering, library dispatch).

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... n = symbols("n", lower=1)
    ... @graph_func
    ... def main(x: Tensor[(n, 8), f32], w: Tensor[(8, 4), f32]):
    ...     y = matmul(x, w)
    ...     return y
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> _ = sch.dispatch_to_library("y", "blas.sgemm")
    >>> print(sch.module.graph().bindings[0].right)
    call_library("blas.sgemm", x, w, outputs=(Tensor[(n, 4), f32],))
    """

    class Requires(Requirement):
        """The requirements of ``dispatch_to_library``."""

        OPERATOR_CALL = "the binding calls an operator, in the dataflow stage"
        REGISTERED = "a library function of this name is registered"
        IMPLEMENTS = "the library function implements this call of the operator"
        ON_TARGET = "the library function has a native function for the target"

    binding: BindingRef
    library: str

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the binding, the name, the operator, and the target."""
        graph = state.module.graph(self.binding.function)
        binding = _binding(graph, self.binding)
        if binding is None or not isinstance(binding.right, Call) or graph.stage != "dataflow":
            found = "no binding outside of branches" if binding is None else _kind(binding)
            message = f"{label(self.binding)!r} is {found} in the {graph.stage} stage"
            yield Problem(self.Requires.OPERATOR_CALL, message, (self.binding,))
            return
        function = LIBRARY_FUNCTIONS.get(self.library)
        if function is None:
            known = nearest(self.library, LIBRARY_FUNCTIONS) or sorted(LIBRARY_FUNCTIONS)
            message = f"no library function {self.library!r}; others are {', '.join(known)}"
            yield Problem(self.Requires.REGISTERED, message, (self.binding,))
            return
        reason = _obstacle(function, binding)
        if reason:
            yield Problem(self.Requires.IMPLEMENTS, reason, (self.binding,))
        kind = "cpu" if state.target is None or not state.target.is_gpu else state.target.kind
        if kind not in function.addresses:
            listed = ", ".join(sorted(function.addresses)) or "none"
            message = f"{self.library!r} has no native function for {kind}; targets are {listed}"
            yield Problem(self.Requires.ON_TARGET, message, (self.binding,))

    def rewrite(self, state: State) -> Rewrite:
        """Replace the right-hand side."""
        graph, function = state.module.graph(self.binding.function), LIBRARY_FUNCTIONS[self.library]
        bindings = tuple(
            replace(b, right=_library_call(function, b) or b.right)
            if b.value.uid == self.binding.uid
            else b
            for b in graph.bindings
        )
        module = state.module.with_functions(replace(graph, bindings=bindings))
        return Rewrite(module, (self.binding,))

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield a step for each library function that implements a selected call."""
        found = state.module.functions.get(selection.function)
        if isinstance(selection, BindingRef) and isinstance(found, GraphFunc):
            binding = _binding(found, selection)
            if binding is not None and isinstance(binding.right, Call):
                for name, function in LIBRARY_FUNCTIONS.items():
                    if not _obstacle(function, binding):
                        yield cls(selection, name)


def _binding(graph: GraphFunc, ref: BindingRef) -> Binding | None:
    return next((b for b in graph.bindings if b.value.uid == ref.uid), None)


def _kind(binding: Binding) -> str:
    return f"a binding of {type(binding.right).__name__}"


def _library_call(function: LibraryFunction, binding: Binding) -> CallDPSLibrary | None:
    """Return the call that replaces a call of an operator, or None."""
    info = binding.value.info
    if not isinstance(binding.right, Call) or not isinstance(info, TensorInfo):
        return None
    found = None if function.implements is None else function.implements(binding.right)
    return None if found is None else CallDPSLibrary(function.name, found[0], (info,), found[1])


def _obstacle(function: LibraryFunction, binding: Binding) -> str:
    """Return why a library function does not implement a call; empty if it does."""
    call = _library_call(function, binding)
    if call is None:
        op = binding.right.op if isinstance(binding.right, Call) else ""
        return f"{function.name!r} does not implement this call of {op!r}"
    try:
        outputs = function.deduced(call.args, call.attributes)
    except TilewrightError as error:
        return f"{function.name!r} does not accept the operands: {error.message}"
    if outputs is None:
        return ""
    problem = disagreement(outputs[0], call.outputs[0], Facts())
    return f"the result of {function.name!r} differs: {problem}" if problem else ""
