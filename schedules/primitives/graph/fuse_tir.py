"""Turn each group of kernels into one loop-level function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ....ir.graph.memory import Launch
from ....ir.graph.nodes import (
    Binding,
    Call,
    CallGraph,
    CallTIR,
    Dims,
    GraphFunc,
    Operand,
    ShapeInfo,
    TensorInfo,
    Value,
)
from ....ir.graph.operators import get_operator
from ....ir.graph.visit import inner_bindings
from ....ir.identity import NO_ORIGIN, UidSource
from ....ir.loop.nodes import Buffer, BufferParam, Param, PrimFunc, ScalarParam, Stmt
from ....ir.loop.visit import seq
from ....ir.module import Module
from ....ir.symbolic import Expr, Var
from ...inline import Renaming, inlined_body
from ...kernels import Kernel, KernelTable, generalise
from ...primitive import Primitive, Rewrite, primitive
from ...problem import Problem
from ...refs import BindingRef, FunctionRef, Ref
from ...state import State
from ._functions import MAIN, PRIMITIVE, graph_problem
from .legalize import Legalize


@primitive(family="graph", returns=tuple[FunctionRef, ...])
@dataclass(frozen=True, slots=True)
class FuseTir(Primitive):
    """Join the loop-level functions of each group into one function.

    Before::

        y = fused_matmul_add(x, w, bias)    # a graph marked `primitive`: two calls
    After::

        y = call_tir(fused_matmul_add, (x, w, bias))  # one function, both bodies

    Bodies are joined as they are, schedules included; intermediates become buffers of the
    function. Inlining them is a later step. Equal functions are added once.

    Parameters
    ----------
    function : FunctionRef
        The graph-level function that calls the groups.

    Requires
    --------
    1. The function is a graph-level function in the dataflow stage.
    2. Its groups hold calls of kernels only, on tensors that they are given or make.
    3. No call in its groups has versions: one function cannot choose by a guard.

    Notes
    -----
    Cost: linear in the size of the kernels. Source: Relax §4.2 (FuseTensorIR).
    """

    function: FunctionRef = MAIN

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the function's level and stage, and what its groups hold."""
        wrong = list(graph_problem(state, self.function, 1))
        yield from wrong
        if not wrong:
            for group in self._groups(state.module).values():
                yield from _contents(group)

    def _groups(self, module: Module) -> dict[str, GraphFunc]:
        return {
            b.right.function: module.graph(b.right.function)
            for b in module.graph(self.function.function).bindings
            if isinstance(b.right, CallGraph) and is_group(module, b.right.function)
        }

    def rewrite(self, state: State) -> Rewrite:
        """Join group by group."""
        graph = state.module.graph(self.function.function)
        groups = self._groups(state.module)
        base = state.module.without(*groups)
        table = KernelTable(base)
        fused: list[FunctionRef] = []
        bindings: list[Binding] = []
        for binding in graph.bindings:
            right = binding.right
            if isinstance(right, CallGraph) and right.function in groups:
                call = _joined_call(state, groups[right.function], binding, right, table)
                fused.append(FunctionRef(call.function))
                bindings.append(replace(binding, right=call))
            else:
                bindings.append(binding)
        module = table.module().with_functions(replace(graph, bindings=tuple(bindings)))
        module = without_unused(module, state.module)
        return Rewrite(module, tuple(dict.fromkeys(fused)))

    @classmethod
    def suggest(cls, state: State, selection: Ref) -> Iterator[Primitive]:
        """Suggest it where the selected graph calls groups."""
        found = state.module.functions.get(selection.function)
        if isinstance(found, GraphFunc) and any(
            isinstance(b.right, CallGraph) and is_group(state.module, b.right.function)
            for b in found.bindings
        ):
            yield cls(FunctionRef(selection.function))


def is_group(module: Module, name: str) -> bool:
    """Whether a function is a group that waits to be joined."""
    found = module.functions.get(name)
    return isinstance(found, GraphFunc) and PRIMITIVE in found.attributes


def _contents(group: GraphFunc) -> Iterator[Problem]:
    """Find fault with a group that cannot become one loop-level function."""
    known: set[Operand] = {p.value for p in group.params}
    for binding in group.bindings:
        right = binding.right
        where = (BindingRef(group.name, binding.value.uid, binding.value.name),)
        name = f"{binding.value.name!r} in group {group.name!r}"
        if not isinstance(right, CallTIR):
            needs = isinstance(right, Call) and not get_operator(right.op).is_view
            fixes = (Legalize(FunctionRef(group.name)),) if needs else ()
            yield Problem(2, f"{name} calls no kernel", where, fixes=fixes)
        elif not known.issuperset(right.args):
            yield Problem(2, f"{name} uses what the group is not given", where)
        elif right.versions:
            names = ", ".join(v.function for v in right.versions)
            yield Problem(3, f"{name} chooses among versions: {names}", where)
        known.add(binding.value)


def called_kernels(module: Module) -> set[str]:
    """Give the names of all loop-level functions that graphs call, versions included."""
    return {name for graph in module.graphs for name in _called(graph.bindings)}


def _called(bindings: tuple[Binding, ...]) -> Iterator[str]:
    for binding in bindings:
        right = binding.right
        if isinstance(right, CallTIR | Launch):
            yield right.function
            yield from (v.function for v in right.versions)
        for inner in inner_bindings(right):
            yield from _called(inner)


def without_unused(module: Module, before: Module) -> Module:
    """Drop the loop-level functions that the graphs called before and call no longer."""
    gone = called_kernels(before) - called_kernels(module)
    return module.without(*gone)


def _joined_call(
    state: State, group: GraphFunc, binding: Binding, call: CallGraph, table: KernelTable
) -> CallTIR:
    info = binding.value.info
    if not isinstance(info, TensorInfo):
        raise TypeError(f"group {group.name!r} gives no tensor")
    join = _Join(state.module, group, UidSource(state.ordinal))
    kernel = generalise(Kernel(join.function(), join.scalars))
    args = tuple(a for a in call.args if not isinstance(a, Dims))
    return CallTIR(table.add(kernel.function), args, (info,), kernel.scalars)


class _Join:
    """Joins the kernels that a group calls into one loop-level function."""

    def __init__(self, module: Module, group: GraphFunc, mint: UidSource) -> None:
        self._module = module
        self._group = group
        self._mint = mint
        self._names = Renaming()
        self._buffers: dict[Operand, Buffer] = {}
        self._params: list[Param] = []
        self._temporaries: list[Buffer] = []
        self.scalars: tuple[Expr, ...] = ()

    def _buffer(self, name: str, info: TensorInfo) -> Buffer:
        shape = info.shape or ()
        return Buffer(self._mint(), self._names.fresh(name), shape, info.dtype)

    def _declare_inputs(self) -> None:
        for param in self._group.params:
            info = param.value.info
            if isinstance(info, TensorInfo):
                buffer = self._buffer(param.value.name, info)
                self._buffers[param.value] = buffer
                self._params.append(BufferParam(buffer, param.access))
            elif isinstance(info, ShapeInfo) and info.dims is not None:
                symbols = [d for d in info.dims if isinstance(d, Var)]
                self._params.extend(ScalarParam(s) for s in symbols)
                self.scalars = (*self.scalars, *symbols)

    def _output(self, value: Value, info: TensorInfo) -> Buffer:
        buffer = self._buffer(value.name, info)
        self._buffers[value] = buffer
        if value in self._group.results:
            self._params.append(BufferParam(buffer, "out"))
        else:
            self._temporaries.append(buffer)
        return buffer

    def function(self) -> PrimFunc:
        """Make the function."""
        self._declare_inputs()
        body = seq(*(self._body(b) for b in self._group.bindings))
        params = sorted(self._params, key=lambda p: isinstance(p, ScalarParam))
        callees = (b.right for b in self._group.bindings if isinstance(b.right, CallTIR))
        origins = NO_ORIGIN.union(
            *(b.origins for b in self._group.bindings),
            *(self._module.prim(c.function).origins for c in callees),
        )
        return PrimFunc(
            self._group.name,
            tuple(params),
            body,
            tuple(self._temporaries),
            self._group.facts,
            origins=origins,
        )

    def _body(self, binding: Binding) -> Stmt:
        right = binding.right
        if not isinstance(right, CallTIR):
            raise TypeError(f"a group calls kernels only, not {type(right).__name__}")
        callee = self._module.prim(right.function)
        inputs: Sequence[Buffer] = [self._buffers[a] for a in right.args]
        outputs = [self._output(binding.value, info) for info in right.outputs]
        body, temporaries = inlined_body(
            callee, (*inputs, *outputs), right.scalars, self._names, self._mint
        )
        self._temporaries.extend(temporaries)
        return body
