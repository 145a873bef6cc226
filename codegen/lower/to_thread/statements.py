"""Lowering of loop-level statements to thread IR."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from ....ir.analysis import update_of
from ....ir.analysis.unrolled import UNROLL_LIMIT
from ....ir.loop import nodes as loop
from ....ir.loop.scans import Scanning, scanning
from ....ir.loop.visit import walk, walk_element
from ....ir.symbolic import (
    FALSE,
    TRUE,
    Bool,
    Expr,
    Var,
    all_of,
    as_expr,
    ceildiv,
    conjuncts,
    const_value,
    minimum,
    negate,
    substitute,
    var,
)
from ....ir.thread.nodes import (
    Address,
    Assign,
    Const,
    Extract,
    If,
    Loop,
    Parallel,
    Predicate,
    Reduce,
    Reg,
    Scatter,
    Select,
    Source,
    Stmt,
    Store,
    Value,
)
from ....polling import poll
from ....target.cpus import Cpu
from ..analysis.cost_estimate import estimated_work
from ..analysis.linear_limits import solve
from . import packed
from .bound_integers import bind_integer
from .bounds_checks import Access, AccessChecks, fail
from .buffer_addresses import BufferAddresses, ElementAddress
from .context import Lanes, LoweringContext
from .cpu_intrinsics import expand
from .element_values import Elements, constant, index, lanes_of, predicate, widen
from .lane_reductions import is_lane_reduction, reduce_lanes
from .lane_scans import (
    BLOCK_VECTORS,
    carried_scan,
    carry_at,
    combine_results,
    fills_lanes,
    guards_in,
    has_blocks,
    lane_scan,
    scan_lanes,
)
from .row_padding import skips_only_padding
from .scratch import Scratch
from .vector_chunks import chunks


class StatementLowering:
    """The lowering of statements in order; :attr:`out` is the current output list."""

    carries = True
    """Whether the results of a scan stay in registers between vectors."""

    def __init__(
        self,
        memory: BufferAddresses,
        cpu: Cpu,
        table: Reg,
        scratch: Scratch,
        *,
        debug: bool = False,
        checked: frozenset[Access] = frozenset(),
    ) -> None:
        """Initialize with an empty output list; ``checked`` are accesses without a proof."""
        self.memory = memory
        self.cpu = cpu
        self.table = table
        self.scratch = scratch
        self.debug = debug
        self.checks = AccessChecks(self._fail, None if debug else checked)
        self.out: list[Stmt] = []
        self.parallel = False
        self._lanes: dict[tuple[Var, int], Var] = {}
        self._bound: dict[loop.Local, Value] = {}
        self._scanned: loop.Block | None = None
        self._carried: tuple[Reg, ...] = ()
        self._before_block: tuple[Reg, ...] = ()

    def body(self, statement: loop.Stmt, context: LoweringContext) -> tuple[Stmt, ...]:
        """Return the statements that a statement is lowered to."""
        outer, self.out = self.out, []
        self.statement(statement, context)
        inner, self.out = self.out, outer
        return tuple(inner)

    def statement(self, statement: loop.Stmt, context: LoweringContext) -> None:
        """Append the lowered form of one statement to :attr:`out`."""
        poll()
        match statement:
            case loop.Seq(body=parts):
                for part in parts:
                    self.statement(part, context)
            case loop.Block(uid=uid, name=name, body=body, origins=origins):
                source = Source(uid, name, origins | context.source.origins)
                inner = replace(context, source=source)
                if statement is self._scanned and (context.lanes or self._carried):
                    self._scan(statement, inner)
                    return
                checked = self.checks.inside(statement.body)
                made = None if checked else expand(statement, inner, self.memory)
                if made is None:
                    self.statement(body, inner)
                else:
                    self.out.extend(made)
            case loop.If():
                self._if(statement, context)
            case loop.For():
                self._for(statement, context)
            case loop.Let():
                self._let(statement, context)
            case loop.Store():
                self._store(statement, context)
            case loop.Bind():
                self._bind(statement, context)
            case loop.Alloc(buffer=buffer):
                raise TypeError(f"the allocation of {buffer.name!r} was not placed")
            case _:
                assert_never(statement)

    def _if(self, branch: loop.If, context: LoweringContext) -> None:
        claim = context.assumptions.decide(context.term(branch.condition))
        if claim is TRUE:
            self.statement(branch.then, context)
        elif claim is FALSE:
            if branch.otherwise is not None:
                self.statement(branch.otherwise, context)
        elif context.varies(claim):
            self._masked(claim, branch.then, context)
            if branch.otherwise is not None:
                self._masked(negate(claim), branch.otherwise, context)
        else:
            self._branch(claim, branch, context)

    def _branch(self, claim: Bool, branch: loop.If, context: LoweringContext) -> None:
        then_context = replace(context, assumptions=context.assumptions.assuming(claim))
        then = self.body(branch.then, then_context)
        otherwise: tuple[Stmt, ...] = ()
        if branch.otherwise is not None:
            other = replace(context, assumptions=context.assumptions.assuming(negate(claim)))
            otherwise = self.body(branch.otherwise, other)
        if then or otherwise:
            self.out.append(If(predicate(claim, context), then, otherwise, context.source))

    def _masked(self, claim: Bool, body: loop.Stmt, context: LoweringContext) -> None:
        """Run the lanes for which a condition holds; branch around the body if there are none."""
        mask = all_of(context.mask, claim)
        inner = replace(context, mask=mask)
        lowered = self.body(body, inner)
        some = self._some_lane(mask, context)
        if some is None:
            self.out.extend(lowered)
        else:
            self.out.append(If(some, lowered, (), context.source))

    def _some_lane(self, mask: Bool, context: LoweringContext) -> Value | None:
        """Return the condition that any lane runs, or None if one certainly runs."""
        if context.lanes is None:
            return None
        first = context.assumptions.decide(substitute(mask, {context.lanes.var: 0}))
        if first is TRUE:
            return None
        lane = context.lanes.var
        limits = [solve(part, lane) for part in conjuncts(mask) if lane in part.free]
        if all(limit is not None and limit.above for limit in limits):
            return Predicate(first)  # The mask is a prefix of the lanes.
        return Reduce("or", predicate(mask, context))

    def _for(self, nest: loop.For, context: LoweringContext) -> None:
        extent = context.term(nest.extent)
        count = const_value(extent)
        region = nest.kind == "parallel" and not context.parallel
        if region and (count is None or count > 1) and context.lanes is None:
            self._parallel(nest, extent, context)
            return
        if region:
            # With one iteration, or inside a vector, the loop runs serially as one worker.
            self.out.extend(self.scratch.private(nest, as_expr(0)))
            context = replace(context, parallel=True)
        self._sequential(nest, extent, context)

    def _sequential(self, nest: loop.For, extent: Expr, context: LoweringContext) -> None:
        count = const_value(extent)
        # Code of the body outside of blocks, such as branches, is attributed to the loop.
        context = replace(context, source=Source(nest.uid, nest.var.name, context.source.origins))
        if count is not None and count <= 1:
            if count == 1:
                self.statement(nest.body, context.binding(nest.var, as_expr(0)))
            return
        if self.debug and nest.kind == "vectorized":
            self._serial(nest, extent, context)
        elif nest.kind == "vectorized" and count is not None:
            self._vectorized(nest, count, context)
        elif nest.kind == "unrolled" and count is not None and count <= UNROLL_LIMIT:
            self._unrolled(nest, range(count), context)
        else:
            self._serial(nest, extent, context)

    def _source(self, nest: loop.For, context: LoweringContext) -> Source:
        return Source(nest.uid, nest.var.name, nest.origins | context.source.origins)

    def _serial(self, nest: loop.For, extent: Expr, context: LoweringContext) -> None:
        inner = replace(context, assumptions=context.assumptions.iterating(nest.var, extent))
        before, self._carried = self._carried, self._carry(nest, extent, context)
        scan = carried_scan(nest) if self._carried else None
        if scan is not None and has_blocks(scan[1], extent):
            self._in_blocks(nest, extent, scan[1], inner)
        elif body := self.body(nest.body, inner):
            zero = as_expr(0)
            self.out.append(Loop(nest.var, zero, extent, body, 1, self._source(nest, context)))
        self._carried = before

    def _in_blocks(
        self, nest: loop.For, extent: Expr, scan: Scanning, context: LoweringContext
    ) -> None:
        """Append the loop over the vectors of a scan, in blocks that start at the identity.

        The results before a block are combined with those of the block, so that the rounding error
        grows with the number of blocks.
        """
        source = self._source(nest, context)
        number = var(f"{nest.var.name}_block", lower=0)
        self._before_block = self._carried
        self._carried = tuple(Reg(f"{r.name}_block", r.type) for r in self._before_block)
        pairs = zip(self._carried, scan.reducer.identities, strict=True)
        starts = tuple(Assign(r, constant(n.value, n.dtype), source) for r, n in pairs)
        body = self.body(nest.body, context)
        outer, self.out = self.out, []
        values = combine_results(scan, self._before_block, self._carried, self, context)
        pairs = zip(self._before_block, values, strict=True)
        added = (*self.out, *(Assign(r, v, source) for r, v in pairs))
        first, last = number * BLOCK_VECTORS, minimum(extent, (number + 1) * BLOCK_VECTORS)
        vectors = Loop(nest.var, first, last, body, 1, source)
        self.out = outer
        whole = (*starts, vectors, *added)
        count = ceildiv(extent, BLOCK_VECTORS)
        self.out.append(Loop(number, as_expr(0), count, whole, 1, source))
        self._before_block = ()

    def _carry(self, nest: loop.For, extent: Expr, context: LoweringContext) -> tuple[Reg, ...]:
        """Return registers with the results before the first vector of a scan in a loop."""
        scan = carried_scan(nest)
        if scan is None or not self.carries or self.debug or context.lanes is not None:
            return ()
        first = context.binding(nest.var, as_expr(0)).binding(scan[0].var, as_expr(0))
        # No lane runs if the first one does not, and its elements need not exist then.
        runs = all_of(context.term(extent) >= 1, first.term(guards_in(scan[0])))
        some = context.assumptions.decide(runs)
        outer, self.out = self.out, []
        values = carry_at(
            scan[1], self, replace(first, assumptions=first.assumptions.assuming(some))
        )
        registers = tuple(
            Reg(x.name, v.type) for x, v in zip(scan[1].reducer.left, values, strict=True)
        )
        pairs = zip(registers, values, strict=True)
        made = (*self.out, *(Assign(r, v, context.source) for r, v in pairs))
        self.out = outer
        if some is TRUE:
            self.out.extend(made)
            return registers
        pairs = zip(registers, scan[1].reducer.identities, strict=True)
        none = tuple(Assign(r, constant(n.value, n.dtype), context.source) for r, n in pairs)
        self.out.append(If(Predicate(some), made, none, context.source))
        return registers

    def _parallel(self, nest: loop.For, extent: Expr, context: LoweringContext) -> None:
        assumptions = context.assumptions.iterating(nest.var, extent)
        source = self._source(nest, context)
        inner = replace(
            context,
            assumptions=assumptions,
            parallel=True,
            source=replace(source, origins=context.source.origins),
        )
        worker = var("worker", lower=0)
        body = (*self.scratch.private(nest, worker), *self.body(nest.body, inner))
        self.parallel = True
        work = context.term(estimated_work(nest))
        self.out.append(Parallel(self.table, nest.var, extent, work, worker, body, source))

    def _unrolled(self, nest: loop.For, values: range, context: LoweringContext) -> None:
        for value in values:
            self.statement(nest.body, context.binding(nest.var, as_expr(value)))

    def _vectorized(self, nest: loop.For, count: int, context: LoweringContext) -> None:
        scan = lane_scan(nest)
        scalar = context.lanes is not None or (scan is not None and not fills_lanes(nest, scan[0]))
        if scalar or _has_vectors(nest.body) or _needs_scalars(nest):
            self._unrolled(nest, range(count), context)
            return
        outer, self._scanned = self._scanned, None if scan is None else scan[0]
        for chunk in chunks(nest, count, self.cpu):
            start = as_expr(chunk.start)
            if chunk.lanes == 1:
                self.statement(nest.body, context.binding(nest.var, start))
                continue
            lane = self._lane(nest.var, chunk.lanes)
            inner = replace(context.binding(nest.var, start + lane), lanes=Lanes(lane, chunk.lanes))
            if chunk.active < chunk.lanes:
                inner = replace(inner, mask=lane < chunk.active)
            self.statement(nest.body, inner)
        self._scanned = outer

    def _scan(self, block: loop.Block, context: LoweringContext) -> None:
        """Scan the values of the lanes, and store the results."""
        scan = scanning(block)
        if scan is None:
            raise TypeError(f"block {block.name!r} is not a scan")
        carried = self._carried or carry_at(scan, self, context.lane(as_expr(0)))
        values = scan_lanes(scan, carried, self, context)
        results = values
        if self._before_block:
            results = combine_results(scan, self._before_block, values, self, context)
        for target, local, value in zip(scan.targets, scan.reducer.left, results, strict=True):
            self._bound[local] = value
            self._store(loop.Store(target.buffer, target.indices, local, scan.origins), context)
        for register, value in zip(self._carried, values, strict=False):
            last = _extracted(value, context.count - 1)
            self.out.append(Assign(register, last, context.source))

    def elements_of(self, context: LoweringContext) -> Elements:
        """Return the lowering of elements at the current position."""
        return self._elements(context)

    def bind_local(self, local: loop.Local, value: Value) -> None:
        """Set the value of a local."""
        self._bound[local] = value

    def _lane(self, counter: Var, lanes: int) -> Var:
        """Return the lane variable of a loop, shared by all copies so that cached terms match."""
        key = (counter, lanes)
        if key not in self._lanes:
            self._lanes[key] = var(counter.name, lower=0, upper=lanes - 1)
        return self._lanes[key]

    def _elements(self, context: LoweringContext) -> Elements:
        return Elements(self.memory, context, self.out, checks=self.checks, bound=self._bound)

    def _bind(self, bind: loop.Bind, context: LoweringContext) -> None:
        """Assign a value to a register, which the rest of the statements use."""
        elements = self._elements(context)
        value = elements.typed(bind.value, bind.local.dtype)
        if not isinstance(value, Const | Reg):
            reg = Reg(bind.local.name, value.type)
            self.out.append(Assign(reg, value, context.source))
            value = reg
        self._bound[bind.local] = value
        self.statement(bind.body, context)

    def _let(self, let: loop.Let, context: LoweringContext) -> None:
        elements = self._elements(context)
        bound, inner = bind_integer(let, elements, self._fail)
        self.out.extend(bound)
        self.statement(let.body, inner)

    def _fail(
        self, code: int, text: str, numbers: tuple[Value, Value], context: LoweringContext
    ) -> tuple[Stmt, ...]:
        """Return statements that report an error to the runtime table and return."""
        return fail(self.table, code, text, numbers, context)

    def _store(self, store: loop.Store, context: LoweringContext) -> None:
        target = self.memory.access(store.buffer, store.indices, context)
        source = replace(context.source, origins=context.source.origins | store.origins)
        context = replace(context, source=source)
        if context.lanes is not None and target.uniform:
            self._store_uniform(store, target, context)
            return
        if store.buffer.dtype.is_packed:
            self._store_packed(store, target, context)
            return
        elements = self._elements(context)
        elements.check(store.buffer, store.indices)
        value = elements.typed(self._value(store), store.buffer.dtype)
        self._write(target, store.indices, widen(value, context.count), elements)

    def _value(self, store: loop.Store) -> loop.Element:
        """Return the value of a store; the result so far is the right operand of a maximum.

        The left operand is tested for NaN beside the comparison, so that a chain of maxima or
        minima does not wait for these tests.
        """
        found = update_of(store) if store.buffer.dtype.is_float else None
        if found is None or found[0] not in ("max", "min"):
            return store.value
        step = found[1]
        return replace(step, left=step.right, right=step.left)

    def _write(
        self, target: ElementAddress, indices: tuple[Expr, ...], value: Value, elements: Elements
    ) -> None:
        context, mask = elements.context, elements.mask()
        source = context.source
        if target.step is None:
            offsets = index(target.offset, context)
            self.out.append(Scatter(target.base, offsets, value, mask, source))
            return
        if mask is not None and target.private(context.count):
            # A select keeps the element in a register, where a masked store would force memory.
            # An element of the padding of a row is never read: its old value need not be kept.
            if not skips_only_padding(target.buffer, indices, context):
                value = Select(mask, value, elements.load(target))
            mask = None
        stride = None if target.contiguous or context.lanes is None else target.step
        address = Address(target.base, target.offset, target.alignment)
        self.out.append(Store(address, value, stride, mask, source))

    def _store_uniform(
        self, store: loop.Store, target: ElementAddress, context: LoweringContext
    ) -> None:
        """Store to an element that all lanes share: a reduction, else one store per lane."""
        if is_lane_reduction(store, context):
            elements = self._elements(context)
            elements.check(store.buffer, store.indices)
            value = reduce_lanes(store, elements)
            address = Address(target.base, target.offset, target.alignment)
            self.out.append(Store(address, value, None, None, context.source))
            return
        self._store_by_lane(store, context)

    def _store_packed(
        self, store: loop.Store, target: ElementAddress, context: LoweringContext
    ) -> None:
        """Store whole bytes of packed elements; change the bits of other elements one by one."""
        elements, dtype = self._elements(context), store.buffer.dtype
        if context.lanes is None:
            elements.check(store.buffer, store.indices)
            value = elements.typed(store.value, dtype)
            byte, shift = elements.load_byte(target), index(target.shift, context)
            value = packed.inserted(byte, shift, value, dtype)
            address = Address(target.base, target.offset, 1)
            self.out.append(Store(address, value, None, elements.mask(), context.source))
        elif elements.mask() is None and packed.fills_bytes(target, context):
            elements.check(store.buffer, store.indices)
            value = widen(elements.typed(store.value, dtype), context.count)
            offset = substitute(target.offset, {context.lane_var: 0})
            address = Address(target.base, offset, 1)
            self.out.append(Store(address, packed.packed(value, dtype), source=context.source))
        else:
            self._store_by_lane(store, context)

    def _store_by_lane(self, store: loop.Store, context: LoweringContext) -> None:
        """Store the lanes of a vector one after the other."""
        vectors = self._bound
        for k in range(context.count):
            alone = context.lane(as_expr(k))
            guard = context.mask
            self._bound = {local: _extracted(value, k) for local, value in vectors.items()}
            self.statement(
                store if guard is TRUE else loop.If(_at(guard, context, k), store), alone
            )
        self._bound = vectors


def _extracted(value: Value, lane: int) -> Value:
    return value if lanes_of(value) == 1 else Extract(value, lane)


def _at(mask: Bool, context: LoweringContext, k: int) -> Bool:
    return mask if context.lanes is None else substitute(mask, {context.lanes.var: k})


def _has_vectors(body: loop.Stmt) -> bool:
    return any(isinstance(s, loop.For) and s.kind == "vectorized" for s in walk(body))


def _needs_scalars(nest: loop.For) -> bool:
    """Return whether a loop bound or a bound integer would differ per lane.

    Lanes that store to one element run one after the other, too, if they bind its value before.
    """
    common = {
        s.buffer
        for s in walk(nest.body)
        if isinstance(s, loop.Store) and all(nest.var not in i.free for i in s.indices)
    }
    bound = (s.value for s in walk(nest.body) if isinstance(s, loop.Bind))
    if common and any(
        isinstance(e, loop.Load) and e.buffer in common for v in bound for e in walk_element(v)
    ):
        return True
    for statement in walk(nest.body):
        if isinstance(statement, loop.For) and nest.var in statement.extent.free:
            return True
        if isinstance(statement, loop.Let):
            terms = (*statement.load.indices, statement.lower, statement.upper)
            if any(nest.var in t.free for t in terms):
                return True
    return False
