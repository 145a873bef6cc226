"""The ``hoist_block`` primitive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ....ir.graph.nodes import Binding, CallTIR, GraphFunc, Operand, TensorInfo, Value
from ....ir.graph.regions import replace_bindings
from ....ir.graph.visit import all_values
from ....ir.identity import UidSource, fresh_name
from ....ir.loop.nodes import (
    Block,
    Buffer,
    BufferParam,
    PrimFunc,
    ScalarParam,
    Seq,
    Stmt,
)
from ....ir.loop.visit import loads, path_to, seq, stores, walk
from ....ir.module import Module
from ....ir.symbolic import Facts, Var, substitute
from ...apply import Primitive, Rewrite
from ...handles import BlockRef, FunctionRef, Handle, refs_of
from ...kernels import KernelCall, KernelTable, call_symbols, generalize, symbols_of
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State
from ._functions import plain_calls_problem


@primitive(family="graph", returns=FunctionRef)
@dataclass(frozen=True, slots=True)
class HoistBlock(Primitive):
    """Hoist a block that only depends on inputs out of a kernel, into a new kernel.

    Before::

        matmul(x, w): for ...: packed[...] = w[...]
                      for ...: y[...] += x[...] * packed[...]

    After::

        packed = call_tir(matmul_packed, w)
        y = call_tir(matmul, x, packed)

    Parameters
    ----------
    block : BlockRef
        The block to hoist.

    Notes
    -----
    If the block depends on weights only, ``lift_transforms`` can then move the new call to load
    time. The result is the handle of the new function. Cost: one more kernel.

    Names elsewhere: TVM ``relax.transform.SplitLayoutRewritePreproc``; Halide: none.

    References
    ----------
    TensorIR (ASPLOS '23), §4 (layout rewriting).

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @graph_func
    ... def main(x: Tensor[(4,), f32], w: Tensor[(4,), f32]):
    ...     y = call_tir(scaled, x, w, outputs=(Tensor[(4,), f32],))
    ...     return y
    ...
    ... @prim_func
    ... def scaled(x: Buffer[(4,), f32], w: Buffer[(4,), f32], y: Out[(4,), f32]):
    ...     t = alloc((4,), f32)
    ...     for i in range(4):
    ...         with block("t"):
    ...             vi = spatial(i)
    ...             t[vi] = w[vi] * 0.5
    ...     for j in range(4):
    ...         with block("y"):
    ...             vj = spatial(j)
    ...             y[vj] = x[vj] * t[vj]
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> sch.hoist_block("t")
    <function scaled_t>
    >>> print(sch)
    @graph_func
    def main(x: Tensor[(4,), f32], w: Tensor[(4,), f32]):
        y_t: Tensor[(4,), f32] = call_tir(scaled_t, w)
        y: Tensor[(4,), f32] = call_tir(scaled, x, y_t)
        return y
    <BLANKLINE>
    <BLANKLINE>
    @prim_func
    def scaled_t(w: Buffer[(4,), f32], t: Out[(4,), f32]):
        for i in range(4):
            with block("t"):
                vi = spatial(i)
                t[vi] = w[vi] * 0.5
    <BLANKLINE>
    <BLANKLINE>
    @prim_func
    def scaled(x: Buffer[(4,), f32], t: Buffer[(4,), f32], y: Out[(4,), f32]):
        for j in range(4):
            with block("y"):
                vj = spatial(j)
                y[vj] = x[vj] * t[vj]
    """

    class Requires(Requirement):
        """The requirements of ``hoist_block``."""

        OWN_NEST = (
            "the loop nest of the block is directly in the function body and contains no other "
            "block"
        )
        WRITES_ONE_TEMPORARY = (
            "the nest writes exactly one buffer, a temporary that no other block writes"
        )
        READS_INPUTS = "the nest reads only inputs of the function"
        PLAIN_CALLS = (
            "all calls of the function are plain: in the dataflow stage, outside of groups, and "
            "without versions"
        )

    block: BlockRef

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the position of the block, and the buffers that it reads and writes."""
        func = state.module.prim(self.block.function)
        block = state.block(self.block)
        nest = _nest_of(func, block)
        if nest is None:
            message = f"block {block.name!r} is not in a top-level loop nest without other blocks"
            yield Problem(self.Requires.OWN_NEST, message, (self.block,))
            return
        written = {s.buffer for s in stores(nest)}
        others = [p for p in _parts(func) if p is not nest]
        elsewhere = {s.buffer for p in others for s in stores(p)}
        if len(written) != 1 or written & elsewhere or not written <= set(func.buffers):
            names = ", ".join(sorted(b.name for b in written))
            message = (
                f"the nest of block {block.name!r} writes {names}; expected exactly one temporary "
                "that no other block writes"
            )
            where = (self.block, *refs_of(func.name, *written))
            yield Problem(self.Requires.WRITES_ONE_TEMPORARY, message, where)
        read = {load.buffer for load in loads(nest)} - written
        wrong = sorted(read - _inputs(func), key=lambda b: b.name)
        if wrong:
            names = ", ".join(b.name for b in wrong)
            message = (
                f"the nest of block {block.name!r} reads {names}; expected only inputs of the "
                "function"
            )
            where = (self.block, *refs_of(func.name, *wrong))
            yield Problem(self.Requires.READS_INPUTS, message, where)
        yield from plain_calls_problem(state, FunctionRef(func.name), self.Requires.PLAIN_CALLS)

    def rewrite(self, state: State) -> Rewrite:
        """Split the kernel in two, and call the new kernel before every call of the old one."""
        func = state.module.prim(self.block.function)
        nest = _nest_of(func, state.block(self.block))
        if nest is None:
            raise TypeError("the block is not in a nest without other blocks")
        split = _Split(func, nest)
        table = KernelTable(state.module.without(func.name))
        hoisted = generalize(split.hoisted())
        name = table.add(hoisted.function)
        module = table.module().with_functions(split.rest())
        split.call = KernelCall(replace(hoisted.function, name=name), hoisted.scalars)
        split.mint = UidSource(state.ordinal)
        for graph in module.graphs:
            module = split.adapt(module, graph)
        return Rewrite(module, (FunctionRef(name),))

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the step for a selected block without an init."""
        if isinstance(selection, BlockRef) and state.block(selection).init is None:
            yield cls(selection)


def _parts(func: PrimFunc) -> tuple[Stmt, ...]:
    return func.body.body if isinstance(func.body, Seq) else (func.body,)


def _nest_of(func: PrimFunc, block: Block) -> Stmt | None:
    for part in _parts(func):
        if path_to(part, block):
            blocks = [s for s in walk(part) if isinstance(s, Block)]
            return part if blocks == [block] else None
    return None


def _inputs(func: PrimFunc) -> set[Buffer]:
    return {p.buffer for p in func.params if isinstance(p, BufferParam) and p.access == "in"}


class _Split:
    """A kernel split into the hoisted block and the remaining blocks."""

    def __init__(self, func: PrimFunc, nest: Stmt) -> None:
        self._func = func
        self._nest = nest
        self.call = KernelCall(func, ())
        self.mint = UidSource()
        self._target = next(s.buffer for s in stores(nest))
        self._read = [b for b in func.buffer_params if b in {x.buffer for x in loads(nest)}]
        remaining = seq(*(p for p in _parts(func) if p is not nest))
        self._remaining = remaining
        used = {x.buffer for x in loads(remaining)} | {s.buffer for s in stores(remaining)}
        self._kept = [
            p.access in ("inout", "state") or p.buffer in used
            for p in func.params
            if isinstance(p, BufferParam)
        ]

    @property
    def added(self) -> tuple[Var, ...]:
        """The symbols that only the arguments of the hoisted block determined."""
        buffers = [p.buffer for p in self._func.params if isinstance(p, BufferParam)]
        kept = [b for b, keep in zip(buffers, self._kept, strict=True) if keep]
        bound = {d for b in (*kept, self._target) for d in b.shape} | set(self._func.scalar_params)
        temporaries = tuple(b for b in self._func.buffers if b is not self._target)
        rest = replace(
            self._func,
            params=tuple(BufferParam(b, "in") for b in (*kept, self._target)),
            body=self._remaining,
            buffers=temporaries,
        )
        return tuple(sorted(symbols_of(rest) - bound, key=lambda v: v.serial))

    def hoisted(self) -> KernelCall:
        """Return the new kernel, which reads inputs and writes the former temporary.

        Symbols that only other arguments of the old kernel determined are integer parameters.
        """
        buffers = [BufferParam(b, "in") for b in self._read] + [BufferParam(self._target, "out")]
        name = f"{self._func.name}_{self._target.name}"
        kernel = replace(
            self._func, name=name, params=tuple(buffers), body=self._nest, buffers=(), facts=Facts()
        )
        bound = {d for p in buffers for d in p.buffer.shape}
        needed = symbols_of(kernel).union(self._func.scalar_params) - bound
        scalars = tuple(sorted(needed, key=lambda v: v.serial))
        params = (*buffers, *map(ScalarParam, scalars))
        known = bound.union(scalars)
        facts = Facts(f for f in self._func.facts if f.predicate.free <= known)
        return KernelCall(replace(kernel, params=params, facts=facts), scalars)

    def rest(self) -> PrimFunc:
        """Return the old kernel, with the temporary as its last input."""
        buffers = [p for p in self._func.params if isinstance(p, BufferParam)]
        kept = [p for p, keep in zip(buffers, self._kept, strict=True) if keep]
        inputs = [p for p in kept if p.access != "out"]
        outputs = [p for p in kept if p.access == "out"]
        scalars = [p for p in self._func.params if isinstance(p, ScalarParam)]
        scalars += map(ScalarParam, self.added)
        params = (*inputs, BufferParam(self._target, "in"), *outputs, *scalars)
        temporaries = tuple(b for b in self._func.buffers if b is not self._target)
        rest = replace(self._func, params=params, body=self._remaining, buffers=temporaries)
        bound = {d for b in rest.buffer_params for d in b.shape} | set(rest.scalar_params)
        facts = Facts(f for f in rest.facts if f.predicate.free <= bound)
        return rest if len(facts) == len(rest.facts) else replace(rest, facts=facts)

    def adapt(self, module: Module, graph: GraphFunc) -> Module:
        """Return the module with calls of the new kernel before those of the old one in a graph."""
        taken = {v.name for v in all_values(graph)}
        changed: list[Value] = []

        def adapted(binding: Binding) -> Sequence[Binding]:
            right = binding.right
            if not isinstance(right, CallTIR) or right.function != self._func.name:
                return (binding,)
            changed.append(binding.value)
            return self._calls(binding, right, taken)

        bindings = replace_bindings(graph.bindings, adapted)
        return module.with_functions(replace(graph, bindings=bindings)) if changed else module

    def _calls(self, binding: Binding, call: CallTIR, taken: set[str]) -> tuple[Binding, Binding]:
        terms = call_symbols(self._func, call)
        shape = tuple(substitute(d, terms) for d in self._target.shape)
        info = TensorInfo(shape, self._target.dtype, rank=len(shape))
        taken_params = [
            (p, keep)
            for p, keep in zip(
                (p for p in self._func.params if isinstance(p, BufferParam)),
                self._kept,
                strict=True,
            )
            if p.access != "out"
        ]
        given = {p.buffer: a for (p, _), a in zip(taken_params, call.args, strict=True)}
        args: tuple[Operand, ...] = tuple(given[b] for b in self._read)
        scalars = tuple(substitute(s, terms) for s in self.call.scalars)
        name = fresh_name(f"{binding.value.name}_{self._target.name}", taken)
        taken.add(name)
        value = Value(self.mint(), name, info)
        first = Binding(
            value, CallTIR(self.call.function.name, args, (info,), scalars), binding.origins
        )
        kept = [p for p, keep in taken_params if keep]
        kept_args = tuple(given[p.buffer] for p in kept)
        updates = tuple(k for k, p in enumerate(kept) if p.access != "in")
        added = tuple(substitute(v, terms) for v in self.added)
        right = replace(
            call, args=(*kept_args, value), scalars=(*call.scalars, *added), updates=updates
        )
        return first, replace(binding, right=right)
