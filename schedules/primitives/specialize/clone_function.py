"""The ``clone_function`` primitive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.graph.nodes import Binding, CallTIR
from ....ir.graph.regions import replace_bindings
from ....ir.graph.visit import all_bindings, all_values
from ....ir.identity import fresh_name
from ...apply import Primitive, Rewrite
from ...handles import BindingRef, FunctionRef, Handle
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State
from ..graph._functions import prim_problem


@primitive(family="specialize", returns=FunctionRef)
@dataclass(frozen=True, slots=True)
class CloneFunction(Primitive):
    """Clone a kernel for some of its call sites.

    Before::

        a = call_tir(matmul, x, w)
        b = call_tir(matmul, y, v)

    After (``call_sites=(b,)``)::

        a = call_tir(matmul, x, w)
        b = call_tir(matmul_1, y, v)

    Parameters
    ----------
    function : FunctionRef
        The loop-level function.
    call_sites : tuple of BindingRef
        The calls to redirect to the clone.

    Notes
    -----
    All calls of a function share its schedule; a clone gets its own. The result is the handle of
    the clone. Cost: one more kernel to compile.

    Names elsewhere: TVM: none; Halide ``clone_in``.

    References
    ----------
    Halide, ``Func::clone_in``.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @graph_func
    ... def main(x: Tensor[(4,), f32]):
    ...     a = call_tir(halve, x, outputs=(Tensor[(4,), f32],))
    ...     b = call_tir(halve, a, outputs=(Tensor[(4,), f32],))
    ...     return b
    ...
    ... @prim_func
    ... def halve(x: Buffer[(4,), f32], y: Out[(4,), f32]):
    ...     for i in range(4):
    ...         y[i] = x[i] * 0.5
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> sch.clone_function("halve", call_sites=(sch.get_binding("b"),))
    <function halve_1>
    >>> print(sch)
    @graph_func
    def main(x: Tensor[(4,), f32]):
        a: Tensor[(4,), f32] = call_tir(halve, x)
        b: Tensor[(4,), f32] = call_tir(halve_1, a)
        return b
    <BLANKLINE>
    <BLANKLINE>
    @prim_func
    def halve(x: Buffer[(4,), f32], y: Out[(4,), f32]):
        for i in range(4):
            with block("y"):
                vi = spatial(i)
                y[vi] = x[vi] * 0.5
    <BLANKLINE>
    <BLANKLINE>
    @prim_func
    def halve_1(x: Buffer[(4,), f32], y: Out[(4,), f32]):
        for i in range(4):
            with block("y"):
                vi = spatial(i)
                y[vi] = x[vi] * 0.5
    """

    class Requires(Requirement):
        """The requirements of ``clone_function``."""

        LOOP_LEVEL = "the function is loop-level"
        CALLS_FUNCTION = "every call site calls the function"
        ONE_CALL_SITE = "there is at least one call site"

    function: FunctionRef
    call_sites: tuple[BindingRef, ...]

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the function and its call sites."""
        wrong = list(prim_problem(state, self.function, self.Requires.LOOP_LEVEL))
        yield from wrong
        if wrong:
            return
        if not self.call_sites:
            yield Problem(
                self.Requires.ONE_CALL_SITE,
                "call_sites is empty; expected at least one",
                (self.function,),
            )
        sites = {(s.function, s.uid): s for s in self.call_sites}
        for name, binding in callers(state, self.function.function):
            sites.pop((name, binding.value.uid), None)
        for site in sites.values():
            message = f"{_name(state, site)!r} does not call {self.function.function!r}"
            yield Problem(self.Requires.CALLS_FUNCTION, message, (site,))

    def rewrite(self, state: State) -> Rewrite:
        """Add the clone, and redirect the call sites."""
        old = state.module.prim(self.function.function)
        name = fresh_name(old.name, set(state.module.functions))
        module = state.module.with_functions(replace(old, name=name))
        wanted = {(s.function, s.uid) for s in self.call_sites}
        for graph in module.graphs:
            bindings = replace_bindings(
                graph.bindings,
                lambda b, of=graph.name: (
                    _redirected(b, name) if (of, b.value.uid) in wanted else b,
                ),
            )
            module = module.with_functions(replace(graph, bindings=bindings))
        return Rewrite(module, (FunctionRef(name),))

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the step for a selected call of a kernel with other call sites."""
        if not isinstance(selection, BindingRef):
            return
        for graph in state.module.graphs:
            for binding in all_bindings(graph.bindings):
                right = binding.right
                here = graph.name == selection.function and binding.value.uid == selection.uid
                shared = (
                    here
                    and isinstance(right, CallTIR)
                    and len(list(callers(state, right.function))) > 1
                )
                if shared and isinstance(right, CallTIR):
                    yield cls(FunctionRef(right.function), (selection,))


def _name(state: State, site: BindingRef) -> str:
    graph = state.module.graph(site.function)
    return next(v.name for v in all_values(graph) if v.uid == site.uid)


def callers(state: State, kernel: str) -> Iterator[tuple[str, Binding]]:
    """Yield the calls of a kernel: the name of the calling graph, and the binding."""
    for graph in state.module.graphs:
        for binding in all_bindings(graph.bindings):
            if isinstance(binding.right, CallTIR) and binding.right.function == kernel:
                yield graph.name, binding


def _redirected(binding: Binding, name: str) -> Binding:
    if not isinstance(binding.right, CallTIR):
        raise TypeError(f"{binding.value.name!r} is not a call of a kernel")
    return replace(binding, right=replace(binding.right, function=name))
