"""The ``scan_blocks`` primitive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ....ir.analysis import with_regions
from ....ir.loop.nodes import (
    Bind,
    Block,
    Buffer,
    Condition,
    Element,
    For,
    IterKind,
    IterVar,
    Load,
    Stmt,
    Where,
)
from ....ir.loop.reducers import Reducing
from ....ir.loop.scans import Scanning, scan_of, scan_variable, scanning
from ....ir.loop.straight_line import used_binds
from ....ir.loop.visit import replace_statement, seq, substitute_in_element
from ....ir.symbolic import (
    TRUE,
    Bool,
    Expr,
    Le,
    Lt,
    Var,
    as_expr,
    ceildiv,
    conjuncts,
    const_value,
    eq,
    free_vars,
    is_proved,
    linear_form,
    maximum,
    substitute,
    to_text,
)
from ...apply import Primitive, Rewrite
from ...edit import Edit
from ...handles import BlockRef, Handle, loop_ref, refs_of
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State

DEFAULT_SIZE = 1024
"""The number of iterations of a part in suggestions."""


@primitive(family="reduction", returns=tuple[BlockRef, BlockRef], isolated=True)
@dataclass(frozen=True, slots=True)
class ScanBlocks(Primitive):
    """Split a scan into parts that run independently: totals, their scan, and the scans.

    Before::

        for j in range(n):
            y[j] = scan(add, x[j])

    After (``size=1024``)::

        for p in range(ceildiv(n, 1024)):
            for q in range(1024):
                with init:
                    total[p] = 0
                total[p] += x[p * 1024 + q]
        for p in range(ceildiv(n, 1024)):
            before[p] = scan(add, total[p - 1])
        for p in range(ceildiv(n, 1024)):
            for q in range(1024):
                y[p * 1024 + q] = scan(add, x[p * 1024 + q], start=before[p])

    Parameters
    ----------
    block : BlockRef
        The scan. It keeps its handle and computes the results.
    size : int
        The number of iterations of a part, at least 1.

    Notes
    -----
    The results are the handles of the blocks of the totals and of their scan. The loops over the
    parts of the first and the last block have independent iterations: run them in ``parallel``, or
    ``bind`` them to threads. The values are combined in another order, which a declared reducer
    allows; a reducer that is not commutative keeps the order of its operands. The terms are
    computed twice. Cost: linear in the size of the function.

    Names elsewhere: reduce-then-scan, in "Single-pass Parallel Prefix Scan with Decoupled
    Look-back" (NVIDIA, 2016).

    References
    ----------
    "Prefix Sums and Their Applications" (Blelloch, 1990).

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(x: Buffer[(64,), f32], y: Out[(64,), f32]):
    ...     for j in range(64):
    ...         with block("sums"):
    ...             vj = ordered(j)
    ...             y[vj] = scan(add, x[vj])
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> total, before = sch.scan_blocks("sums", 16)
    >>> [block.name for block in sch.get_blocks("f")]
    ['sums_total', 'sums_before', 'sums']
    >>> [len(sch.get_loops(block)) for block in (total, before, sch.get_block("sums"))]
    [2, 1, 2]
    """

    class Requires(Requirement):
        """The requirements of ``scan_blocks``."""

        SCAN = "the block is a scan by a declared reducer: y[i, j] = scan(add, x[i, j])"
        SCAN_LOOP = (
            "the innermost loop around the block is serial and without annotations, contains only "
            "the block, and alone binds the ordered iteration variable, without an offset; no "
            "other binding depends on it, and predicates only limit it from above"
        )
        INDEPENDENT_EXTENT = (
            "the extents of this loop and of the other iteration variables are terms over the "
            "symbols of the function"
        )
        POSITIVE_SIZE = "the size is at least 1"

    block: BlockRef
    size: int

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the block and the loop of its ordered iteration variable."""
        block, name = state.block(self.block), self.block.function
        if self.size < 1:
            yield Problem(
                self.Requires.POSITIVE_SIZE, f"the size is {self.size}", (self.block,),
                {"size": self.size},
            )  # fmt: skip
        variable = scan_variable(block)
        if variable is None:
            yield Problem(
                self.Requires.SCAN,
                f"block {block.name!r} is not a scan by a declared reducer",
                (self.block,),
            )
            return
        loop = _loop(state, self.block)
        reason = _loop_problem(block, variable, loop)
        if reason or loop is None:
            loops = () if loop is None else refs_of(name, loop)
            yield Problem(self.Requires.SCAN_LOOP, reason, (self.block, *loops))
            return
        symbols = state.tree(name).symbols()
        for extent in (loop.extent, *(v.extent for v in block.iters if v.var is not variable)):
            if not free_vars(extent) <= symbols:
                yield Problem(
                    self.Requires.INDEPENDENT_EXTENT,
                    f"extent {to_text(extent)} depends on another loop, or on a value that is "
                    "read from memory",
                    (self.block, loop_ref(name, loop)),
                    {"extent": to_text(extent)},
                )

    def rewrite(self, state: State) -> Rewrite:
        """Replace the loop by the nests of the three blocks."""
        edit = Edit(state, self.block.function)
        block, loop = state.block(self.block), _loop(state, self.block)
        variable, scan = scan_variable(block), scanning(block)
        if loop is None or variable is None or scan is None:
            raise TypeError(f"block {block.name!r} is not a scan")
        parts = _Parts(edit, block, loop, variable, scan, size=self.size)
        totals, before, results = parts.totals(), parts.before(), parts.results()
        new = seq(totals[0], before[0], results[0])
        temporaries = (*parts.total, *parts.carried)
        reason = f"scan_blocks replaced loop {loop.var.name!r} by loops over parts"
        return edit.finish(
            replace_statement(edit.tree.function.body, loop, new),
            results=(edit.block_ref(totals[1]), edit.block_ref(before[1])),
            moved=edit.removed((loop,), reason),
            buffers=(*edit.tree.function.buffers, *temporaries),
            like=scan.targets[0].buffer,
            place=temporaries if parts.has_constant_count else (),
        )

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the step for a selected scan."""
        if isinstance(selection, BlockRef) and scanning(state.block(selection)) is not None:
            yield cls(selection, DEFAULT_SIZE)


def _loop(state: State, ref: BlockRef) -> For | None:
    """Return the innermost loop around a block."""
    above = state.tree(ref.function).loops_above(state.block(ref))
    return above[-1] if above else None


def _loop_problem(block: Block, variable: Var, loop: For | None) -> str:
    """Return why the loop around a scan is not that of its ordered variable; empty if it is."""
    own = next(v for v in block.iters if v.var is variable)
    if loop is None or own.binding != loop.var:
        return f"the innermost loop around block {block.name!r} does not bind {variable.name!r}"
    if loop.body is not block:
        return f"loop {loop.var.name!r} contains other statements than block {block.name!r}"
    if loop.kind != "serial" or loop.annotations:
        return f"loop {loop.var.name!r} is {loop.kind_text}, or has annotations"
    others = [v.var.name for v in block.iters if v is not own and loop.var in free_vars(v.binding)]
    if others:
        return f"{', '.join(others)} of block {block.name!r} depends on loop {loop.var.name!r}"
    for part in conjuncts(block.predicate):
        if not _limits_from_above(part, loop.var):
            return (
                f"the predicate {to_text(part)} of block {block.name!r} depends on loop "
                f"{loop.var.name!r}, other than as an upper limit"
            )
    return ""


def _limits_from_above(claim: Bool, variable: Var) -> bool:
    """Return whether a condition that is true for a value is true for all smaller ones."""
    if variable not in claim.free:
        return True
    form = linear_form(claim.delta, (variable,)) if isinstance(claim, Le | Lt) else None
    scale = None if form is None else const_value(form.coefficients[variable])
    return scale is not None and scale > 0


class _Parts:
    """The blocks of a scan in parts."""

    def __init__(
        self, edit: Edit, block: Block, loop: For, variable: Var, scan: Scanning, *, size: int
    ) -> None:
        self._edit, self._block, self._scan = edit, block, scan
        self._variable, self._loop, self._size = variable, loop, as_expr(size)
        count = loop.extent
        if not is_proved(count >= 0, edit.tree.function.facts):
            count = maximum(count, 0)
        self._count = ceildiv(count, size)
        self._whole = is_proved(eq(count % size, 0), edit.tree.function.facts)
        self._spatial = [v for v in block.iters if v.var is not variable]
        self.total = self._temporaries("total")
        self.carried = self._temporaries("before")

    @property
    def has_constant_count(self) -> bool:
        """True if the number of parts is a constant."""
        return const_value(self._count) is not None

    def _temporaries(self, suffix: str) -> tuple[Buffer, ...]:
        sizes = (*(v.extent for v in self._spatial), self._count)
        return tuple(
            self._edit.buffer(f"{t.buffer.name}_{suffix}", sizes, t.dtype, "global")
            for t in self._scan.targets
        )

    def totals(self) -> tuple[Stmt, Block]:
        """Return the reductions of the parts."""
        renamed, spatial = self._copies()
        p, q, part, position = self._positions("reduce")
        inside = {**renamed, self._variable: part.var * self._size + position.var}
        update = Reducing(
            self._scan.reducer,
            self._binds(self._scan.terms, inside),
            self._elements(self.total, spatial, part.var),
            tuple(_at(term, inside) for term in self._scan.terms),
            self._scan.origins,
        )
        made = replace(
            self._block,
            uid=self._edit.mint(),
            name=self._edit.fresh(f"{self._block.name}_total"),
            iters=(*spatial, part, position),
            predicate=self._predicate(p * self._size + q) & self._limit(p, q),
            body=update.body(),
            init=update.starts(),
            reducer=update.declared,
        )
        return self._nest(made, p, q)

    def before(self) -> tuple[Stmt, Block]:
        """Return the scan of the totals of the parts before each part."""
        renamed, spatial = self._copies()
        p = self._edit.loop_var("part", self._count)
        part = IterVar(self._edit.loop_var("vpart", self._count), self._count, "ordered", p)
        totals = self._elements(self.total, spatial, part.var - 1)
        later = Condition(part.var >= 1)
        pairs = zip(totals, self._scan.reducer.identities, strict=True)
        made = scan_of(
            self._scan.reducer,
            self._elements(self.carried, spatial, part.var),
            part.var,
            tuple(Where(later, total, one) for total, one in pairs),
            starts=tuple(_at(start, renamed) for start in self._scan.starts),
            origins=self._scan.origins,
            prefix=self._binds(self._scan.starts, {**renamed, self._variable: as_expr(0)}),
        )
        block = replace(
            self._block,
            uid=self._edit.mint(),
            name=self._edit.fresh(f"{self._block.name}_before"),
            iters=(*spatial, part),
            predicate=self._predicate(p * self._size),
            body=made.body(),
        )
        return self._nest(block, p)

    def results(self) -> tuple[Stmt, Block]:
        """Return the scans of the parts, each from the total of those before it."""
        p, q, part, position = self._positions("ordered")
        inside = {self._variable: part.var * self._size + position.var}
        made = scan_of(
            self._scan.reducer,
            tuple(Load(t.buffer, _indices(t, inside)) for t in self._scan.targets),
            position.var,
            tuple(_at(term, inside) for term in self._scan.terms),
            starts=self._elements(self.carried, self._spatial, part.var),
            origins=self._scan.origins,
            prefix=self._binds(self._scan.terms, inside),
        )
        block = replace(
            self._block,
            iters=(*self._spatial, part, position),
            predicate=self._predicate(p * self._size + q) & self._limit(p, q),
            body=made.body(),
        )
        return self._nest(block, p, q)

    def _binds(self, values: Iterable[Element], at: Mapping[Var, Expr]) -> tuple[Bind, ...]:
        """Return the binds that some values of the scan use, at an iteration."""
        used = used_binds(self._scan.prefix, values)
        return tuple(replace(bind, value=_at(bind.value, at)) for bind in used)

    def _copies(self) -> tuple[dict[Var, Expr], list[IterVar]]:
        """Return copies of the other iteration variables, and the map to them."""
        copies = [replace(v, var=self._edit.loop_var(v.var.name, v.extent)) for v in self._spatial]
        pairs = zip(self._spatial, copies, strict=True)
        return {old.var: new.var for old, new in pairs}, copies

    def _positions(self, kind: IterKind) -> tuple[Var, Var, IterVar, IterVar]:
        """Return the variables of two loops, over parts and inside of one, and of their block."""
        edit, size, count = self._edit, self._size, self._count
        p, q = edit.loop_var("part", count), edit.loop_var("step", size)
        part = IterVar(edit.loop_var("vpart", count), count, "spatial", p)
        variable = edit.loop_var("vstep", size)
        return p, q, part, IterVar(variable, size, kind, q)

    def _elements(
        self, buffers: tuple[Buffer, ...], spatial: list[IterVar], part: Expr
    ) -> tuple[Load, ...]:
        return tuple(Load(b, (*(v.var for v in spatial), part)) for b in buffers)

    def _predicate(self, position: Expr) -> Bool:
        """Return the predicate of the scan at a position of its loop."""
        return substitute(self._block.predicate, {self._loop.var: position})

    def _limit(self, part: Var, step: Var) -> Bool:
        """Return the condition that an iteration of a part exists."""
        return TRUE if self._whole else part * self._size + step < self._loop.extent

    def _nest(self, block: Block, part: Var, step: Var | None = None) -> tuple[Stmt, Block]:
        block = with_regions(block)
        body: Stmt = block
        if step is not None:
            body = replace(self._edit.loop(step, self._size, body), origins=self._loop.origins)
        nest = self._edit.loop(part, self._count, body)
        return replace(nest, origins=self._loop.origins), block


def _at(value: Element, values: Mapping[Var, Expr]) -> Element:
    return substitute_in_element(value, values)


def _indices(target: Load, values: Mapping[Var, Expr]) -> tuple[Expr, ...]:
    return tuple(substitute(i, values) for i in target.indices)
