"""The ``collapse_dims`` primitive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ....ir.graph.nodes import (
    Binding,
    Call,
    CallTIR,
    ConstantRef,
    Dims,
    GraphFunc,
    MakeTuple,
    Operand,
    TensorInfo,
    TupleInfo,
    TupleItem,
    Value,
    result_info,
)
from ....ir.graph.regions import replace_bindings
from ....ir.graph.visit import all_values
from ....ir.identity import UidSource, fresh_name
from ....ir.loop.nodes import (
    Alloc,
    Block,
    Buffer,
    BufferParam,
    For,
    IterVar,
    Load,
    PrimFunc,
    ScalarParam,
    Seq,
    Stmt,
    Store,
)
from ....ir.loop.regions import access_regions
from ....ir.loop.visit import Rebuilder, loads, seq, stores, walk
from ....ir.module import Constant, Module
from ....ir.symbolic import TRUE, Bool, Expr, Var, const_value, free_vars, product, var
from ...apply import Primitive, Rewrite
from ...handles import FunctionRef, Handle, refs_of
from ...kernels import KernelCall, call_symbols, generalize, symbols_of
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State
from ._functions import plain_calls_problem, prim_problem


@primitive(family="graph", returns=FunctionRef)
@dataclass(frozen=True, slots=True)
class CollapseDims(Primitive):
    """Collapse adjacent dimensions of a kernel that all accesses iterate jointly.

    Before::

        for b, s, n, k: C[b, s, n] += A[b, s, k] * W[k, n]        # A: (b, s, 64)

    After::

        for m, n, k: C[m, n] += A[m, k] * W[k, n]                 # A: (m, 64), m = b*s

    Parameters
    ----------
    function : FunctionRef
        The loop-level function.

    Notes
    -----
    Callers pass views of the arguments with the collapsed shapes. One kernel then serves every
    factorization of the collapsed dimension, and its loops are longer. The result is the handle of
    the function. Cost: none at run time.

    Names elsewhere: TVM: none (``fuse`` collapses loops, not buffer dimensions); Halide: none.

    References
    ----------
    DISC (EuroMLSys '21), §4 (shape constraints).

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... n = symbols("n", lower=1)
    ... @graph_func
    ... def main(x: Tensor[(n, 8), f32]):
    ...     y = relu(x)
    ...     return y
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> (relu,) = sch.legalize()
    >>> kernel = sch.collapse_dims(relu)
    >>> [str(b.shape) for b in sch.module.prim("relu").buffer_params]
    ['(n_1,)', '(n_1,)']
    """

    class Requires(Requirement):
        """The requirements of ``collapse_dims``."""

        LOOP_LEVEL = "the function is loop-level"
        UNSCHEDULED = (
            "the function is unscheduled: every block is in a perfect nest with one loop per "
            "iteration variable"
        )
        PLAIN_CALLS = (
            "all calls of the function are plain: in the dataflow stage, outside of groups, and "
            "without versions"
        )

    function: FunctionRef

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the level of the function, its loops and its calls."""
        wrong = list(prim_problem(state, self.function, self.Requires.LOOP_LEVEL))
        yield from wrong
        if wrong:
            return
        name = self.function.function
        for part in _parts(state.module.prim(name)):
            if _plain_block(part) is None:
                message = (
                    f"{name!r} is already scheduled: a block is not in a perfect nest with one "
                    "serial loop per iteration variable"
                )
                where = refs_of(name, part) if isinstance(part, For | Block) else ()
                yield Problem(self.Requires.UNSCHEDULED, message, where or (self.function,))
                break
        yield from plain_calls_problem(state, self.function, self.Requires.PLAIN_CALLS)

    def rewrite(self, state: State) -> Rewrite:
        """Collapse pairs of dimensions to a fixed point, then adapt the callers."""
        old = state.module.prim(self.function.function)
        new, groups = collapse(old, UidSource(state.ordinal))
        if new is old:
            return Rewrite(state.module, (self.function,))
        new = _with_loose_symbols(new)
        kernel = generalize(KernelCall(new, new.scalar_params))
        module = state.module.with_functions(kernel.function)
        for graph in state.module.graphs:
            callers = _Callers(module, graph, old, kernel, UidSource(state.ordinal))
            module = callers.adapted(groups)
        return Rewrite(module, (self.function,))

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the step for a selected function with dimensions to collapse."""
        found = state.module.functions.get(selection.function)
        if (
            isinstance(found, PrimFunc)
            and nests(found) is not None
            and collapse(found, UidSource(state.ordinal))[0] is not found
        ):
            yield cls(FunctionRef(selection.function))


def nests(func: PrimFunc, *, units: bool = False) -> list[Block] | None:
    """Return the blocks of a function if all its nests are plain, else None.

    A plain nest has one loop per iteration variable, in order; each binding is the loop variable
    itself, and there is no predicate. With ``units``, an iteration variable of one iteration may
    have no loop, as in copies.
    """
    blocks: list[Block] = []
    for part in _parts(func):
        block = _plain_block(part, units=units)
        if block is None:
            return None
        blocks.append(block)
    return blocks


def _parts(func: PrimFunc) -> tuple[Stmt, ...]:
    return func.body.body if isinstance(func.body, Seq) else (func.body,)


def _plain_block(part: Stmt, *, units: bool = False) -> Block | None:
    """Return the block of a plain nest, or None if the nest is not plain."""
    loops: list[For] = []
    inner = part
    while isinstance(inner, For) and inner.kind == "serial":
        loops.append(inner)
        inner = inner.body
    if not isinstance(inner, Block) or inner.predicate is not TRUE:
        return None
    if any(isinstance(s, Alloc) for s in walk(inner)):
        return None
    bindings = [v.binding for v in inner.iters if not (units and has_no_loop(v))]
    return inner if bindings == [f.var for f in loops] else None


def _runs_whole_domain(part: Stmt) -> bool:
    """Return whether the loops of a plain nest run the extents of the iteration variables."""
    loops: list[For] = []
    while isinstance(part, For):
        loops.append(part)
        part = part.body
    variables = {loop.var for loop in loops}
    return isinstance(part, Block) and all(
        loop.extent == item.extent and variables.isdisjoint(free_vars(item.extent))
        for loop, item in zip(loops, part.iters, strict=True)
    )


def has_no_loop(item: IterVar) -> bool:
    """Return whether an iteration variable of one iteration is bound to its only value."""
    return const_value(item.extent) == 1 and const_value(item.binding) == 0


@dataclass(frozen=True, slots=True)
class _Access:
    block: Block
    buffer: Buffer
    indices: tuple[Expr, ...]


def _accesses(block: Block) -> Iterator[_Access]:
    for body in (block.body, block.init):
        if body is not None:
            for store in stores(body):
                yield _Access(block, store.buffer, store.indices)
            for load in loads(body):
                yield _Access(block, load.buffer, load.indices)


class _Mentions(Rebuilder):
    """Rebuilder that collects variables used other than as a plain index of an access."""

    def __init__(self) -> None:
        self.found: set[Var] = set()

    def expr(self, term: Expr) -> Expr:
        self.found |= free_vars(term)
        return term

    def predicate(self, claim: Bool) -> Bool:
        self.found |= free_vars(claim)
        return claim

    def exprs(self, terms: tuple[Expr, ...]) -> tuple[Expr, ...]:
        for term in terms:
            if not isinstance(term, Var):
                self.found |= free_vars(term)
        return terms


def _pairs(block: Block) -> Iterator[tuple[IterVar, IterVar]]:
    mentions = _Mentions()
    mentions.statement(block.body)
    if block.init is not None:
        mentions.statement(block.init)
    for left, right in zip(block.iters, block.iters[1:], strict=False):
        free = left.var not in mentions.found and right.var not in mentions.found
        if free and left.kind == right.kind:
            yield left, right


def _together(access: _Access, left: IterVar, right: IterVar) -> list[int] | None:
    """Return the dimensions that an access indexes by the pair; None if it uses it otherwise."""
    dims: list[int] = []
    indices, shape = access.indices, access.buffer.shape
    for axis, index in enumerate(indices):
        if index == left.var:
            follows = axis + 1 < len(indices) and indices[axis + 1] == right.var
            sized = follows and shape[axis] == left.extent and shape[axis + 1] == right.extent
            if not sized:
                return None
            dims.append(axis)
        elif index == right.var and (axis == 0 or indices[axis - 1] != left.var):
            return None
    return dims


def _find(blocks: list[Block]) -> tuple[dict[Block, IterVar], set[tuple[Buffer, int]]] | None:
    """Return a consistent set of pairs of iteration variables and of dimensions to collapse."""
    candidates: list[tuple[Block, IterVar, IterVar, set[tuple[Buffer, int]]]] = []
    for block in blocks:
        for left, right in _pairs(block):
            dims: set[tuple[Buffer, int]] = set()
            found = [(a, _together(a, left, right)) for a in _accesses(block)]
            if all(p is not None for _, p in found):
                dims.update((a.buffer, axis) for a, p in found for axis in p or ())
                candidates.append((block, left, right, dims))
    accesses = [a for block in blocks for a in _accesses(block)]
    for _, _, _, seed in candidates:
        closed = _close(seed, candidates, accesses)
        if closed is not None:
            return closed
    return None


def _close(
    seed: set[tuple[Buffer, int]],
    candidates: list[tuple[Block, IterVar, IterVar, set[tuple[Buffer, int]]]],
    accesses: list[_Access],
) -> tuple[dict[Block, IterVar], set[tuple[Buffer, int]]] | None:
    """Extend a set of dimension pairs until every access to them is a pair; None on failure."""
    wanted, chosen = set(seed), dict[Block, IterVar]()
    work = list(seed)
    while work:
        buffer, axis = work.pop()
        for access in (a for a in accesses if a.buffer is buffer):
            pair = (access.indices[axis], access.indices[axis + 1])
            match = next(
                (
                    (left, dims)
                    for block, left, right, dims in candidates
                    if block is access.block and (left.var, right.var) == pair
                ),
                None,
            )
            if match is None or chosen.setdefault(access.block, match[0]) is not match[0]:
                return None
            new = match[1] - wanted
            wanted |= new
            work.extend(new)
    return (chosen, wanted) if chosen else None


class _Joiner(Rebuilder):
    """Rebuilder that replaces each pair of indices by the collapsed variable."""

    def __init__(
        self,
        dims: set[tuple[Buffer, int]],
        new: Mapping[Buffer, Buffer],
        joined: Mapping[Var, Var],
    ) -> None:
        self._dims = dims
        self._new = new
        self._joined = joined

    def buffer(self, buffer: Buffer) -> Buffer:
        return self._new.get(buffer, buffer)

    def _indices(self, buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        out: list[Expr] = []
        for axis, index in enumerate(indices):
            if (buffer, axis) in self._dims:
                out.append(self._joined[index] if isinstance(index, Var) else index)
            elif (buffer, axis - 1) not in self._dims:
                out.append(index)
        return tuple(out)

    def _load(self, load: Load) -> Load:
        return Load(self.buffer(load.buffer), self._indices(load.buffer, load.indices))

    def statement(self, statement: Stmt) -> Stmt:
        if isinstance(statement, Store):
            indices = self._indices(statement.buffer, statement.indices)
            buffer = self.buffer(statement.buffer)
            value = self.element(statement.value)
            return replace(statement, buffer=buffer, indices=indices, value=value)
        return super().statement(statement)


def _join_shape(buffer: Buffer, dims: set[tuple[Buffer, int]]) -> Buffer:
    shape: list[Expr] = []
    for axis, dim in enumerate(buffer.shape):
        if (buffer, axis - 1) in dims:
            shape[-1] = product((shape[-1], dim))
        else:
            shape.append(dim)
    return replace(buffer, shape=tuple(shape))


@dataclass(frozen=True, slots=True)
class _Round:
    """One round of collapsing: the dimensions and the new buffers."""

    dims: set[tuple[Buffer, int]]
    new: Mapping[Buffer, Buffer]
    mint: UidSource


def _join_block(block: Block, left: IterVar | None, round_: _Round) -> Stmt:
    iters = list(block.iters)
    joined: dict[Var, Var] = {}
    if left is not None:
        at = iters.index(left)
        both = _joined_iter(left, iters[at + 1])
        joined[left.var] = both.var
        iters[at : at + 2] = [both]
    joiner = _Joiner(round_.dims, round_.new, joined)
    body = joiner.statement(block.body)
    init = None if block.init is None else joiner.statement(block.init)
    reads, writes = access_regions(body, init)
    result: Stmt = replace(
        block, iters=tuple(iters), body=body, init=init, reads=reads, writes=writes
    )
    for iter_var in reversed(iters):
        loop = iter_var.binding
        if not isinstance(loop, Var):
            raise TypeError("the binding in a plain nest must be a loop variable")
        result = For(round_.mint(), loop, iter_var.extent, result, origins=block.origins)
    return result


def _joined_iter(left: IterVar, right: IterVar) -> IterVar:
    extent = product((left.extent, right.extent))
    size = const_value(extent)
    upper = None if size is None else max(size - 1, 0)
    if not isinstance(left.binding, Var):
        raise TypeError("the binding in a plain nest must be a loop variable")
    names = (left.binding.name, left.var.name)
    loop, inner = (var(n, lower=0, upper=upper) for n in names)
    return IterVar(inner, extent, left.kind, loop)


def collapse(func: PrimFunc, mint: UidSource) -> tuple[PrimFunc, dict[int, list[int]]]:
    """Collapse pairs of dimensions to a fixed point, if every block runs its whole domain.

    Returns
    -------
    tuple of PrimFunc and dict
        The function, unchanged if there is no pair to collapse; and for each buffer parameter, by
        position, the number of old dimensions in each new one.
    """
    groups = {k: [1] * b.rank for k, b in enumerate(func.buffer_params)}
    blocks = nests(func)
    if blocks is None or not all(map(_runs_whole_domain, _parts(func))):
        return func, groups
    while blocks and (found := _find(blocks)) is not None:
        chosen, dims = found
        new = {
            b: _join_shape(b, dims)
            for b in (*func.buffer_params, *func.buffers)
            if any(p[0] is b for p in dims)
        }
        for position, buffer in enumerate(func.buffer_params):
            axes = sorted((a for b, a in dims if b is buffer), reverse=True)
            for axis in axes:
                groups[position][axis : axis + 2] = [sum(groups[position][axis : axis + 2])]
        round_ = _Round(dims, new, mint)
        body = seq(*(_join_block(b, chosen.get(b), round_) for b in blocks))
        params = tuple(
            BufferParam(new.get(p.buffer, p.buffer), p.access) if isinstance(p, BufferParam) else p
            for p in func.params
        )
        temporaries = tuple(new.get(b, b) for b in func.buffers)
        func = replace(func, params=params, body=body, buffers=temporaries)
        blocks = nests(func)
    return func, groups


def _with_loose_symbols(func: PrimFunc) -> PrimFunc:
    """Add integer parameters for the symbols that no dimension determines."""
    whole = {d for b in func.buffer_params for d in b.shape}
    loose = symbols_of(func) - whole - set(func.scalar_params)
    new = tuple(ScalarParam(v) for v in sorted(loose, key=lambda v: v.serial))
    return replace(func, params=(*func.params, *new)) if new else func


def _grouped(shape: tuple[Expr, ...], sizes: list[int]) -> tuple[Expr, ...]:
    out: list[Expr] = []
    at = 0
    for size in sizes:
        out.append(product(shape[at : at + size]))
        at += size
    return tuple(out)


def _joined_info(info: TensorInfo, sizes: list[int]) -> TensorInfo:
    shape = _grouped(info.shape or (), sizes)
    return info if shape == info.shape else replace(info, shape=shape, rank=len(shape))


def _fields(call: CallTIR) -> tuple[TensorInfo, ...]:
    """Return the annotations of the tensors in the value of a call."""
    info = result_info(call)
    fields = info.fields if isinstance(info, TupleInfo) else (info,)
    return tuple(f for f in fields if isinstance(f, TensorInfo))


class _Callers:
    """Rewrite of the calls of one kernel in one graph."""

    def __init__(
        self, module: Module, graph: GraphFunc, old: PrimFunc, kernel: KernelCall, mint: UidSource
    ) -> None:
        self.module = module
        self._graph = graph
        self._old = old
        self._kernel = kernel
        self._mint = mint
        self._taken = {v.name for v in all_values(graph)}
        self.bindings: list[Binding] = []

    def _view(self, source: Operand, info: TensorInfo, sizes: list[int]) -> Operand:
        """Return a view of an operand with the collapsed shape."""
        joined = _joined_info(info, sizes)
        if joined is info:
            return source
        if isinstance(source, ConstantRef):
            return self._constant_view(source, joined)
        value = self._value(f"{source.name if isinstance(source, Value) else 'x'}_view", joined)
        self.bindings.append(Binding(value, Call("reshape", (source, Dims(joined.shape or ())))))
        return value

    def _constant_view(self, source: ConstantRef, info: TensorInfo) -> ConstantRef:
        sizes = tuple(const_value(d) or 0 for d in info.shape or ())
        key = f"{source.key}@{'x'.join(map(str, sizes))}"
        old = self.module.constants[source.key]
        viewed = Constant(
            sizes, old.dtype, lambda: old.load().reshape(sizes), source=f"view of {source.key}"
        )
        self.module = self.module.with_constants({key: viewed})
        return ConstantRef(key, info)

    def adapt(self, binding: Binding, call: CallTIR, groups: Mapping[int, list[int]]) -> None:
        """Rewrite one call: views of the arguments, the call, views of its results."""
        reads, writes = self._positions()
        args = tuple(
            self._view(a, a.info, groups[k])
            if isinstance(a, Value | ConstantRef) and isinstance(a.info, TensorInfo)
            else a
            for k, a in zip(reads, call.args, strict=True)
        )
        outputs = tuple(
            _joined_info(info, groups[k]) for k, info in zip(writes, call.outputs, strict=True)
        )
        given: dict[Expr, Expr] = {**call_symbols(self._old, call)}
        scalars = tuple(given[v] for v in self._kernel.scalars)
        right = replace(call, args=args, outputs=outputs, scalars=scalars)
        old, new = _fields(call), _fields(right)
        if old == new:
            self.bindings.append(replace(binding, right=right))
            return
        whole = new[0] if len(new) == 1 else TupleInfo(new)
        flat = self._value(f"{binding.value.name}_flat", whole)
        self.bindings.append(replace(binding, value=flat, right=right))
        self._unfold(binding, flat, old, new)

    def _positions(self) -> tuple[list[int], list[int]]:
        """Return the positions of inputs and of outputs among the buffer parameters."""
        access = [p.access for p in self._old.params if isinstance(p, BufferParam)]
        reads = [k for k, how in enumerate(access) if how != "out"]
        return reads, [k for k, how in enumerate(access) if how == "out"]

    def _value(self, name: str, info: TensorInfo | TupleInfo) -> Value:
        fresh = fresh_name(name, self._taken)
        self._taken.add(fresh)
        return Value(self._mint(), fresh, info)

    def _unfold(
        self,
        binding: Binding,
        flat: Value,
        fields: tuple[TensorInfo, ...],
        joined: tuple[TensorInfo, ...],
    ) -> None:
        """Restore the shapes of the results by views."""
        if len(joined) == 1:
            back = Call("reshape", (flat, Dims(fields[0].shape or ())))
            self.bindings.append(Binding(binding.value, back, binding.origins))
            return
        parts: list[Operand] = []
        for k, (info, new) in enumerate(zip(fields, joined, strict=True)):
            part = self._value(f"{binding.value.name}_{k}_flat", new)
            self.bindings.append(Binding(part, TupleItem(flat, k), binding.origins))
            if new != info:
                view = Call("reshape", (part, Dims(info.shape or ())))
                part = self._value(f"{binding.value.name}_{k}", info)
                self.bindings.append(Binding(part, view, binding.origins))
            parts.append(part)
        self.bindings.append(Binding(binding.value, MakeTuple(tuple(parts)), binding.origins))

    def adapted(self, groups: Mapping[int, list[int]]) -> Module:
        """Rewrite all calls, and return the module."""
        changed: list[Value] = []

        def adapted(binding: Binding) -> Sequence[Binding]:
            right = binding.right
            if not isinstance(right, CallTIR) or right.function != self._old.name:
                return (binding,)
            changed.append(binding.value)
            self.bindings = []
            self.adapt(binding, right, groups)
            return self.bindings

        bindings = replace_bindings(self._graph.bindings, adapted)
        if not changed:
            return self.module
        return self.module.with_functions(replace(self._graph, bindings=bindings))
