"""The ``compute_inline`` primitive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ....ir.analysis import (
    Access,
    Tree,
    assuming,
    executed_domain,
    loop_values,
    read_buffers,
    reads,
    results_domain,
    with_regions,
    writes,
    written_buffers,
)
from ....ir.dtype import DType
from ....ir.identity import Origins
from ....ir.loop.nodes import Block, Cast, Element, Let, Load, Stmt, Store
from ....ir.loop.visit import (
    children,
    loads,
    stores,
    transform,
    walk,
    with_children,
)
from ....ir.symbolic import Bool, Expr, Var, eq, free_vars, is_proved, substitute, to_text
from ...allocations import without_allocation
from ...apply import Primitive, Rewrite
from ...checks import tensorized_problems
from ...domain_checks import branch_around
from ...edit import Edit
from ...handles import BlockRef, BufferRef, Handle, Removed, block_ref, refs_of
from ...inline_checks import size_problems
from ...inline_values import ValueInliner, producer_of
from ...loop_nests import loops_removed, without
from ...motion_checks import (
    Movable,
    blocks_between,
    index_problems,
    left_out,
    movable_problems,
    plain_store_problems,
)
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State


@primitive(family="placement", returns=None, isolated=True)
@dataclass(frozen=True, slots=True)
class ComputeInline(Primitive):
    """Inline a producer into its consumers, and remove its block and buffer.

    Before::

        for i in range(n):
            T[i] = A[i] * 2
        for i in range(n):
            C[i] = T[i] + 1

    After::

        for i in range(n):
            C[i] = A[i] * 2 + 1

    Parameters
    ----------
    block : BlockRef
        The producer.

    Notes
    -----
    A value that a consumer uses several times is bound, ``t_value = A[i] * 2``, unless it is small;
    otherwise the value is computed once per read. A block with several stores is inlined as a
    whole. Cost: linear in the size of the consumers.

    Names elsewhere: TVM ``compute_inline``; Halide ``compute_inline``.

    References
    ----------
    TensorIR (ASPLOS '23), §3.2.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(x: Buffer[(32,), f32], y: Out[(32,), f32]):
    ...     t = alloc((32,), f32)
    ...     for i in range(32):
    ...         with block("t"):
    ...             vi = spatial(i)
    ...             t[vi] = x[vi] * 2.0
    ...     for j in range(32):
    ...         with block("y"):
    ...             vj = spatial(j)
    ...             y[vj] = t[vj] + 1.0
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> sch.compute_inline("t")
    >>> print(sch)
    @prim_func(scheduled=True)
    def f(x: Buffer[(32,), f32], y: Out[(32,), f32]):
        for j in range(32):
            with block("y"):
                vj = spatial(j)
                y[vj] = x[vj] * 2.0 + 1.0
    """

    class Requires(Requirement):
        """The requirements of ``compute_inline``."""

        SPATIAL = "the block has spatial iteration variables only, and no init"
        ONE_STORE = (
            "the block has no loops and branches, and stores one element of each of its buffers "
            "per iteration"
        )
        WRITES_TEMPORARY = "the block writes a temporary"
        ONLY_WRITER = "no other block writes the buffer that the block writes"
        IGNORES_OLD_CONTENTS = "the block does not read the buffer that it writes"
        WRITES_ALL_READ = (
            "the block runs its whole domain, or its consumers provably read only elements that it "
            "writes"
        )
        COVERS_BUFFER = (
            "the write indices are distinct iteration variables, include all of them that vary "
            "while the buffer is allocated, and cover the whole buffer"
        )
        DETERMINED_ITERATIONS = (
            "the iteration variables of each consumer determine those of the block that are not "
            "write indices"
        )
        CONSUMERS_FOLLOW = (
            "at least one block reads the temporary, and every such block follows the producer"
        )
        KEEPS_DEPENDENCES = (
            "no block writes the inputs of the producer between the producer and its last consumer"
        )
        NOT_TENSORIZED = (
            "no consumer, and no block inside of one that reads the temporary, is tensorized"
        )
        INDEX_IS_LOAD = (
            "if a consumer loads an index from the temporary, it does so in a block, and the "
            "producer stores an integer that it loads, unchanged or converted to a wider dtype"
        )
        VALUE_SIZE = (
            "afterwards, no value has more than 100,000 nodes or is nested deeper than 150, and no "
            "block binds more than 256 values"
        )

    block: BlockRef

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the block, its consumers and the blocks between them."""
        block = state.block(self.block)
        if block.init is not None or any(v.kind != "spatial" for v in block.iters):
            kinds = ", ".join(dict.fromkeys(v.kind for v in block.iters))
            yield Problem(
                self.Requires.SPATIAL,
                f"block {block.name!r} has an init or an iteration variable that is not spatial "
                f"(kinds: {kinds})",
                (self.block,),
                {"kinds": kinds},
            )
            return
        found = [
            *self._movable(state),
            *plain_store_problems(state, self.block, self.Requires.COVERS_BUFFER),
        ]
        if found:
            yield from found
            return
        yield from self._consumers(state, block)

    def _movable(self, state: State) -> Iterator[Problem]:
        requires = self.Requires
        found = Movable(
            requires.SPATIAL,
            requires.ONE_STORE,
            requires.ONLY_WRITER,
            requires.IGNORES_OLD_CONTENTS,
            requires.WRITES_TEMPORARY,
        )
        return movable_problems(state, self.block, found, several=True)

    def _consumers(self, state: State, block: Block) -> Iterator[Problem]:
        tree = state.tree(self.block.function)
        buffers = {access.buffer for access in writes(block)}
        shown = ", ".join(repr(name) for name in sorted(b.name for b in buffers))
        readers = _readers(tree, block)
        early = [b for b in readers if tree.order[b] < tree.order[block]]
        if not readers or early:
            names = ", ".join(repr(b.name) for b in early)
            message = f"{shown} is read by {names} before it is written"
            if not readers:
                message = f"no block reads {shown}"
            where = (self.block, *refs_of(self.block.function, *early, *buffers))
            yield Problem(self.Requires.CONSUMERS_FOLLOW, message, where)
            return
        for reader in readers:
            yield from tensorized_problems(
                state, block_ref(self.block.function, reader), buffers, self.Requires.NOT_TENSORIZED
            )
        yield from size_problems(tree, block, self.block, self.Requires.VALUE_SIZE)
        yield from index_problems(state, self.block, self.Requires.INDEX_IS_LOAD)
        yield from self._indices(block, readers)
        yield from self._determined(tree, block, readers)
        inputs = read_buffers(block)
        between = {*blocks_between(tree, block, tree.common(readers), later=True)}
        between |= _repeated(tree, block, readers) - {block}
        for other in sorted(between, key=lambda b: tree.order[b]):
            for changed in written_buffers(other) & inputs:
                yield Problem(
                    self.Requires.KEEPS_DEPENDENCES,
                    f"block {other.name!r} writes input {changed.name!r} of the producer before "
                    f"{shown} is read",
                    (self.block, *refs_of(self.block.function, other, changed)),
                    {"buffer": changed.name},
                )

    def _indices(self, block: Block, readers: list[Block]) -> Iterator[Problem]:
        """Check that an index that is loaded from a temporary can be loaded from its inputs."""
        computed = {s.buffer for s in stores(block.body) if _integer_load(s.value) is None}
        for reader in readers:
            found = (s for s in walk(reader) if isinstance(s, Let) and s.load.buffer in computed)
            for let in found:
                buffer = let.load.buffer
                yield Problem(
                    self.Requires.INDEX_IS_LOAD,
                    f"block {reader.name!r} loads the integer {let.var.name!r} from "
                    f"{buffer.name!r}, but block {block.name!r} computes its elements",
                    (self.block, *refs_of(self.block.function, reader, buffer)),
                )

    def _determined(self, tree: Tree, block: Block, readers: list[Block]) -> Iterator[Problem]:
        """Check that the values of the other iteration variables are known in each consumer."""
        lost = _left_out(tree, block)
        for reader in readers:
            missing = lost.keys() - _constants(tree, lost, reader).keys()
            for variable in sorted(missing, key=lambda v: v.name):
                yield Problem(
                    self.Requires.DETERMINED_ITERATIONS,
                    f"block {block.name!r} computes elements for {variable.name!r} = "
                    f"{to_text(lost[variable])}, which the iteration variables of block "
                    f"{reader.name!r} do not determine",
                    (self.block, *refs_of(self.block.function, reader)),
                )

    def proofs(self, state: State) -> Iterator[Problem]:
        """Check that the block writes the whole buffers."""
        for store in writes(state.block(self.block)):
            yield from self._covered(state, store)

    def _covered(self, state: State, store: Access) -> Iterator[Problem]:
        tree, block = state.tree(self.block.function), state.block(self.block)
        extents = {v.var: v.extent for v in block.iters}
        for index, size in zip(store.indices, store.buffer.shape, strict=True):
            extent = extents.get(index, size) if isinstance(index, Var) else size
            if not is_proved(eq(extent, size), tree.function.facts):
                yield Problem(
                    self.Requires.COVERS_BUFFER,
                    f"iteration variable {to_text(index)} has extent {to_text(extent)}, but it "
                    f"indexes a dimension of {store.buffer.name!r} of size {to_text(size)}",
                    (self.block, *refs_of(self.block.function, store.buffer)),
                    {"extent": to_text(extent), "size": to_text(size)},
                )
                return
        yield from self._unwritten(state, store)

    def _unwritten(self, state: State, store: Access) -> Iterator[Problem]:
        """Yield a problem if a consumer may read an element that the block does not write."""
        tree, block = state.tree(self.block.function), state.block(self.block)
        readers = [b for b in tree.outermost_blocks() if reads(b, store.buffer)]
        old = branch_around(tree, block, tree.common(readers))
        found = executed_domain(tree, block, old)
        if found.exact:
            return
        condition, lost = found.condition, left_out(tree, block, store)
        if condition is not None:
            condition = substitute(condition, lost)
        for reader in readers:
            known = (reader.predicate, *(eq(v.var, v.binding) for v in reader.iters))
            known = known if lost else ()
            if condition is None or not _reads_written(tree, reader, store, condition, known):
                yield Problem(
                    self.Requires.WRITES_ALL_READ,
                    f"{found.reason}, and block {reader.name!r} may read other elements of "
                    f"{store.buffer.name!r}",
                    (self.block, *refs_of(self.block.function, reader, store.buffer)),
                )
                return

    def rewrite(self, state: State) -> Rewrite:
        """Replace every load by the value, then remove the block and its buffers."""
        edit = Edit(state, self.block.function)
        tree, block = edit.tree, state.block(self.block)
        producer = producer_of(block)
        if producer is None:
            raise TypeError(f"the body of block {block.name!r} does not consist of stores")
        lost, readers = _left_out(tree, block), set(_readers(tree, block))

        def change(statement: Stmt) -> Stmt:
            if isinstance(statement, Block):
                if statement not in readers:
                    return statement
                own = replace(producer, constants=_constants(tree, lost, statement))
                return _inlined(statement, _Inliner(own, edit.fresh), block.origins)
            return with_children(statement, tuple(change(c) for c in children(statement)))

        kept = without(tree.function.body, block)
        if kept is None:
            raise TypeError(f"the body of {edit.name!r} is empty")
        body = change(kept)
        reason = f"inlined block {block.name!r}"
        moved = edit.removed(loops_removed(tree, body), reason)
        moved |= {
            self.block: Removed("inlined it into its consumers"),
            **{edit.buffer_ref(buffer): Removed(reason) for buffer in producer.stores},
        }
        buffers = tuple(b for b in tree.function.buffers if b not in producer.stores)
        for buffer in producer.stores:
            body = without_allocation(body, buffer)
        return edit.finish(body, moved=moved, buffers=buffers)

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the step for the selected block, or the writer of the selected temporary."""
        if isinstance(selection, BlockRef):
            yield cls(selection)
        elif isinstance(selection, BufferRef):
            tree = state.tree(selection.function)
            for block in tree.writers(state.buffer(selection))[:1]:
                yield cls(block_ref(selection.function, block))


def _reads_written(
    tree: Tree, reader: Block, store: Access, condition: Bool, known: tuple[Bool, ...]
) -> bool:
    """Return whether a block reads only elements whose indices fulfill a condition.

    The claims in ``known`` hold in its body, but not in its init.
    """
    starts = reader.init is not None and any(x.buffer is store.buffer for x in loads(reader.init))
    own = results_domain(tree, reader) if starts else executed_domain(tree, reader)
    facts = tree.facts(reader.body) if starts else assuming(tree.facts(reader.body), *known)
    facts = facts if own.condition is None else assuming(facts, own.condition)
    own_vars = {v.var for v in store.block.iters}
    for access in reads(reader, store.buffer):
        pairs = zip(store.indices, access.indices, strict=True)
        at = {i: new for i, new in pairs if isinstance(i, Var) and i in own_vars}
        inner = assuming(facts, *(values.contains(v) for v, values in access.inner.items()))
        if not is_proved(substitute(condition, at), inner):
            return False
    return True


def _repeated(tree: Tree, block: Block, readers: list[Block]) -> set[Block]:
    """Return the blocks in the loops around a producer and all its readers: they run again."""
    shared = tree.common((block, *readers))
    return set(tree.blocks_in(shared)) if tree.loops_above(shared) else set()


def _left_out(tree: Tree, block: Block) -> dict[Var, Expr]:
    """Return the iteration variables that are not indices of all stores, with their bindings."""
    found: dict[Var, Expr] = {}
    for store in writes(block):
        found |= left_out(tree, block, store)
    return found


def _constants(tree: Tree, lost: Mapping[Var, Expr], reader: Block) -> dict[Var, Expr]:
    """Return iteration variables of a producer in terms of those of a consumer, where known.

    The loops that they are bound to are around both blocks.
    """
    if not lost or any(isinstance(s, Block) and s is not reader for s in walk(reader)):
        return {}
    same: dict[Expr, Expr] = {v.binding: v.var for v in reader.iters if v.kind == "spatial"}
    values, known = loop_values(tree, reader), {v.var for v in reader.iters if v.kind == "spatial"}
    known |= tree.symbols()
    terms = {v: same.get(e, substitute(e, values)) for v, e in lost.items()}
    return {v: term for v, term in terms.items() if free_vars(term) <= known}


def _readers(tree: Tree, block: Block) -> list[Block]:
    """Return the blocks that read a buffer that a block writes."""
    buffers = {access.buffer for access in writes(block)}
    return [
        b
        for b in tree.outermost_blocks()
        if b is not block and any(a.buffer in buffers for a in reads(b))
    ]


class _Inliner(ValueInliner):
    """An inliner that also replaces loads of indices, by loads of integers."""

    def index_load(self, load: Load) -> Load:
        new = _integer_load(self.element(load))
        if new is None:
            raise TypeError(f"the elements of {load.buffer.name!r} are not loaded integers")
        return new


def _integer_load(value: Element) -> Load | None:
    """Return the load of an integer that a value equals, without conversions to wider dtypes."""
    while isinstance(value, Cast) and _widens(value.operand.dtype, value.dtype):
        value = value.operand
    return value if isinstance(value, Load) else None


def _widens(source: DType, target: DType) -> bool:
    """Return whether a conversion between integer dtypes keeps every value."""
    if not source.is_integer or not target.is_integer:
        return False
    if source.kind == target.kind:
        return target.bits >= source.bits
    return source.kind == "uint" and target.bits > source.bits


def _inlined(block: Block, inliner: _Inliner, origins: Origins) -> Block:
    new = inliner.block(block)
    body = transform(new.body, lambda s: _with_origins(s, origins))
    return with_regions(replace(new, body=body, origins=block.origins | origins))


def _with_origins(statement: Stmt, origins: Origins) -> Stmt:
    if isinstance(statement, Store):
        return replace(statement, origins=statement.origins | origins)
    return statement
