"""Programs that another process can run: without functions that only this process knows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ...ir.graph.libraries import is_built_in
from ...ir.graph.nodes import Binding, Call, CallDPSLibrary, CallTIR, GraphFunc, LaunchLibrary
from ...ir.graph.operators import CustomOperator, LoweredGraph, get_operator, lower_call
from ...ir.graph.visit import Rewriting, all_bindings
from ...ir.identity import fresh_name
from ...ir.module import Module
from ..errors import UnsharedFunctionError


def require_shared(names: Iterable[str], where: str) -> None:
    """Reject library functions that are registered in this process only.

    Raises
    ------
    UnsharedFunctionError
        If there is one.

    Examples
    --------
    >>> require_shared(["std.sort"], "function 'main'")
    """
    unshared = sorted(dict.fromkeys(n for n in names if not is_built_in(n)))
    if unshared:
        raise UnsharedFunctionError(
            f"only this process knows the library functions {', '.join(map(repr, unshared))}; "
            "programs are measured and verified in a sandbox process",
            where=where,
            hint="call the executable in this process, exe(...), and time these calls; or replace "
            "the library functions by operators or custom operators",
        )


def shared_program(module: Module, where: str) -> Module:
    """Return a program whose text another process can parse and interpret.

    Calls of custom operators become calls of their loop-level programs, which define them.

    Raises
    ------
    UnsharedFunctionError
        If the program calls a library function that is registered in this process only.
    """
    bindings = [b for graph in module.graphs for b in all_bindings(graph.bindings)]
    calls = [b.right for b in bindings if isinstance(b.right, CallDPSLibrary | LaunchLibrary)]
    require_shared((c.symbol for c in calls), where)
    if not any(_is_custom(b) for b in bindings):
        return module
    for graph in module.graphs:
        module = _without_custom(module, graph)
    return module


def _is_custom(binding: Binding) -> bool:
    right = binding.right
    return isinstance(right, Call) and isinstance(get_operator(right.op), CustomOperator)


def _without_custom(module: Module, graph: GraphFunc) -> Module:
    added = module

    def changed(bindings: Iterable[Binding]) -> tuple[Binding, ...]:
        return tuple(one(b) for b in bindings)

    inner = Rewriting(bindings=changed)

    def one(binding: Binding) -> Binding:
        nonlocal added
        right = binding.right
        if not isinstance(right, Call) or not _is_custom(binding):
            return replace(binding, right=inner.apply(right))
        name = fresh_name(right.op, set(added.functions))
        lowered = lower_call(right, binding.value.info, name, graph.facts)
        if isinstance(lowered, LoweredGraph):
            return binding
        added = added.with_functions(lowered.function)
        call = CallTIR(name, lowered.args, lowered.outputs, lowered.scalars)
        return replace(binding, right=call)

    bindings = changed(graph.bindings)
    return added.with_functions(replace(graph, bindings=bindings))
