"""Give some callers a copy of a kernel, to be scheduled apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.graph.nodes import Binding, CallTIR
from ....ir.identity import fresh_name
from ...primitive import Primitive, Rewrite, primitive
from ...problem import Problem
from ...refs import BindingRef, FunctionRef, Ref
from ...state import State
from ..graph._functions import prim_problem


@primitive(family="specialise", returns=FunctionRef)
@dataclass(frozen=True, slots=True)
class CloneFunction(Primitive):
    """Copy a kernel for some of its callers.

    Before::

        a = call_tir(matmul, (x, w)); b = call_tir(matmul, (y, v))
    After (``call_sites=(b,)``)::

        a = call_tir(matmul, (x, w))
        b = call_tir(matmul_1, (y, v))

    Parameters
    ----------
    function : FunctionRef
        The loop-level function.
    call_sites : tuple of BindingRef
        The calls that shall use the copy.

    Requires
    --------
    1. The function is loop-level.
    2. Every call site calls it.
    3. There is at least one call site.

    Notes
    -----
    Cost: one more kernel to compile. Source: DESIGN, "Two levels a person edits".
    """

    function: FunctionRef
    call_sites: tuple[BindingRef, ...]

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the function and its call sites."""
        wrong = list(prim_problem(state, self.function, 1))
        yield from wrong
        if wrong:
            return
        if not self.call_sites:
            yield Problem(3, "no call site is given", (self.function,))
        sites = {(s.function, s.uid): s for s in self.call_sites}
        for name, binding in callers(state, self.function.function):
            sites.pop((name, binding.value.uid), None)
        for site in sites.values():
            yield Problem(2, f"{site.name or site.uid!r} does not call it", (site,))

    def rewrite(self, state: State) -> Rewrite:
        """Add the copy, and redirect the chosen calls."""
        old = state.module.prim(self.function.function)
        name = fresh_name(old.name, set(state.module.functions))
        module = state.module.with_functions(replace(old, name=name))
        wanted = {(s.function, s.uid) for s in self.call_sites}
        for graph in module.graphs:
            bindings = tuple(
                _redirected(b, name) if (graph.name, b.value.uid) in wanted else b
                for b in graph.bindings
            )
            module = module.with_functions(replace(graph, bindings=bindings))
        return Rewrite(module, (FunctionRef(name),))

    @classmethod
    def suggest(cls, state: State, selection: Ref) -> Iterator[Primitive]:
        """Suggest it for a selected call of a kernel that others call too."""
        if not isinstance(selection, BindingRef):
            return
        for graph in state.module.graphs:
            for binding in graph.bindings:
                right = binding.right
                here = graph.name == selection.function and binding.value.uid == selection.uid
                shared = (
                    here
                    and isinstance(right, CallTIR)
                    and len(list(callers(state, right.function))) > 1
                )
                if shared and isinstance(right, CallTIR):
                    yield cls(FunctionRef(right.function), (selection,))


def callers(state: State, kernel: str) -> Iterator[tuple[str, Binding]]:
    """Iterate the calls of a kernel: the calling graph's name, and the binding."""
    for graph in state.module.graphs:
        for binding in graph.bindings:
            if isinstance(binding.right, CallTIR) and binding.right.function == kernel:
                yield graph.name, binding


def _redirected(binding: Binding, name: str) -> Binding:
    if not isinstance(binding.right, CallTIR):
        raise TypeError(f"{binding.value.name!r} is no call of a kernel")
    return replace(binding, right=replace(binding.right, function=name))
