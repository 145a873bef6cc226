"""The ``lower_graph`` composite step."""

from __future__ import annotations

from collections.abc import Iterator

from ...ir.dtype import f32
from ...ir.graph.nodes import Binding, Call, GraphFunc
from ...ir.graph.operators import get_operator
from ...ir.graph.visit import inner_bindings
from ...ir.module import Module
from ..apply import Composite
from ..composite import composite
from ..handles import BindingRef, FunctionRef, Handle
from ..machine import machine_of
from ..primitives.graph.collapse_dims import CollapseDims
from ..primitives.graph.fuse_attention import FuseAttention
from ..primitives.graph.fuse_tir import FuseTir, called_kernels, calls_groups, is_group
from ..primitives.graph.lift_transforms import liftable, prepares
from ..quantized_weights import fused_conversions
from ..schedule import Schedule
from ..state import State


def _suggested(state: State, selection: Handle) -> Iterator[Composite]:
    if isinstance(selection, FunctionRef):
        found = state.module.functions.get(selection.function)
        if isinstance(found, GraphFunc) and found.stage == "dataflow":
            yield lower_graph(selection)


@composite(suggest=_suggested, always_legal=True)
def lower_graph(sch: Schedule, function: FunctionRef) -> None:
    """Lower a graph function to calls of fused kernels.

    Before::

        def main(x):
            y = matmul(x, const("w"))
            z = relu(y)
            return z

    After::

        def main(x):
            z = call_tir("fused_matmul_relu", (x, const("w")))
            return z

    Parameters
    ----------
    function : FunctionRef
        The graph-level function, in the dataflow stage. A function of which all bindings are calls
        of kernels or views is not changed, and a group of ``fuse_ops`` is only legalized.

    Notes
    -----
    ``fold_constants``, ``fuse_attention`` on a CPU, ``dead_code``, ``legalize``,
    ``lift_transforms`` for computations on weights alone, ``fuse_ops``, ``fuse_tir``, then
    ``collapse_dims`` for each kernel. Conversions of quantized weights that a matmul computes
    itself are not moved. Cost: that of the steps.

    References
    ----------
    Relax (ASPLOS '25), §4.2.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... n = symbols("n", lower=1)
    ...
    ... @graph_func
    ... def main(x: Tensor[(n, 4), f32]):
    ...     y = add(x, 1.0)
    ...     z = relu(y)
    ...     return z
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> sch.lower_graph("main")
    >>> [kernel.name for kernel in sch.module.prims]
    ['fused_add_relu']
    """
    name = function.function
    unlowered = any(map(_is_computation, sch.module.graph(name).bindings))
    if unlowered and is_group(sch.module, name):
        sch.legalize(function)
    elif unlowered:
        sch.fold_constants(function)
        tile = machine_of(sch.state.target).tile(f32)
        fused = FuseAttention(function, lanes=tile.columns, rows=tile.rows)
        if not sch.check(fused):
            sch.apply(fused)
        sch.dead_code(function)
        sch.legalize(function)
        lift(sch, function)
        sch.fuse_ops(function)
    if calls_groups(sch.module, name) and not sch.check(FuseTir(function)):
        sch.fuse_tir(function)
    elif not unlowered:
        return
    own = Module().with_functions(sch.module.graph(name))
    for kernel in sorted(called_kernels(own)):
        step = CollapseDims(FunctionRef(kernel))
        if not sch.check(step):
            sch.apply(step)


def _is_computation(binding: Binding) -> bool:
    """Return whether a binding calls an operator that needs a kernel, also in a branch."""
    right = binding.right
    if isinstance(right, Call):
        return get_operator(right.op).needs_kernel
    return any(_is_computation(b) for inner in inner_bindings(right) for b in inner)


def lift(sch: Schedule, function: FunctionRef) -> None:
    """Move computations on weights alone to load time, if there are any."""
    graph = sch.module.graph(function.function)
    fused = fused_conversions(sch.module, graph)
    if not prepares(graph) and liftable(graph, {v.uid for v in fused}):
        keep = (BindingRef(graph.name, b.value.uid) for b in graph.bindings if b.value in fused)
        sch.lift_transforms(function, tuple(keep))
