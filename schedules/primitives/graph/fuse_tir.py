"""The ``fuse_tir`` primitive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from ....ir.analysis.bounds import CHECK_BOUNDS
from ....ir.graph.call_conditions import kernel_conditions, symbol_values
from ....ir.graph.nodes import (
    Binding,
    Call,
    CallGraph,
    CallTIR,
    Dims,
    GraphFunc,
    LaunchKernel,
    Operand,
    ShapeInfo,
    TensorInfo,
    Value,
)
from ....ir.graph.operators import get_operator
from ....ir.graph.regions import replace_bindings
from ....ir.graph.visit import all_bindings, symbols_of
from ....ir.identity import NO_ORIGIN, Origins, UidSource
from ....ir.loop.nodes import Buffer, BufferParam, Param, PrimFunc, ScalarParam, Stmt
from ....ir.loop.visit import seq
from ....ir.module import Module
from ....ir.symbolic import (
    Discharge,
    Expr,
    Fact,
    Facts,
    Origin,
    Var,
    conjuncts,
    is_proved,
    substitute,
)
from ...apply import Primitive, Rewrite
from ...handles import BindingRef, FunctionRef, Handle
from ...inline import Renaming, inlined_body
from ...kernels import KernelCall, KernelTable, generalize
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State
from ._functions import MAIN, PRIMITIVE, graph_problem
from .legalize import Legalize


@primitive(family="graph", returns=tuple[FunctionRef, ...])
@dataclass(frozen=True, slots=True)
class FuseTir(Primitive):
    """Fuse the loop-level functions of each group into one function.

    Before::

        y = call(fused_matmul_add, x, w, bias)  # a graph marked `primitive`: two calls

    After::

        y = call_tir(fused_matmul_add, x, w, bias)  # one function, both bodies

    Parameters
    ----------
    function : FunctionRef
        The graph-level function that calls the groups.

    Notes
    -----
    Bodies keep their schedules, and intermediates become buffers of the function; inline them in a
    later step. Structurally equal functions are added once. A group that another function calls
    stays in the module. The results are the handles of the fused functions. Cost: linear in the
    size of the kernels.

    Names elsewhere: TVM ``relax.transform.FuseTIR``; Halide: none.

    References
    ----------
    Relax (ASPLOS '25), §4.2 (FuseTensorIR).

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... n = symbols("n", lower=1)
    ... @graph_func
    ... def main(x: Tensor[(n,), f32]):
    ...     a = relu(x)
    ...     b = relu(a)
    ...     return b
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> _ = sch.legalize(), sch.fuse_ops()
    >>> [f.function for f in sch.fuse_tir()]
    ['fused_relu_relu']
    """

    class Requires(Requirement):
        """The requirements of ``fuse_tir``."""

        DATAFLOW_STAGE = "the function is a graph-level function in the dataflow stage"
        CALLS_OF_KERNELS = (
            "the groups contain only calls of kernels, whose arguments are parameters or values "
            "of the group, and return one tensor"
        )
        CALLER = "the function is not itself a group of ``fuse_ops``"
        NO_VERSIONS = "no call in the groups has versions: one function cannot choose by a guard"
        NO_UPDATES = "the groups update no argument: their value is one new tensor"

    function: FunctionRef = MAIN

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the level and the stage of the function, and the contents of its groups."""
        wrong = list(graph_problem(state, self.function, self.Requires.DATAFLOW_STAGE))
        yield from wrong
        if not wrong:
            yield from self._group_problem(state)
            for group in self._groups(state.module).values():
                yield from _contents(group)

    def _group_problem(self, state: State) -> Iterator[Problem]:
        module, name = state.module, self.function.function
        if is_group(module, name):
            callers = [FunctionRef(g.name) for g in module.graphs if _calls(g, name)]
            named = ", ".join(c.function for c in callers) or "no function"
            fixes = (FuseTir(c) for c in callers)
            yield Problem(
                self.Requires.CALLER,
                f"{name!r} is a group of fuse_ops, which {named} calls",
                (self.function,),
                fixes=tuple(f for f in fixes if not any(f.structural(state))),
            )

    def _groups(self, module: Module) -> dict[str, GraphFunc]:
        return {
            b.right.function: module.graph(b.right.function)
            for b in all_bindings(module.graph(self.function.function).bindings)
            if isinstance(b.right, CallGraph) and is_group(module, b.right.function)
        }

    def rewrite(self, state: State) -> Rewrite:
        """Fuse each group."""
        graph = state.module.graph(self.function.function)
        groups = self._groups(state.module)
        others = [g for g in state.module.graphs if g.name != graph.name]
        kept = {name for name in groups if any(_calls(g, name) for g in others)}
        base = state.module.without(*(groups.keys() - kept))
        table = KernelTable(base)
        fused: list[FunctionRef] = []

        def joined(binding: Binding) -> tuple[Binding]:
            right = binding.right
            if not isinstance(right, CallGraph) or right.function not in groups:
                return (binding,)
            call = _joined_call(state, groups[right.function], binding, right, table)
            fused.append(FunctionRef(call.function))
            return (replace(binding, right=call),)

        bindings = replace_bindings(graph.bindings, joined)
        module = table.module().with_functions(replace(graph, bindings=bindings))
        module = without_unused(module, state.module)
        return Rewrite(module, tuple(dict.fromkeys(fused)))

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the step for a selected graph that calls groups."""
        found = state.module.functions.get(selection.function)
        if isinstance(found, GraphFunc) and calls_groups(state.module, found.name):
            yield cls(FunctionRef(selection.function))


def _calls(graph: GraphFunc, name: str) -> bool:
    calls = (b.right for b in all_bindings(graph.bindings) if isinstance(b.right, CallGraph))
    return any(call.function == name for call in calls)


def is_group(module: Module, name: str) -> bool:
    """Return whether a function is a group of ``fuse_ops`` without a memory plan of its own."""
    found = module.functions.get(name)
    if not isinstance(found, GraphFunc):
        return False
    return found.stage == "dataflow" and PRIMITIVE in found.attributes


def calls_groups(module: Module, name: str) -> bool:
    """Return whether a graph-level function calls a group of ``fuse_ops``."""
    calls = (b.right for b in all_bindings(module.graph(name).bindings))
    return any(isinstance(c, CallGraph) and is_group(module, c.function) for c in calls)


def _contents(group: GraphFunc) -> Iterator[Problem]:
    """Yield a problem for each binding of a group that cannot be fused."""
    written = [p.value for p in group.params if p.access != "in"]
    if written:
        names = ", ".join(v.name for v in written)
        where = tuple(BindingRef(group.name, v.uid, v.name) for v in written)
        message = f"group {group.name!r} writes parameters: {names}"
        yield Problem(FuseTir.Requires.NO_UPDATES, message, where)
    known: set[Operand] = {p.value for p in group.params}
    tensors = [isinstance(getattr(r, "info", None), TensorInfo) for r in group.results]
    if not written and tensors != [True]:
        message = f"group {group.name!r} returns {len(tensors)} results, or a tuple"
        yield Problem(FuseTir.Requires.CALLS_OF_KERNELS, message, (FunctionRef(group.name),))
    for binding in group.bindings:
        right = binding.right
        where = (BindingRef(group.name, binding.value.uid, binding.value.name),)
        name = f"{binding.value.name!r} in group {group.name!r}"
        if not isinstance(right, CallTIR):
            needs = isinstance(right, Call) and get_operator(right.op).needs_kernel
            fixes = (Legalize(FunctionRef(group.name)),) if needs else ()
            yield Problem(
                FuseTir.Requires.CALLS_OF_KERNELS,
                f"{name} is not a call of a kernel",
                where,
                fixes=fixes,
            )
        elif not known.issuperset(right.args):
            yield Problem(
                FuseTir.Requires.CALLS_OF_KERNELS,
                f"{name} uses a value that is neither a parameter nor a binding of the group",
                where,
            )
        elif right.updates:
            message = f"{name} updates operands {', '.join(map(str, right.updates))}"
            yield Problem(FuseTir.Requires.NO_UPDATES, message, where)
        elif right.versions:
            names = ", ".join(v.function for v in right.versions)
            yield Problem(FuseTir.Requires.NO_VERSIONS, f"{name} has versions: {names}", where)
        known.add(binding.value)


def called_kernels(module: Module) -> set[str]:
    """Return the names of all loop-level functions that graphs call, including versions."""
    return {name for graph in module.graphs for name in _called(graph.bindings)}


def _called(bindings: tuple[Binding, ...]) -> Iterator[str]:
    for binding in all_bindings(bindings):
        right = binding.right
        if isinstance(right, CallTIR | LaunchKernel):
            yield right.function
            yield from (v.function for v in right.versions)


def without_unused(module: Module, before: Module) -> Module:
    """Remove the loop-level functions that graphs no longer call."""
    unused = called_kernels(before) - called_kernels(module)
    return module.without(*unused)


def _joined_call(
    state: State, group: GraphFunc, binding: Binding, call: CallGraph, table: KernelTable
) -> CallTIR:
    info = binding.value.info
    if not isinstance(info, TensorInfo):
        raise TypeError(f"the result of group {group.name!r} is not a tensor")
    join = _Join(state.module, group, UidSource(state.ordinal))
    kernel = generalize(KernelCall(join.function(), join.scalars))
    args = tuple(a for a in call.args if not isinstance(a, Dims))
    return CallTIR(table.add(kernel.function), args, (info,), kernel.scalars)


@lru_cache(maxsize=256)
def _united(origins: tuple[Origins, ...]) -> Origins:
    """Return the union of the origins of kernels, which many groups share."""
    return NO_ORIGIN.union(*origins)


class _Join:
    """Construction of one loop-level function from the kernels that a group calls."""

    def __init__(self, module: Module, group: GraphFunc, mint: UidSource) -> None:
        self._module = module
        self._group = group
        self._mint = mint
        self._names = Renaming([symbol.name for symbol in symbols_of(group)])
        self._buffers: dict[Operand, Buffer] = {}
        self._params: list[Param] = []
        self._temporaries: list[Buffer] = []
        self._facts: Facts = group.facts
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
        """Return the fused function."""
        self._declare_inputs()
        body = seq(*(self._body(b) for b in self._group.bindings))
        params = sorted(self._params, key=lambda p: isinstance(p, ScalarParam))
        calls = (b.right for b in self._group.bindings if isinstance(b.right, CallTIR))
        callees = tuple(self._module.prim(c.function) for c in calls)
        origins = _united(tuple(c.origins for c in callees))
        checked = any(CHECK_BOUNDS in c.attributes for c in callees)
        own = NO_ORIGIN.union(*(b.origins for b in self._group.bindings))
        if not own <= origins:
            origins |= own
        return PrimFunc(
            self._group.name,
            tuple(params),
            body,
            tuple(self._temporaries),
            self._facts,
            attributes=(CHECK_BOUNDS,) if checked else (),
            origins=origins,
        )

    def _body(self, binding: Binding) -> Stmt:
        right = binding.right
        if not isinstance(right, CallTIR):
            raise TypeError(f"a group calls kernels only, not {type(right).__name__}")
        callee = self._module.prim(right.function)
        inputs: Sequence[Buffer] = [self._buffers[a] for a in right.args]
        outputs = [self._output(binding.value, info) for info in right.outputs]
        self._require(callee, (*inputs, *outputs), right.scalars)
        body, temporaries = inlined_body(
            callee, (*inputs, *outputs), right.scalars, self._names, self._mint
        )
        self._temporaries.extend(temporaries)
        return body

    def _require(
        self, callee: PrimFunc, buffers: Sequence[Buffer], scalars: Sequence[Expr]
    ) -> None:
        """Add the conditions and facts of a call that are not proved to those that are checked."""
        dims = [b.shape for b in buffers]
        values = symbol_values(callee, dims, scalars)
        needed = [(c.claim, Origin(c.text)) for c in kernel_conditions(callee, dims, values)]
        needed += [(substitute(f.predicate, values), f.origin) for f in callee.facts]
        for claim, origin in ((part, o) for whole, o in needed for part in conjuncts(whole)):
            if claim not in self._facts.predicates and not is_proved(claim, self._facts):
                fact = Fact(claim, origin, Discharge.ENTRY_CHECK)
                self._facts = Facts((*self._facts, fact), self._facts.hints)
