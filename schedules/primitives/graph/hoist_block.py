"""Take a leading block out of a kernel, into a kernel of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.graph.nodes import Binding, CallTIR, GraphFunc, Operand, TensorInfo, Value
from ....ir.identity import UidSource, fresh_name
from ....ir.loop.nodes import (
    Block,
    Buffer,
    BufferParam,
    Param,
    PrimFunc,
    ScalarParam,
    Seq,
    Stmt,
)
from ....ir.loop.visit import loads, path_to, seq, stores, walk
from ....ir.module import Module
from ....ir.symbolic import substitute
from ...kernels import Kernel, KernelTable, call_symbols, generalise
from ...primitive import Primitive, Rewrite, primitive
from ...problem import Problem
from ...refs import BlockRef, FunctionRef, Ref
from ...state import State
from ._functions import plain_calls_problem


@primitive(family="graph", returns=FunctionRef)
@dataclass(frozen=True, slots=True)
class HoistBlock(Primitive):
    """Move a block that only rearranges or combines inputs out of a kernel.

    Before::

        matmul(x, w): for ...: packed[...] = w[...]
                      for ...: y[...] += x[...] * packed[...]
    After::

        packed = call_tir(matmul_packed, (w,))
        y = call_tir(matmul, (x, packed))

    Where what it reads is a weight, ``lift_transforms`` then moves the call out of the program.

    Parameters
    ----------
    block : BlockRef
        The block.

    Requires
    --------
    1. The block's loop nest stands directly in the function's body and holds no other block.
    2. It writes one temporary, whole, that no other block writes.
    3. It reads only inputs of the function.
    4. All calls of it are plain: in the dataflow stage, outside of branches and of groups, without
       versions.

    Notes
    -----
    Cost: one more kernel. Source: TensorIR §4 (layout rewriting), TVM's layout-rewrite split.
    """

    block: BlockRef

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the place of the block, and what it reads and writes."""
        func = state.module.prim(self.block.function)
        block = state.block(self.block)
        nest = _nest_of(func, block)
        if nest is None:
            yield Problem(1, f"{block.name!r} shares its outer loops", (self.block,))
            return
        written = {s.buffer for s in stores(nest)}
        others = [p for p in _parts(func) if p is not nest]
        elsewhere = {s.buffer for p in others for s in stores(p)}
        if len(written) != 1 or written & elsewhere or not written <= set(func.buffers):
            names = ", ".join(sorted(b.name for b in written))
            yield Problem(2, f"it writes {names}: not one temporary of its own", (self.block,))
        read = {load.buffer for load in loads(nest)} - written
        wrong = sorted(b.name for b in read - _inputs(func))
        if wrong:
            yield Problem(3, f"it reads {', '.join(wrong)}, no input", (self.block,))
        yield from plain_calls_problem(state, FunctionRef(func.name), 4)

    def rewrite(self, state: State) -> Rewrite:
        """Split the kernel in two, and call the new one before every call of the old."""
        func = state.module.prim(self.block.function)
        nest = _nest_of(func, state.block(self.block))
        if nest is None:
            raise TypeError("checked above")
        split = _Split(func, nest)
        table = KernelTable(state.module.without(func.name))
        hoisted = generalise(Kernel(split.hoisted(), func.scalar_params))
        name = table.add(hoisted.function)
        module = table.module().with_functions(split.rest())
        split.call = Kernel(replace(hoisted.function, name=name), hoisted.scalars)
        split.mint = UidSource(state.ordinal)
        for graph in module.graphs:
            module = split.adapt(module, graph)
        return Rewrite(module, (FunctionRef(name),))

    @classmethod
    def suggest(cls, state: State, selection: Ref) -> Iterator[Primitive]:
        """Suggest it for a selected block that copies."""
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
    """A kernel cut into the hoisted block and the rest."""

    def __init__(self, func: PrimFunc, nest: Stmt) -> None:
        self._func = func
        self._nest = nest
        self.call = Kernel(func, ())
        self.mint = UidSource()
        self._target = next(s.buffer for s in stores(nest))
        self._read = [b for b in func.buffer_params if b in {x.buffer for x in loads(nest)}]
        remaining = seq(*(p for p in _parts(func) if p is not nest))
        self._remaining = remaining
        used = {x.buffer for x in loads(remaining)} | {s.buffer for s in stores(remaining)}
        self._kept = [b in used for b in func.buffer_params]

    def hoisted(self) -> PrimFunc:
        """The new kernel: reads inputs, writes what was the temporary."""
        scalars = [p for p in self._func.params if isinstance(p, ScalarParam)]
        params: list[Param] = [BufferParam(b, "in") for b in self._read]
        params += [BufferParam(self._target, "out"), *scalars]
        name = f"{self._func.name}_{self._target.name}"
        return replace(self._func, name=name, params=tuple(params), body=self._nest, buffers=())

    def rest(self) -> PrimFunc:
        """The old kernel: takes the temporary as an input, after those it still reads."""
        buffers = [p for p in self._func.params if isinstance(p, BufferParam)]
        kept = [p for p, keep in zip(buffers, self._kept, strict=True) if keep]
        inputs = [p for p in kept if p.access != "out"]
        outputs = [p for p in kept if p.access == "out"]
        scalars = [p for p in self._func.params if isinstance(p, ScalarParam)]
        params = (*inputs, BufferParam(self._target, "in"), *outputs, *scalars)
        temporaries = tuple(b for b in self._func.buffers if b is not self._target)
        return replace(self._func, params=params, body=self._remaining, buffers=temporaries)

    def adapt(self, module: Module, graph: GraphFunc) -> Module:
        """Call the new kernel before every call of the old one in a graph."""
        taken = {b.value.name for b in graph.bindings} | {p.value.name for p in graph.params}
        bindings: list[Binding] = []
        for binding in graph.bindings:
            right = binding.right
            if isinstance(right, CallTIR) and right.function == self._func.name:
                made = self._calls(binding, right, taken)
                bindings.extend(made)
            else:
                bindings.append(binding)
        if len(bindings) == len(graph.bindings):
            return module
        return module.with_functions(replace(graph, bindings=tuple(bindings)))

    def _calls(self, binding: Binding, call: CallTIR, taken: set[str]) -> tuple[Binding, Binding]:
        terms = call_symbols(self._func, call)
        shape = tuple(substitute(d, terms) for d in self._target.shape)
        info = TensorInfo(shape, self._target.dtype, rank=len(shape))
        given = dict(zip(self._func.buffer_params, call.args, strict=False))
        args: tuple[Operand, ...] = tuple(given[b] for b in self._read)
        scalars = tuple(substitute(s, terms) for s in self.call.scalars)
        name = fresh_name(f"{binding.value.name}_{self._target.name}", taken)
        taken.add(name)
        value = Value(self.mint(), name, info)
        first = Binding(
            value, CallTIR(self.call.function.name, args, (info,), scalars), binding.origins
        )
        inputs = [b for b in self._func.buffer_params if b in given]
        kept_args = tuple(given[b] for b, keep in zip(inputs, self._kept, strict=False) if keep)
        second = replace(binding, right=replace(call, args=(*kept_args, value)))
        return first, second
