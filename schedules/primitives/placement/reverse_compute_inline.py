"""The ``reverse_compute_inline`` primitive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.analysis import (
    Tree,
    accesses,
    assuming,
    bindings_of,
    executed_domain,
    reads,
    with_regions,
    within_loop,
    writes,
)
from ....ir.dtype import DType
from ....ir.identity import Origins
from ....ir.loop.nodes import Bind, Block, Buffer, Local, Stmt, Store
from ....ir.loop.straight_line import joined, statements_of
from ....ir.loop.visit import replace_statement, substitute_in, transform
from ....ir.symbolic import (
    TRUE,
    Bool,
    Expr,
    Var,
    all_of,
    conjuncts,
    eq,
    is_proved,
    substitute,
    to_text,
)
from ...allocations import without_allocation
from ...apply import Primitive, Rewrite
from ...domain_checks import branch_around, condition_of
from ...edit import Edit
from ...handles import BlockRef, Handle, Removed, refs_of
from ...inline_checks import size_problems
from ...inline_values import Producer, ValueInliner, producer_of
from ...loop_nests import ZERO, loops_removed, without
from ...motion_checks import (
    Movable,
    dependence_problems,
    injective_write_problems,
    movable_problems,
)
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State


@primitive(family="placement", returns=None, isolated=True)
@dataclass(frozen=True, slots=True)
class ReverseComputeInline(Primitive):
    """Inline a consumer into its producer, and remove the consumer and the temporary.

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
        The consumer.

    Notes
    -----
    Cost: linear in the size of the function.

    Names elsewhere: TVM ``reverse_compute_inline``; Halide: none.

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
    >>> sch.reverse_compute_inline("y")
    >>> print(sch)
    @prim_func(scheduled=True)
    def f(x: Buffer[(32,), f32], y: Out[(32,), f32]):
        for i in range(32):
            with block("t"):
                vi = spatial(i)
                y[vi] = x[vi] * 2.0 + 1.0
    """

    class Requires(Requirement):
        """The requirements of ``reverse_compute_inline``."""

        SPATIAL = "the block has spatial iteration variables only, and no init"
        ONE_STORE = (
            "the block has no loops and branches, and stores one element of each of its buffers "
            "per iteration"
        )
        ONLY_WRITER = "no other block writes the buffer that the block writes"
        IGNORES_OLD_CONTENTS = "the block does not read the buffer that it writes"
        SAME_ITERATIONS = (
            "conditions on their iteration variables describe which iterations of the block and of "
            "the producer run, and the producer runs at all iterations of the block; a producer "
            "that also stores to other buffers runs at no others"
        )
        ONE_PRODUCER = (
            "the block reads exactly one temporary that one other block writes and no other block "
            "reads"
        )
        PLAIN_PRODUCER = (
            "the producer has spatial iteration variables only, and no init, loops or branches; it "
            "stores one element of the temporary per iteration, at distinct iteration variables "
            "that cover it"
        )
        PLAIN_READ = (
            "the block reads the temporary at its iteration variables, each once, and they cover "
            "the whole temporary"
        )
        KEEPS_DEPENDENCES = (
            "between the producer and the block, no other block accesses the output of the block "
            "or writes its inputs, and the block reads of the other "
            "outputs of the producer only elements that it stored before in the same iteration"
        )
        INJECTIVE_WRITES = "the write indices of the block are injective in its iteration variables"
        VALUE_SIZE = (
            "afterwards, no value has more than 100,000 nodes or is nested deeper than 150, and no "
            "block binds more than 256 values"
        )

    block: BlockRef

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the block, its producer and the blocks between them."""
        tree, block = state.tree(self.block.function), state.block(self.block)
        if block.init is not None or any(v.kind != "spatial" for v in block.iters):
            message = (
                f"block {block.name!r} has an init or an iteration variable that is not spatial"
            )
            yield Problem(self.Requires.SPATIAL, message, (self.block,))
            return
        found = tuple(self._movable(state))
        if found:
            yield from found
            return
        pairs = _sources(tree, block)
        if len(pairs) != 1:
            names = ", ".join(buffer.name for buffer, _ in pairs) or "none"
            message = (
                f"block {block.name!r} is the only reader of several temporaries ({names}); "
                "expected exactly one"
            )
            if not pairs:
                message = (
                    f"block {block.name!r} does not read a temporary that one other block writes "
                    "and no other block reads"
                )
            yield Problem(
                self.Requires.ONE_PRODUCER,
                message,
                (self.block, *refs_of(self.block.function, *(b for b, _ in pairs))),
                {"temporaries": names},
            )
            return
        buffer, producer = pairs[0]
        yield from self._producer(producer, buffer)
        yield from self._indices(block, buffer)
        yield from size_problems(tree, producer, self.block, self.Requires.VALUE_SIZE, whole=True)
        yield from dependence_problems(
            state, self.block, self.Requires.KEEPS_DEPENDENCES, producer, later=False
        )

    def _shared_buffers(self, block: Block, producer: Block, buffer: Buffer) -> Iterator[Problem]:
        """Check the reads of other buffers that the producer stores to.

        The block may read the element that the producer stored before in the same iteration.
        """
        parts = statements_of(producer.body)
        at = next(
            (k for k, s in enumerate(parts) if isinstance(s, Store) and s.buffer is buffer), 0
        )
        positions = _positions(producer, block, buffer)
        stored = {(s.buffer, s.indices) for s in parts[:at] if isinstance(s, Store)}
        later = {s.buffer for s in parts[at + 1 :] if isinstance(s, Store)}
        others = {a.buffer for a in writes(producer)} - {buffer}
        for load in reads(block):
            indices = tuple(substitute(i, positions) for i in load.indices)
            before = (load.buffer, indices) in stored and load.buffer not in later
            if load.buffer in others and not before:
                yield Problem(
                    self.Requires.KEEPS_DEPENDENCES,
                    f"block {block.name!r} reads an element of {load.buffer.name!r} that producer "
                    f"{producer.name!r} does not store before {buffer.name!r} in the same "
                    "iteration",
                    (self.block, *refs_of(self.block.function, producer, load.buffer)),
                )
                return

    def _movable(self, state: State) -> Iterator[Problem]:
        requires = self.Requires
        found = Movable(
            requires.SPATIAL,
            requires.ONE_STORE,
            requires.ONLY_WRITER,
            requires.IGNORES_OLD_CONTENTS,
        )
        return movable_problems(state, self.block, found, several=True)

    def _producer(self, producer: Block, buffer: Buffer) -> Iterator[Problem]:
        found = writes(producer, buffer)
        spatial = producer.init is None and all(v.kind == "spatial" for v in producer.iters)
        used = any(a.buffer is buffer and not a.writes for a in accesses(producer))
        plain = producer_of(producer) is not None and not used
        own = {v.var for v in producer.iters}
        variables = [i for i in found[0].indices if i in own] if found else []
        every = len(variables) == len(set(variables)) == buffer.rank
        if not (spatial and plain and every):
            yield Problem(
                self.Requires.PLAIN_PRODUCER,
                f"producer {producer.name!r} does not store exactly one element of {buffer.name!r} "
                "per iteration, at distinct spatial iteration variables",
                refs_of(self.block.function, producer, buffer),
            )

    def _indices(self, block: Block, buffer: Buffer) -> Iterator[Problem]:
        found = {a.indices for a in reads(block, buffer)}
        indices = next(iter(found))
        own = {v.var for v in block.iters}
        variables = [i for i in indices if i in own]
        moving = {v.var for v in block.iters if v.extent != 1}
        if len(found) > 1 or len(set(variables)) < buffer.rank or not moving <= set(variables):
            shown = " and ".join(f"({', '.join(map(str, p))})" for p in found)
            yield Problem(
                self.Requires.PLAIN_READ,
                f"block {block.name!r} reads {buffer.name!r} at {shown}; expected its iteration "
                "variables, each once",
                (self.block, *refs_of(self.block.function, buffer)),
                {"indices": shown},
            )

    def proofs(self, state: State) -> Iterator[Problem]:
        """Check that the block reads the whole temporary, and writes each element once."""
        tree, block = state.tree(self.block.function), state.block(self.block)
        buffer, producer = _sources(tree, block)[0]
        scopes = [a for store in writes(block) if (a := tree.allocs.get(store.buffer))]
        leaves = not all(tree.contains(scope, producer) for scope in scopes)
        within = tree.function.body if leaves else None
        yield from injective_write_problems(
            state, self.block, self.Requires.INJECTIVE_WRITES, within
        )
        for requirement, user, indices in (
            (self.Requires.PLAIN_READ, block, reads(block, buffer)[0].indices),
            (self.Requires.PLAIN_PRODUCER, producer, writes(producer, buffer)[0].indices),
        ):
            extents = {v.var: v.extent for v in user.iters}
            for index, size in zip(indices, buffer.shape, strict=True):
                extent = extents[index] if isinstance(index, Var) else size
                if not is_proved(eq(extent, size), tree.function.facts):
                    yield Problem(
                        requirement,
                        f"iteration variable {to_text(index)} of block {user.name!r} has extent "
                        f"{to_text(extent)}, but it indexes a dimension of {buffer.name!r} of size "
                        f"{to_text(size)}",
                        refs_of(self.block.function, user, buffer),
                        {"extent": to_text(extent), "size": to_text(size)},
                    )
                    return
        yield from self._iterations(state, producer, buffer)
        yield from self._shared_buffers(block, producer, buffer)

    def _iterations(self, state: State, producer: Block, buffer: Buffer) -> Iterator[Problem]:
        """Check that the producer runs at all iterations of the block."""
        tree, block = state.tree(self.block.function), state.block(self.block)
        branch = branch_around(tree, producer, block)
        made = executed_domain(tree, producer, branch)
        used = executed_domain(tree, block, branch_around(tree, block, producer))
        for found in (made, used):
            if found.condition is None:
                where = (self.block, *refs_of(self.block.function, producer))
                yield Problem(self.Requires.SAME_ITERATIONS, found.reason, where)
                return
        others = [a.buffer.name for a in writes(producer) if a.buffer is not buffer]
        if others and _predicate(tree, producer, block, buffer) is not producer.predicate:
            yield Problem(
                self.Requires.SAME_ITERATIONS,
                f"block {block.name!r} may not run at all iterations of producer "
                f"{producer.name!r}, which also stores to {others[0]!r}",
                (self.block, *refs_of(self.block.function, producer)),
                {"stores": ", ".join(others)},
            )
            return
        if made.condition is None or used.condition is None or made.exact:
            return
        wanted = substitute(used.condition, _positions(producer, block, buffer))
        # Facts of the loops of the producer exclude the iterations that it does not run.
        facts = tree.facts(branch)
        for item in producer.iters:
            facts = within_loop(facts, item.var, item.extent)
        if not is_proved(made.condition, assuming(facts, wanted)):
            yield Problem(
                self.Requires.SAME_ITERATIONS,
                f"{made.reason}, and block {block.name!r} may run other iterations",
                (self.block, *refs_of(self.block.function, producer, buffer)),
            )

    def rewrite(self, state: State) -> Rewrite:
        """Store the value of the consumer in the producer, then remove consumer and temporary."""
        edit = Edit(state, self.block.function)
        tree, block = edit.tree, state.block(self.block)
        buffer, producer = _sources(tree, block)[0]
        new = with_regions(_joined(edit, producer, block, buffer))
        new = replace(new, predicate=_predicate(tree, producer, block, buffer))
        kept = without(replace_statement(tree.function.body, producer, new), block)
        if kept is None:
            raise TypeError(f"the body of {edit.name!r} is empty")
        reason = f"inlined block {block.name!r}"
        moved = edit.removed(loops_removed(tree, kept), reason)
        moved |= {
            self.block: Removed(f"inlined it into block {producer.name!r}"),
            edit.buffer_ref(buffer): Removed(reason),
        }
        buffers = tuple(b for b in tree.function.buffers if b is not buffer)
        return edit.finish(without_allocation(kept, buffer), moved=moved, buffers=buffers)

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the step for a selected block that reads a temporary of another block."""
        if isinstance(selection, BlockRef):
            tree = state.tree(selection.function)
            if _sources(tree, state.block(selection)):
                yield cls(selection)


def _sources(tree: Tree, block: Block) -> list[tuple[Buffer, Block]]:
    """Return the temporaries that only this block reads, each with its only writer."""
    found: list[tuple[Buffer, Block]] = []
    for buffer in dict.fromkeys(a.buffer for a in reads(block)):
        writers = tree.writers(buffer)
        others = [b for b in tree.outermost_blocks() if b is not block and reads(b, buffer)]
        if tree.is_temporary(buffer) and len(writers) == 1 and not others:
            found.append((buffer, writers[0]))
    return found


class _Inliner(ValueInliner):
    """An inliner that renames locals whose names are in scope in the producer."""

    def __init__(self, producer: Producer, edit: Edit, names: frozenset[str]) -> None:
        super().__init__(producer, edit.fresh)
        self._edit, self._names = edit, names

    def local(self, local: Local, dtype: DType) -> Local:
        taken = local.name in self._names
        return Local(self._edit.fresh(local.name), dtype) if taken else super().local(local, dtype)


def _positions(producer: Block, block: Block, buffer: Buffer) -> dict[Var, Expr]:
    """Return the iteration variables of a block in terms of those of the producer."""
    read, written = reads(block, buffer)[0].indices, writes(producer, buffer)[0].indices
    pairs = zip(read, written, strict=True)
    at: dict[Var, Expr] = {index: new for index, new in pairs if isinstance(index, Var)}
    return {v.var: ZERO for v in block.iters} | at


def _predicate(tree: Tree, producer: Block, block: Block, buffer: Buffer) -> Bool:
    """Return the predicate of the producer with the condition of the block."""
    condition = condition_of(tree, block, branch_around(tree, block, producer))
    wanted = substitute(condition, _positions(producer, block, buffer))
    facts = assuming(tree.facts(producer.body), producer.predicate)
    bindings = bindings_of(producer)
    kept = [part for part in conjuncts(wanted) if part is not TRUE and not is_proved(part, facts)]
    return all_of(producer.predicate, *(substitute(part, bindings) for part in kept))


def _joined(edit: Edit, producer: Block, block: Block, buffer: Buffer) -> Block:
    """Return the producer with the statements of the consumer in place of its store."""
    parts = statements_of(producer.body)
    inner = next(s for s in parts if isinstance(s, Store) and s.buffer is buffer)
    names = {v.var.name for v in producer.iters}
    names |= {s.local.name for s in parts if isinstance(s, Bind)}
    names |= {x.var.name for x in edit.tree.binders_above(producer)}
    values = Producer(tuple(v.var for v in producer.iters), (), {buffer: inner})
    outer = substitute_in(block.body, _positions(producer, block, buffer))
    new = _Inliner(values, edit, frozenset(names)).statement(outer)
    new = transform(new, lambda s: _with_origins(s, inner.origins))
    at = parts.index(inner)
    body = joined((*parts[:at], *statements_of(new), *parts[at + 1 :]))
    return replace(producer, body=body, origins=producer.origins | block.origins)


def _with_origins(statement: Stmt, origins: Origins) -> Stmt:
    if isinstance(statement, Store):
        return replace(statement, origins=statement.origins | origins)
    return statement
