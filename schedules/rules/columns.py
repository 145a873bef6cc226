"""Default rule for kernels that reduce columns, such as the sum of the rows of a matrix.

The lanes of vectors are adjacent columns. The partial results of a strip of columns stay in vector
registers while the rows are read in order, each element once.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.loop.nodes import Block
from ...ir.loop.visit import loads
from ...ir.symbolic import Var, const_value, free_vars
from ..composite import composite
from ..handles import BlockRef, FunctionRef, LoopRef, buffer_ref
from ..machine import machine_of
from ..patterns import Rows, classify
from ..problem import RuleNotApplicableError
from ..schedule import Schedule
from .strips import in_vectors, loop_of


@composite
def schedule_columns(sch: Schedule, function: FunctionRef) -> None:
    """Schedule reductions of columns for the vector registers of a CPU.

    Before::

        for j in range(m):
            for i in range(n):
                s[j] += x[i, j]

    After::

        for j_0 in parallel(ceildiv(m, 256)):
            for i in range(n):
                for j_1 in unrolled(16):
                    for j_2 in vectorized(16):
                        S[j_1, j_2] += x[i, j_0 * 256 + j_1 * 16 + j_2]
            s[j_0 * 256 : j_0 * 256 + 256] = S

    Parameters
    ----------
    function : FunctionRef
        The function. All its blocks have the dimensions of the result, whose last one is the last
        one of the elements that are read.

    Notes
    -----
    ``cache_write`` of the results, ``split`` of their columns, ``compute_at`` and
    ``reverse_compute_at`` of the other blocks, ``set_scope`` and ``transform_layout`` of the
    partial results, ``decompose_reduction``, ``reorder``, ``unroll`` and ``vectorize``. The partial
    results take half of the vector registers of the target.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(x: Buffer[(8, 64), f32], y: Out[(64,), f32]):
    ...     for j in range(64):
    ...         for i in range(8):
    ...             with block("sum"):
    ...                 vj, vi = spatial(j), reduce(i)
    ...                 with init(): y[vj] = 0.0
    ...                 y[vj] += x[vi, vj]
    ... ''')
    >>> sch = tw.Schedule(module, tw.Target("cpu", features=("avx512",)))
    >>> sch.schedule_columns("f")
    >>> [sch.state.loop(loop).kind for loop in sch.get_loops("sum")]
    ['parallel', 'serial', 'unrolled', 'vectorized']
    """
    name = function.function
    shared = _dimensions(sch, name)
    refs = sch.get_blocks(name)
    strip = _strip(sch, refs, shared)
    temporaries = sch.state.tree(name).temporaries
    *before, last = [ref for ref in refs if sch.state.block(ref).init is not None]
    after = [ref for ref in refs if ref not in (*before, last)]
    copies = [
        sch.cache_write(last, buffer_ref(name, r.buffer), "local")
        for r in sch.state.block(last).writes
        if r.buffer not in temporaries
    ]
    outer = sch.get_loops(last)[:shared]
    strips, _ = sch.split(outer[-1], factors=(None, strip.columns))
    for ref in reversed(before):
        sch.compute_at(ref, strips)
    for ref in (*after, *copies):
        sch.reverse_compute_at(ref, strips)
    for ref in (*before, last):
        for region in sch.state.block(ref).writes:
            partial = buffer_ref(name, region.buffer)
            sch.set_scope(partial, "local")
            sch.transform_layout(partial, in_vectors(shared, shared - 1, strip.lanes))
    for ref in (*before, last, *after, *copies):
        _vectorize(sch, ref, shared - 1, strip)
    many = [x for x in (*outer[:-1], strips) if const_value(sch.state.loop(x).extent) != 1]
    sch.parallel(many[0] if many else strips)


@dataclass(frozen=True, slots=True)
class _Strip:
    """Columns that are reduced together: some vectors, each with some lanes."""

    lanes: int
    vectors: int

    @property
    def columns(self) -> int:
        """The number of columns."""
        return self.lanes * self.vectors


def _dimensions(sch: Schedule, name: str) -> int:
    """Return the number of dimensions of the results of a function that reduces columns.

    Raises
    ------
    RuleNotApplicableError
        If the function does not reduce columns, or they have no vectors.
    """
    pattern = classify(sch.module.prim(name))
    if not isinstance(pattern, Rows) or not pattern.complete or not pattern.shared:
        raise RuleNotApplicableError(f"function {name!r} does not reduce columns")
    refs, shared = sch.get_blocks(name), pattern.shared
    if not all(_is_by_columns(sch, ref, shared) for ref in refs):
        raise RuleNotApplicableError(f"function {name!r} does not reduce columns")
    results = [r.buffer.dtype for b in pattern.blocks for r in b.writes]
    if any(d.is_packed or d.is_complex for d in results):
        raise RuleNotApplicableError(f"the results of function {name!r} have no vectors")
    if const_value(sch.state.block(refs[0]).iters[shared - 1].extent) in (0, 1):
        raise RuleNotApplicableError(f"the result of function {name!r} has at most one column")
    return shared


def _is_by_columns(sch: Schedule, ref: BlockRef, shared: int) -> bool:
    """Return whether a block has the dimensions of the result, and reduces adjacent columns."""
    block = sch.state.block(ref)
    order = tuple(sch.state.loop(x).var for x in sch.get_loops(ref))
    kinds = [v.kind for v in block.iters]
    if tuple(v.binding for v in block.iters) != order or kinds.count("spatial") != shared:
        return False
    return block.init is None or (
        "reduce" in kinds and _reads_adjacent(block, block.iters[shared - 1].var)
    )


def _reads_adjacent(block: Block, column: Var) -> bool:
    """Return whether adjacent columns are adjacent elements of every buffer that has columns."""
    results = {region.buffer for region in block.writes}
    read = [load.indices for load in loads(block.body) if load.buffer not in results]
    own = [at for at in read if any(column in free_vars(i) for i in at)]
    return bool(own) and all(
        column not in free_vars(i) for *others, last in own for i in (*others, last - column)
    )


def _strip(sch: Schedule, refs: tuple[BlockRef, ...], shared: int) -> _Strip:
    """Return the strip whose partial results take half of the vector registers."""
    machine = machine_of(sch.state.target_of(refs[0].function))
    blocks = [b for b in map(sch.state.block, refs) if b.init is not None]
    extent = const_value(blocks[0].iters[shared - 1].extent)
    lanes = min(machine.lanes(b.writes[0].buffer.dtype) for b in blocks)
    if extent is not None:
        lanes = min(lanes, 1 << (extent - 1).bit_length())
    registers = max(
        sum(-(-lanes // machine.lanes(r.buffer.dtype)) for r in b.writes) for b in blocks
    )
    vectors = max(1, machine.registers // (2 * registers))
    if extent is not None:
        count = -(-extent // lanes)
        vectors = -(-count // -(-count // vectors))
    return _Strip(lanes, vectors)


def _vectorize(sch: Schedule, ref: BlockRef, column: int, strip: _Strip) -> None:
    """Vectorize the columns of a block in a strip, in the innermost loops."""
    found = sch.state.block(ref)
    terms = [x for v in found.iters if v.kind == "reduce" and (x := loop_of(sch, ref, v))]
    lanes = loop_of(sch, ref, found.iters[column])
    if lanes is None:
        return
    if terms:
        sch.reorder((*terms, lanes))
        init = sch.decompose_reduction(ref, terms[0])
        _lanes(sch, sch.get_loops(init)[-1], strip)
    _lanes(sch, lanes, strip)


def _lanes(sch: Schedule, loop: LoopRef, strip: _Strip) -> None:
    """Split the columns of a strip into vectors, whose loop is unrolled."""
    if strip.vectors > 1:
        vectors, loop = sch.split(loop, factors=(None, strip.lanes))
        sch.unroll(vectors)
    sch.vectorize(loop)
