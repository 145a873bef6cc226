"""The ``fuse_attention`` primitive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from ....ir.graph.nodes import (
    Binding,
    CallTIR,
    GraphFunc,
    KernelVersion,
    TensorInfo,
    operand_info,
)
from ....ir.graph.operators.lowering import callee_facts
from ....ir.graph.regions import binding_of
from ....ir.loop.nodes import PrimFunc
from ....ir.module import Module
from ....ir.symbolic import Expr, Facts, bounds, var
from ...apply import Primitive, Rewrite
from ...attention import Attention, CausalStep, Recognition, ScoreStep, Source
from ...attention_kernels import blocked_attention, row_attention
from ...handles import BindingRef, FunctionRef, Handle, label
from ...kernels import KernelCall, KernelTable, add_origins, generalize
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State
from ._functions import MAIN, graph_problem

FEW: Final = 8
"""The most queries that are computed one by one, and not in the lanes of vectors."""

TILES: Final = 8
"""The tiles of keys in a block: for AVX-512, 112 keys, so that scores of 14 KiB stay in cache."""

ROW_KEYS: Final = 256
"""The keys in a block of one query: the scores of 1 KiB stay in cache."""


@primitive(family="graph", returns=tuple[FunctionRef, ...])
@dataclass(frozen=True, slots=True)
class FuseAttention(Primitive):
    """Compute attention in one kernel that keeps a block of scores instead of all of them.

    Before::

        key_t = permute_dims(key, axes=(0, 2, 1))
        scores = matmul(query, key_t)
        scaled = multiply(scores, 0.125)
        weights = softmax(scaled)
        y = matmul(weights, value)

    After::

        y = call_tir(attention, query, key, value)  # n <= 8: attention_rows, <= 16: attention_half

    The kernel visits the keys in blocks, and keeps the largest score, the sum of exponentials and
    the weighted sum of values of the keys before. Between the first product and the softmax may be
    factors, masks that are added, bool masks that select minus infinity, and causal masks. Keys
    after the last one that a causal mask shows to a block of queries are not read. Permutations of
    the operands, and repetitions of the heads of keys and values, are not computed: the kernel
    reads their sources.

    Parameters
    ----------
    function : FunctionRef
        The graph-level function.
    bindings : tuple of BindingRef
        The second products of the attentions; empty for all attentions of the function.
    lanes : int
        The queries of a block. The kernel for at most 8 queries has half as many lanes.
    rows : int
        The keys, or elements of values, of a tile whose sums stay in vector registers.

    Notes
    -----
    The operands are f32, with constant widths of keys and values. Up to 8 queries, each query reads
    the keys in their order; for more, vectors contain one query per lane, in blocks of ``lanes``,
    or of half as many if one such block is enough. If the number of queries is not constant, all
    kernels are made that it may need, and guards select one. The order of additions differs
    from that of the operators, and a weight is divided by the sum of weights after its product with
    a value: the error of a result is at most ``(keys + width + 24) * 2**-24`` times the weighted
    sum of the absolute values, plus the effect of the rounding of scores. A sum of products with
    values near the largest number may overflow. A key that a causal mask hides from all queries of
    a block has no effect, even if its value is infinite or NaN. The bindings of the scores remain
    until ``dead_code``. The results are the handles of the new functions. Cost: linear in the size
    of the graph.

    Names elsewhere: PyTorch ``scaled_dot_product_attention``; TVM, Halide: none.

    References
    ----------
    Milakov and Gimelshein, Online normalizer calculation for softmax, 2018; Dao et al.,
    FlashAttention, 2022.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... n, m = symbols("n m", lower=1)
    ... @graph_func
    ... def main(q: Tensor[(n, 8), f32], k: Tensor[(m, 8), f32], v: Tensor[(m, 8), f32]):
    ...     t = permute_dims(k, axes=(1, 0))
    ...     s = matmul(q, t)
    ...     p = softmax(s)
    ...     y = matmul(p, v)
    ...     return y
    ... ''')
    >>> sch = tw.Schedule(module, tw.Target("cpu", features=("avx512",)))
    >>> [f.function for f in sch.fuse_attention()]
    ['attention', 'attention_half', 'attention_rows']
    """

    class Requires(Requirement):
        """The requirements of ``fuse_attention``."""

        DATAFLOW_STAGE = "the function is a graph-level function in the dataflow stage"
        ATTENTION = (
            "the bindings are second products of attention: of a softmax of scores, which nothing "
            "else uses, of f32 queries and transposed keys"
        )
        SIZES = "lanes is at least 2, and rows at least 1"
        CPU = "the target is not a GPU, whose kernels have other tiles"

    function: FunctionRef = MAIN
    bindings: tuple[BindingRef, ...] = ()
    lanes: int = 32
    rows: int = 14

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the function, the target, and the chosen bindings."""
        wrong = list(graph_problem(state, self.function, self.Requires.DATAFLOW_STAGE))
        yield from wrong
        if wrong:
            return
        target = state.target
        if target is not None and target.is_gpu:
            message = f"the target is {target.kind!r}"
            yield Problem(self.Requires.CPU, message, (self.function,))
        if self.lanes < 2 or self.rows < 1:
            message = f"lanes is {self.lanes} and rows is {self.rows}"
            yield Problem(self.Requires.SIZES, message, (self.function,))
        graph = state.module.graph(self.function.function)
        found = {b.value.uid for b, _ in attentions(graph)}
        for ref in self.bindings:
            if ref.function != graph.name or ref.uid not in found:
                message = f"{label(ref)!r} is not the second product of an attention"
                yield Problem(self.Requires.ATTENTION, message, (ref,))
        if not found and not self.bindings:
            message = f"{graph.name!r} contains no attention"
            yield Problem(self.Requires.ATTENTION, message, (self.function,))

    def rewrite(self, state: State) -> Rewrite:
        """Replace the second products by calls of kernels."""
        graph = state.module.graph(self.function.function)
        wanted = {r.uid for r in self.bindings}
        table = KernelTable(state.module)
        known = set(state.module.functions)
        defined = {b.value: b for b in graph.bindings}

        def named(binding: Binding, found: Attention) -> Binding:
            """Add the origins of the operators that the kernel replaces."""
            inner = (defined[v] for v in found.inner)
            more = (o for b in inner for o in (*b.origins, b.value.name))
            return replace(binding, origins=binding.origins.union(more))

        kernels = _Kernels(graph.facts, (self.lanes, self.rows))
        calls = {
            b.value: _call(named(b, found), found, graph, kernels, table)
            for b, found in attentions(graph)
            if not wanted or b.value.uid in wanted
        }
        bindings = tuple(
            replace(b, right=calls[b.value]) if b.value in calls else b for b in graph.bindings
        )
        module: Module = table.module().with_functions(replace(graph, bindings=bindings))
        made = [n for n in module.functions if n not in known]
        return Rewrite(module, tuple(FunctionRef(n) for n in made))

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the step for a selected attention, or for a graph that contains some."""
        found = state.module.functions.get(selection.function)
        if not isinstance(found, GraphFunc) or found.stage != "dataflow":
            return
        function = FunctionRef(selection.function)
        if isinstance(selection, BindingRef):
            binding = binding_of(found, selection.uid)
            if binding is not None and Recognition(found).attention(binding) is not None:
                yield cls(function, (selection,))
        elif isinstance(selection, FunctionRef) and attentions(found):
            yield cls(function)


def attentions(graph: GraphFunc) -> list[tuple[Binding, Attention]]:
    """Return the attentions of a function, outside of branches and loops."""
    recognition = Recognition(graph)
    found = ((b, recognition.attention(b)) for b in graph.bindings)
    return [(b, attention) for b, attention in found if attention is not None]


class _Kernels:
    """The kernels of the attentions of a function; those of equal layers are made once."""

    def __init__(self, facts: Facts, tile: tuple[int, int]) -> None:
        self._facts, self._tile = facts, tile
        self._made: dict[tuple[object, ...], list[tuple[int, PrimFunc]]] = {}

    def of(self, found: Attention) -> list[tuple[int, PrimFunc]]:
        """Return the kernels of an attention, with the names of the first one that is equal."""
        key = _signature(found)
        if key not in self._made:
            self._made[key] = _kernels(found, self._facts, self._tile)
        return self._made[key]


@cache
def _indices(count: int) -> tuple[Expr, ...]:
    """Return any indices of an operand of a product."""
    return tuple(var(f"i{k}", lower=0) for k in range(count))


def _signature(found: Attention) -> tuple[object, ...]:
    """Return a key that two attentions have in common if their kernels differ in names only."""
    at = _indices(len(found.outer) + 2)
    operands = found.operands

    def read(source: Source) -> tuple[object, ...]:
        return operands.index(source.operand), source.at(at)

    def step(one: ScoreStep | CausalStep) -> tuple[object, ...]:
        if isinstance(one, CausalStep):
            return (one.offset,)
        factor = one.factor
        other = read(factor) if isinstance(factor, Source) else float(factor).hex()
        return one.op, other, float(one.other).hex()

    infos = [operand_info(o) for o in operands]
    shapes = [(i.shape, i.dtype) if isinstance(i, TensorInfo) else i for i in infos]
    sizes = (found.outer, found.queries, found.keys, found.width, found.depth, found.zero_rows)
    sources = (found.query, found.key, found.value)
    return (*sizes, *map(read, sources), *map(step, found.steps), *shapes)


def _call(
    binding: Binding, found: Attention, graph: GraphFunc, kernels: _Kernels, table: KernelTable
) -> CallTIR:
    """Return the call of the kernel for an attention, with versions for few queries."""
    info = binding.value.info
    if not isinstance(info, TensorInfo):
        raise TypeError("attention returns a tensor")
    origins = binding.origins | {binding.value.name}
    (_, last), *fewer = reversed(kernels.of(found))

    def added(function: PrimFunc) -> tuple[str, KernelCall]:
        symbols = function.scalar_params
        own = replace(function, facts=callee_facts(graph.facts, symbols))
        kernel = generalize(KernelCall(add_origins(own, origins), symbols))
        return table.add(kernel.function), kernel

    name, kernel = added(last)
    versions: list[KernelVersion] = []
    for most, function in fewer:
        version, other = added(function)
        versions.insert(0, KernelVersion(found.queries <= most, version, other.scalars))
    return CallTIR(name, found.operands, (info,), kernel.scalars, tuple(versions))


def _kernels(found: Attention, facts: Facts, tile: tuple[int, int]) -> list[tuple[int, PrimFunc]]:
    """Return the kernels that a number of queries may need, each with the most queries for it."""
    lanes, rows = tile
    half = lanes // 2
    limits = bounds(found.queries)
    least, most = limits.lower or 0, limits.upper
    makers = [
        (FEW, lambda: row_attention(found, "attention_rows", facts, (half, ROW_KEYS))),
        (half, lambda: blocked_attention(found, "attention_half", facts, (half, rows, TILES))),
        (None, lambda: blocked_attention(found, "attention", facts, (lanes, rows, TILES))),
    ]
    made: list[tuple[int, PrimFunc]] = []
    served = least - 1
    for limit, make in makers:
        if limit is None or limit > served:
            made.append((limit or 0, make()))
            served = max(served, limit or 0)
        if limit is not None and most is not None and most <= limit:
            break
    return made
