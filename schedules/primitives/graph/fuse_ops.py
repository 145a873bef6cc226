"""The ``fuse_ops`` primitive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from keyword import iskeyword

from ....ir.analysis import PatternKind, pattern_kind
from ....ir.graph.in_place_updates import InPlaceUpdates
from ....ir.graph.nodes import (
    Binding,
    CallGraph,
    CallTIR,
    ConstantRef,
    Dims,
    GraphFunc,
    GraphParam,
    Info,
    Operand,
    ShapeInfo,
    TensorInfo,
    Value,
)
from ....ir.graph.regions import region_of, regions, replace_bindings
from ....ir.graph.visit import (
    all_bindings,
    info_terms,
    inner_bindings,
    map_operands,
    operands_of,
    terms_of,
    used_values,
    users,
)
from ....ir.identity import Names, UidSource, fresh_name
from ....ir.module import Module
from ....ir.naming import bounded_name
from ....ir.symbolic import Expr, Facts, Var, as_expr, const_value, free_vars, product
from ...apply import Primitive, Rewrite
from ...handles import BindingRef, FunctionRef, Handle
from ...problem import Problem
from ...quantized_weights import fused_conversions
from ...registry import primitive
from ...requirement import Requirement
from ...state import State
from ...transposed_operands import fused_transposes
from ._functions import MAIN, PRIMITIVE, graph_problem
from ._fused_sizes import FusedSizes
from .fuse_tir import is_group

_LONGEST = 120
"""The most characters of a function's name that lists all kernels of a group."""


@primitive(family="graph", returns=tuple[FunctionRef, ...])
@dataclass(frozen=True, slots=True)
class FuseOps(Primitive):
    """Group kernel calls that become one kernel, so that intermediate tensors stay inside it.

    Before::

        t = call_tir(matmul, x, w)
        y = call_tir(add, t, bias)

    After::

        y = call(fused_matmul_add, x, w, bias)  # a graph of the two calls, marked `primitive`

    Without ``bindings`` the whole function is grouped by the pattern kinds of its kernels, which
    are derived from their loops: chains of elementwise, broadcast and injective kernels;
    elementwise or broadcast epilogues of a matmul with the shape of its result; elementwise or
    broadcast prologues of a reduction; conversions of weights of at most 8 bits to the right
    operand of a matmul; on a CPU, permutations of the right operand of a matmul after which it
    reads elements that are adjacent along the reduced dimension. An intermediate with several users
    joins a group only if all users are in it. Calls with versions or updates are not grouped, and
    no call is moved behind an update in place of memory that it reads. A value stays in memory if
    the expression of its group would have more than 512 nodes or be nested deeper than 64, and if
    it has more than 100 nodes and is used more than once.

    Parameters
    ----------
    function : FunctionRef
        The graph-level function.
    bindings : tuple of BindingRef
        The calls to form one group; empty to group the whole function automatically.

    Notes
    -----
    The results are the handles of the new functions. Cost: linear in the size of the graph.

    Names elsewhere: TVM ``relax.transform.FuseOps``; Halide: none.

    References
    ----------
    Relax (ASPLOS '25), §4.2 (FuseOps); DISC (EuroMLSys '21), §4 (fusion).

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
    >>> _ = sch.legalize()
    >>> [f.function for f in sch.fuse_ops()]
    ['fused_relu_relu']
    """

    class Requires(Requirement):
        """The requirements of ``fuse_ops``."""

        DATAFLOW_STAGE = "the function is a graph-level function in the dataflow stage"
        CALLS_OF_FUNCTIONS = (
            "the chosen bindings are at least two calls of loop-level functions, the last with one "
            "result"
        )
        RESULTS_USED_INSIDE = (
            "only chosen bindings use the results of the chosen bindings other than the last"
        )
        NO_REENTERING_PATH = "no dependence path leaves the group and enters it again"
        NO_VERSIONS = (
            "no chosen call has versions: a group becomes one function, which cannot choose by a "
            "guard"
        )

        NO_UPDATES = "no chosen call updates an argument: the value of a group is one new tensor"
        NOT_A_GROUP = "the function is not itself a group of ``fuse_ops``: groups are not nested"

    function: FunctionRef = MAIN
    bindings: tuple[BindingRef, ...] = ()

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the function and the chosen bindings."""
        wrong = list(graph_problem(state, self.function, self.Requires.DATAFLOW_STAGE))
        if is_group(state.module, self.function.function):
            message = f"{self.function.function!r} is a group of fuse_ops"
            wrong.append(Problem(self.Requires.NOT_A_GROUP, message, (self.function,)))
        yield from wrong
        if not wrong and self.bindings:
            graph = state.module.graph(self.function.function)
            yield from self._choice(region_of(graph, self.bindings[0].uid))

    def _choice(self, graph: GraphFunc) -> Iterator[Problem]:
        wanted = {r.uid for r in self.bindings}
        chosen = [b for b in graph.bindings if b.value.uid in wanted]
        calls = [b for b in chosen if isinstance(b.right, CallTIR)]
        if len(calls) < 2 or len(calls) < len(wanted):
            message = (
                f"{len(calls)} of the {len(wanted)} chosen bindings call kernels; expected all, "
                "and at least two"
            )
            yield Problem(self.Requires.CALLS_OF_FUNCTIONS, message, self.bindings)
            return
        last = chosen[-1].value
        if not isinstance(last.info, TensorInfo):
            message = f"the last call {last.name!r} has several results; expected one tensor"
            where = (BindingRef(graph.name, last.uid, last.name),)
            yield Problem(self.Requires.CALLS_OF_FUNCTIONS, message, where)
        yield from _chosen_versions(graph, chosen)
        yield from _chosen_updates(graph, chosen)
        inside = {b.value for b in chosen}
        uses = users(graph)
        for binding in chosen[:-1]:
            outside = [u.value.name for u in uses.get(binding.value, []) if u.value not in inside]
            if outside or binding.value in graph.returned:
                names = ", ".join(outside) or "the result of the function"
                where = (BindingRef(graph.name, binding.value.uid, binding.value.name),)
                message = f"{binding.value.name!r} is also used outside of the group, by {names}"
                yield Problem(self.Requires.RESULTS_USED_INSIDE, message, where)
        yield from _reentering_paths(graph, chosen)

    def rewrite(self, state: State) -> Rewrite:
        """Move each group into a new function."""
        graph = state.module.graph(self.function.function)
        wanted = {r.uid for r in self.bindings}
        if wanted:
            groups = [[b for b in all_bindings(graph.bindings) if b.value.uid in wanted]]
        else:
            updates = InPlaceUpdates(graph)
            transposes = state.target is None or not state.target.is_gpu
            groups = [
                group
                for region in regions(graph)
                for group in Grouping(state.module, region, updates, transposes=transposes).groups()
            ]
        extraction = _Extraction(state.module, graph, UidSource(state.ordinal))
        for group in groups:
            extraction.add(group)
        module = extraction.finish()
        return Rewrite(module, tuple(FunctionRef(n) for n in extraction.names))

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the automatic grouping of the selected graph."""
        found = state.module.functions.get(selection.function)
        if isinstance(found, GraphFunc) and not is_group(state.module, found.name):
            yield cls(FunctionRef(selection.function))


def _chosen_versions(graph: GraphFunc, chosen: Sequence[Binding]) -> Iterator[Problem]:
    for binding in chosen:
        if isinstance(binding.right, CallTIR) and binding.right.versions:
            names = ", ".join(v.function for v in binding.right.versions)
            where = (BindingRef(graph.name, binding.value.uid, binding.value.name),)
            yield Problem(
                FuseOps.Requires.NO_VERSIONS,
                f"call {binding.value.name!r} has versions: {names}",
                where,
            )


def _chosen_updates(graph: GraphFunc, chosen: Sequence[Binding]) -> Iterator[Problem]:
    for binding in chosen:
        if isinstance(binding.right, CallTIR) and binding.right.updates:
            operands = (binding.right.args[k] for k in binding.right.updates)
            names = ", ".join(o.name if isinstance(o, Value) else "a constant" for o in operands)
            where = (BindingRef(graph.name, binding.value.uid, binding.value.name),)
            yield Problem(
                FuseOps.Requires.NO_UPDATES,
                f"call {binding.value.name!r} updates {names}",
                where,
            )


def _reentering_paths(graph: GraphFunc, chosen: Sequence[Binding]) -> Iterator[Problem]:
    inside = {b.value for b in chosen}
    dependent: set[Value] = set()
    for binding in graph.bindings:
        sources = set(used_values((binding,)))
        if binding.value in inside:
            through = sources & dependent
            if through:
                names = ", ".join(sorted(v.name for v in through))
                yield Problem(
                    FuseOps.Requires.NO_REENTERING_PATH,
                    f"{binding.value.name!r} depends on the group through {names}, which is not in "
                    "the group",
                    (BindingRef(graph.name, binding.value.uid, binding.value.name),),
                )
        elif sources & (inside | dependent):
            dependent.add(binding.value)


class Grouping:
    """Automatic grouping of the kernel calls of a function."""

    def __init__(
        self,
        module: Module,
        graph: GraphFunc,
        updates: InPlaceUpdates | None = None,
        *,
        transposes: bool = True,
    ) -> None:
        """Derive the pattern kind of every kernel; the graph may be one of :func:`regions`."""
        self._graph = graph
        self._returned = frozenset(graph.returned)
        self._uses = users(graph)
        self._order = {
            value: k
            for k, binding in enumerate(graph.bindings)
            for value in (binding.value, *_inner_values(binding))
        }
        self._updates = InPlaceUpdates(graph) if updates is None else updates
        self._kinds: dict[Value, PatternKind] = {
            b.value: pattern_kind(module.prim(b.right.function))
            for b in graph.bindings
            if isinstance(b.right, CallTIR)
            and not b.right.versions
            and not b.right.updates
            and isinstance(b.value.info, TensorInfo)
        }
        self._kept = FusedSizes(module, graph, self._kinds, self._uses).kept
        self._computed_inside = fused_conversions(module, graph)
        if transposes:
            self._computed_inside |= fused_transposes(module, graph)
        self._leader: dict[Value, Value] = {v: v for v in self._kinds}
        self._kind_of_group = dict(self._kinds)

    def _find(self, value: Value) -> Value:
        while self._leader[value] is not value:
            self._leader[value] = self._leader[self._leader[value]]
            value = self._leader[value]
        return value

    def groups(self) -> list[list[Binding]]:
        """Return the groups of at least two calls, each in program order."""
        for binding in reversed(self._graph.bindings):
            if binding.value in self._kinds:
                self._try_join(binding)
        members: dict[Value, list[Binding]] = {}
        for binding in self._graph.bindings:
            if binding.value in self._leader:
                members.setdefault(self._find(binding.value), []).append(binding)
        return [group for group in members.values() if len(group) > 1]

    def _try_join(self, binding: Binding) -> None:
        """Join a producer to the group of its users, if it is one group of a compatible kind."""
        value = binding.value
        uses = self._uses.get(value, [])
        if not uses or value in self._returned or value in self._kept:
            return
        if any(u.value not in self._leader for u in uses):
            return
        leaders = {self._find(u.value) for u in uses}
        if len(leaders) != 1:
            return
        leader = leaders.pop()
        if self._passes_update(binding, leader):
            return
        consumer = self._kind_of_group[leader]
        joined = _joined(self._kinds[value], consumer, value, leader)
        joined = consumer if value in self._computed_inside else joined
        if joined is not None:
            self._leader[value] = leader
            self._kind_of_group[leader] = joined

    def _passes_update(self, binding: Binding, leader: Value) -> bool:
        """Return whether a call in a group would move behind an update of memory that it reads.

        The update would then need a copy. An update in another part of a loop is not between them.
        """
        first, last = self._order[binding.value], self._order[leader]
        calls = self._updates.writes(operands_of(binding.right))
        return any(first < self._order.get(call, first) < last for call in calls)


def _inner_values(binding: Binding) -> Iterator[Value]:
    """Yield the values of the bindings in branches and loops."""
    for inner in inner_bindings(binding.right):
        yield from (nested.value for nested in all_bindings(inner))


def _joined(
    producer: PatternKind, consumer: PatternKind, value: Value, leader: Value
) -> PatternKind | None:
    """Return the kind of a group after a producer joins it, or None if it cannot."""
    if producer <= PatternKind.INJECTIVE and consumer <= PatternKind.INJECTIVE:
        return max(producer, consumer)
    if producer in (PatternKind.OUT_FUSABLE, PatternKind.REDUCTION):
        epilogue = consumer <= PatternKind.BROADCAST and _same_size(value, leader)
        return producer if epilogue and producer == PatternKind.OUT_FUSABLE else None
    if producer <= PatternKind.BROADCAST and consumer == PatternKind.REDUCTION:
        return consumer
    return None


def _elements(value: Value) -> Expr | None:
    info = value.info
    if not isinstance(info, TensorInfo) or info.shape is None:
        return None
    return product(info.shape)


def _same_size(value: Value, leader: Value) -> bool:
    return _elements(value) is not None and _elements(value) == _elements(leader)


class _Extraction:
    """Extraction of groups of bindings into functions marked `primitive`."""

    def __init__(self, module: Module, graph: GraphFunc, mint: UidSource) -> None:
        self._module = module
        self._graph = graph
        self._mint = mint
        self._functions: list[GraphFunc] = []
        self._calls: dict[Value, Binding] = {}
        self._inside: set[Value] = set()
        self._taken = Names(module.functions)
        self.names: list[str] = []

    def add(self, group: Sequence[Binding]) -> None:
        """Extract one group into a function, and call it at its last member."""
        last = group[-1]
        kernels = [b.right.function for b in group if isinstance(b.right, CallTIR)]
        name = self._taken.fresh(_group_name([_short(k) for k in kernels]))
        function, args = self._function(name, group)
        self._functions.append(function)
        self.names.append(name)
        self._inside.update(b.value for b in group[:-1])
        origins = frozenset[str]().union(*(b.origins | {b.value.name} for b in group))
        self._calls[last.value] = replace(last, right=CallGraph(name, args), origins=origins)

    def _function(
        self, name: str, group: Sequence[Binding]
    ) -> tuple[GraphFunc, tuple[Operand, ...]]:
        inside = {b.value for b in group}
        outer = list(
            dict.fromkeys(o for b in group for o in operands_of(b.right) if o not in inside)
        )
        params: dict[Operand, Value] = {}
        taken: set[str] = {b.value.name for b in group}
        for operand in outer:
            if isinstance(operand, Value | ConstantRef):
                params[operand] = self._parameter(operand, taken)
        args: tuple[Operand, ...] = tuple(params)
        graph_params = [GraphParam(v) for v in params.values()]
        loose = _unbound_symbols(group, [p.value.info for p in graph_params])
        if loose:
            info = ShapeInfo(loose, len(loose))
            graph_params.append(GraphParam(Value(self._mint(), fresh_name("shape", taken), info)))
            args = (*args, Dims(loose))
        bindings = tuple(
            replace(b, right=map_operands(b.right, lambda o: params.get(o, o))) for b in group
        )
        function = GraphFunc(
            name,
            tuple(graph_params),
            bindings,
            (group[-1].value,),
            _facts_of(self._graph, [p.value.info for p in graph_params]),
            attributes=(PRIMITIVE,),
        )
        return function, args

    def _parameter(self, operand: Value | ConstantRef, taken: set[str]) -> Value:
        base = operand.name if isinstance(operand, Value) else _parameter_name(operand.key)
        chosen = fresh_name(base, taken)
        taken.add(chosen)
        info = operand.info
        if isinstance(info, TensorInfo):
            info = replace(info, elements=None)  # no call of a kernel depends on known elements
        return Value(self._mint(), chosen, info)

    def finish(self) -> Module:
        """Return the module with the calls of the groups."""
        bindings = replace_bindings(self._graph.bindings, self._extracted)
        graph = replace(self._graph, bindings=bindings)
        return self._module.with_functions(*self._functions, graph)

    def _extracted(self, binding: Binding) -> tuple[Binding, ...]:
        """Return the binding, or the call of its group if it is the last member."""
        return () if binding.value in self._inside else (self._calls.get(binding.value, binding),)


def _parameter_name(key: str) -> str:
    """Return the last part of a constant's key if it is a name (``weight``, ``bias``)."""
    last = key.rsplit(".", 1)[-1]
    is_name = last.isidentifier() and not iskeyword(last) and last.isalpha()
    return last if is_name else "w"


def _group_name(kernels: Sequence[str]) -> str:
    """Return the name of a group; of a large one, it lists the first and the last kernel."""
    name = "fused_" + "_".join(kernels)
    if len(name) <= _LONGEST:
        return name
    first, last = (bounded_name(kernels[k]) for k in (0, -1))
    return f"fused_{first}_{len(kernels) - 2}_others_{last}" if len(kernels) > 2 else name


def _short(kernel: str) -> str:
    return kernel.rstrip("0123456789").rstrip("_")


def _unbound_symbols(group: Sequence[Binding], infos: Sequence[Info]) -> tuple[Expr, ...]:
    """Return the symbols that a group uses but no parameter shape determines."""
    dims = [d for i in infos if isinstance(i, TensorInfo) for d in i.shape or ()]
    bound = {d for d in dims if isinstance(d, Var)}
    mentioned: dict[Var, None] = {}
    for term in (*dims, *(t for b in group for t in _terms(b))):
        if const_value(term) is None:
            found = sorted(free_vars(term), key=lambda v: v.serial)
            mentioned.update(dict.fromkeys(v for v in found if v not in bound))
    return tuple(as_expr(v) for v in mentioned)


def _facts_of(graph: GraphFunc, infos: Sequence[Info]) -> Facts:
    """Return the facts about symbols that the parameters of a group determine."""
    terms = [t for i in infos if isinstance(i, TensorInfo) for t in i.shape or ()]
    terms += [t for i in infos if isinstance(i, ShapeInfo) for t in i.dims or ()]
    bound = {t for t in terms if isinstance(t, Var)}
    return Facts(f for f in graph.facts if f.predicate.free <= bound)


def _terms(binding: Binding) -> Iterator[Expr]:
    yield from info_terms(binding.value.info)
    for term in terms_of(binding.right):
        if isinstance(term, Expr):
            yield term
