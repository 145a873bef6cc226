"""Cross-thread reductions: partial results per thread, then one combine step."""

from __future__ import annotations

from dataclasses import replace

from ...ir.analysis import (
    outermost_inside,
    reduction_of,
    tree_of,
    writes,
    writes_disjoint,
)
from ...ir.analysis.accesses import bindings_of, ranges_of
from ...ir.analysis.intervals import interval_of
from ...ir.analysis.scatter import scatter_updates
from ...ir.kernel_errors import KernelStatementError
from ...ir.loop.decompose import (
    Namer,
    Start,
    around,
    namer_of,
    reduction_position,
    reduction_variables,
    split_off,
    without_init,
)
from ...ir.loop.memory_scopes import COMMON
from ...ir.loop.nodes import (
    Bind,
    Block,
    Buffer,
    Element,
    For,
    If,
    Let,
    Load,
    Local,
    PrimFunc,
    Seq,
    Stmt,
    Store,
)
from ...ir.loop.reducers import Reducing, combined, same_operation
from ...ir.loop.regions import access_regions
from ...ir.loop.straight_line import joined
from ...ir.loop.thread_roles import ACROSS_THREADS, Atomic, Combined, Partial
from ...ir.loop.visit import loads, path_to, replace_statement, seq, stores, substitute_in, walk
from ...ir.symbolic import TRUE, Expr, Facts, Var, as_expr, const_value, free_vars, substitute
from ...target.gpus import TAGS, THREAD_AXES
from ...target.target import Target
from .lowering_pass import GPU, Pass
from .machine_dtypes import require_machine_dtype


class CombineCrossThreadReductions(Pass):
    """Reduce into a register per thread, then combine the partial results of the threads.

    Before::
        for k0 in range(n):
            for k1 in thread(32, "threadIdx.x"):
                block: C[i] = C[i] + A[i, k0 * 32 + k1], with init 0
    After::
        block: C_part[i] = 0
        for k0 in range(n):
            for k1 in thread(32, "threadIdx.x"):
                block: C_part[i] = C_part[i] + A[i, k0 * 32 + k1]
        across threadIdx.x: C[i] = C_part[i]

    Other blocks may update the same elements with the same operator inside the reduction, such as
    the rest of a partitioned loop; a declared reducer with several results has the same indices for
    all of them. The init is then a separate nest before the reduction, and the
    partial results are added to the element. If a block inside the reduction reads the element, the
    partial results are combined before it, in each iteration of the loops around both.

    If threads of other axes would combine partial results of one element, as those of an axis that
    iterates parts of both, each thread adds its terms atomically instead.

    A loop that binds a spatial iteration variable, too, as in ``spatial(i + k), reduce(k)``, is not
    combined: its threads update different elements.
    """

    targets = GPU

    def run(self, func: PrimFunc, target: Target) -> PrimFunc:
        """Combine every reduction whose reduction loops are bound to threads."""
        del target
        _check_mixed_loops(func)
        while (block := _next(func.body)) is not None:
            func = _combined(func, block)
        return func


def _next(body: Stmt) -> Block | None:
    blocks = (s for s in walk(body) if isinstance(s, Block))
    reducing = (b for b in blocks if not _is_done(b) and any(v.kind == "reduce" for v in b.iters))
    return next((b for b in reducing if _axes(b, around(body, b))), None)


def _is_done(block: Block) -> bool:
    return isinstance(block.threads, (*ACROSS_THREADS, Atomic))


def _axes(block: Block, path: tuple[Stmt, ...]) -> tuple[str, ...]:
    """Return the thread axes whose loops bind reduction variables of a block only."""
    reducing = _bound(block, reduce=True) - _bound(block, reduce=False)
    found = {s.thread for s in path if isinstance(s, For) and s.var in reducing}
    return tuple(axis for axis in THREAD_AXES if axis in found)


def _bound(block: Block, *, reduce: bool) -> frozenset[Var]:
    """Return the variables in the bindings of the reduction or of the other variables."""
    chosen = (v for v in block.iters if (v.kind == "reduce") is reduce)
    return frozenset[Var]().union(*(free_vars(v.binding) for v in chosen))


def repeated_part(block: Block, path: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return the statements around a block from the first loop of its reduction on.

    The loops among them that bind spatial iteration variables are repeated after the reduction, to
    combine the partial results of each element.
    """
    return path[reduction_position(path, block) :]


def spatial_loops(block: Block, path: tuple[Stmt, ...]) -> list[For]:
    """Return the loops of a path that bind spatial iteration variables of a block."""
    spatial = _bound(block, reduce=False)
    return [s for s in path if isinstance(s, For) and s.var in spatial]


def _check_mixed_loops(func: PrimFunc) -> None:
    """Check that threads of a reduction with an init that bind its elements, too, do not share."""
    for block in (s for s in walk(func.body) if isinstance(s, Block) and s.init is not None):
        mixed = _bound(block, reduce=True) & _bound(block, reduce=False)
        if not mixed or _is_done(block):
            continue
        tree = tree_of(func)
        for loop in around(func.body, block):
            if not isinstance(loop, For) or loop.thread not in TAGS or loop.var not in mixed:
                continue
            written = [a.buffer for a in writes(block) if a.buffer.scope in COMMON]
            if not all(writes_disjoint(tree, loop, block, b) for b in written):
                raise KernelStatementError(
                    f"loop {loop.var.name!r} is bound to {loop.thread} and binds a reduction and "
                    f"another iteration variable of block {block.name!r}, so some of its threads "
                    "update the same element",
                    where=f"block {block.name!r} of function {func.name!r}",
                    hint="bind a loop that binds only one of them",
                    parts=(loop.var.name, block.name),
                )


def _check_combined_once(func: PrimFunc, block: Block, path: tuple[Stmt, ...]) -> None:
    """Check that the loops that the combination repeats reach each element once.

    The total replaces the partial results, so a second combination would add it several times.
    Loops that are summed in a spatial binding, such as ``i`` and ``k`` of ``spatial(i + k)``, reach
    an element in several iterations of both.
    """
    reducing = _bound(block, reduce=True) | reduction_variables(path, block)
    mixed = reducing & _bound(block, reduce=False)
    for loop in path:
        if not isinstance(loop, For) or loop.thread in TAGS or loop.var not in mixed:
            continue
        tree = tree_of(func)
        if not all(writes_disjoint(tree, loop, block, a.buffer) for a in writes(block)):
            raise KernelStatementError(
                f"loop {loop.var.name!r} iterates the reduction and a spatial iteration variable "
                f"of block {block.name!r}, whose reduction is bound to threads, so their partial "
                "results would be combined more than once per element",
                where=f"block {block.name!r} of function {func.name!r}",
                hint="split the loop, so that each loop binds only one of them",
                parts=(loop.var.name, block.name),
            )


def _combined(func: PrimFunc, block: Block) -> PrimFunc:
    found = reduction_of(block)
    if found is None or not found.reducer.commutative:
        raise KernelStatementError(
            f"a reduction loop of block {block.name!r} is bound to threads, but the body of the "
            "block is not a commutative reduction update C = C op value",
            where=f"block {block.name!r} of function {func.name!r}",
            hint="bind a loop of a spatial iteration variable instead",
            parts=(block.name,),
        )
    results = tuple(target.buffer for target in found.targets)
    for result in results:
        require_machine_dtype(
            result, block, func.name, "exchange between threads",
            "an exchange of words with conversions",
        )  # fmt: skip
    op = None if found.declared is not None else found.reducer.name
    names, path = namer_of(func), around(func.body, block)
    whole = repeated_part(block, path)
    inner = min((_unobserved(block, whole, b, found) for b in results), key=len)
    others = any(_other_accesses(block, whole[0], b) for b in results)
    if block.init is not None and (inner[0] is not whole[0] or others):
        return replace(func, body=without_init(func.body, block, names))
    parts = tuple(
        Buffer(
            names.mint(),
            names.fresh(f"{target.buffer.name}_part"),
            _shape(target, block, path_to(func.body, block)[:-1]),
            target.dtype,
            "local",
        )
        for target in found.targets
    )
    _check_combined_once(func, block, inner)
    axes = _axes(block, path)
    total = _total(block, found, parts)
    role = Combined(op or "", tuple(part.name for part in parts), axes)
    last = _last(total, _path_to(total, inner, block), names, role)
    if not _is_alone(func, inner[0], last, results):
        if block.init is not None:
            return replace(func, body=without_init(func.body, block, names))
        return replace(
            func, body=replace_statement(func.body, block, _atomic(func, block, results))
        )
    own = _partial(block, found, parts)
    start = _first(own, _path_to(own, inner, block), names)
    new = seq(start, replace_statement(inner[0], block, replace(own, init=None)), last)
    body = replace_statement(func.body, inner[0], new)
    return replace(func, body=body, buffers=(*func.buffers, *parts))


def _shape(target: Load, block: Block, path: tuple[Stmt, ...]) -> tuple[Expr, ...]:
    """Return the shape of partial results: all iterations of the loops initialize an element.

    The path contains the blocks around the block, whose iteration variables its indices may use.

    A partial last tile has more iterations than the result has elements.
    """
    ranges = ranges_of(s for s in path if isinstance(s, For))
    blocks = [block, *(s for s in reversed(path) if isinstance(s, Block))]
    shape: list[Expr] = []
    for index, dim in zip(target.indices, target.buffer.shape, strict=True):
        bound = index
        for inner in blocks:  # the variables of an outer block are bound to loops around it
            bound = substitute(bound, bindings_of(inner))
        found = interval_of(bound, ranges, Facts())
        size = const_value(dim)
        stop = None if found is None else const_value(found.stop)
        shape.append(dim if size is None or stop is None else as_expr(max(size, stop)))
    return tuple(shape)


def _atomic(func: PrimFunc, block: Block, results: tuple[Buffer, ...]) -> Block:
    """Return a reduction whose threads add each term atomically."""
    if not scatter_updates(block).keys() >= set(results):
        raise KernelStatementError(
            f"several threads would combine partial results of one element of {results[0].name!r}, "
            "because a loop that is bound to threads iterates parts of the reduction and of the "
            "elements, and an update of several results is not atomic",
            where=f"block {block.name!r} of function {func.name!r}",
            hint="bind a loop that iterates only one of them",
            parts=(block.name, results[0].name),
        )
    return replace(block, threads=Atomic(tuple(result.name for result in results)))


def _is_alone(func: PrimFunc, whole: Stmt, last: Stmt, results: tuple[Buffer, ...]) -> bool:
    """Return whether threads combine the partial results of different elements.

    The combination is executed even if the reduction has no iterations. Facts of an iteration, such
    as that a size is positive, therefore do not decide which elements the threads update.
    """
    alone = replace(func, body=replace_statement(func.body, whole, last))
    tree = tree_of(alone)
    total = next(s for s in walk(last) if isinstance(s, Block) and isinstance(s.threads, Combined))
    loops = [s for s in tree.ancestors(total) if isinstance(s, For) and s.thread in THREAD_AXES]
    shared = [result for result in results if result.scope in COMMON]
    pairs = [(loop, outermost_inside(tree, loop, total)) for loop in loops]
    return all(writes_disjoint(tree, *pair, result) for pair in pairs for result in shared)


def _unobserved(
    block: Block, path: tuple[Stmt, ...], result: Buffer, reduced: Reducing
) -> tuple[Stmt, ...]:
    """Return the outermost part of a reduction in which other statements only update the result."""
    axes = _axes(block, path)
    for position, loop in enumerate(path):
        if not isinstance(loop, For):
            continue
        others = _other_accesses(block, loop, result)
        found = [s for s in others if not _commutes(s, result, reduced)]
        if not found:
            return path[position:]
        if loop.thread in axes:
            break
    else:
        return path
    raise KernelStatementError(
        f"the threads of loop {loop.var.name!r} reduce into {result.name!r} in block "
        f"{block.name!r}, but {_named(found[0])} accesses {result.name!r} inside this loop",
        where=f"block {block.name!r}",
        hint="bind a loop that contains only one of them",
        parts=(block.name, loop.var.name, result.name),
    )


def _other_accesses(block: Block, root: Stmt, result: Buffer) -> list[Block | Let]:
    """Return the other blocks and integers that access the result of a reduction in a nest."""
    found: list[Block | Let] = []
    for other in walk(root):
        match other:
            case Block() if other is not block and _accesses(other, result):
                found.append(other)
            case Let(load=Load(buffer=buffer)) if buffer is result:
                found.append(other)
            case _:
                pass
    return found


def _accesses(block: Block, buffer: Buffer) -> bool:
    return any(a.buffer is buffer for a in (*loads(block), *stores(block)))


def _commutes(other: Block | Let, result: Buffer, reduced: Reducing) -> bool:
    """Return whether a statement only updates a result by the operation of a reduction."""
    if not isinstance(other, Block):
        return False
    if reduced.declared is None:
        return scatter_updates(other).get(result) == reduced.reducer.name
    found = reduction_of(other)
    return (
        other.init is None
        and found is not None
        and found.declared is not None
        and same_operation(found.declared, reduced.declared)
        and [t.buffer for t in found.targets] == [t.buffer for t in reduced.targets]
        and all(len({t.indices for t in x.targets}) == 1 for x in (found, reduced))
    )


def _named(statement: Block | Let) -> str:
    if isinstance(statement, Let):
        return f"integer {statement.var.name!r}"
    return f"block {statement.name!r}"


def _partial(block: Block, found: Reducing, parts: tuple[Buffer, ...]) -> Block:
    """Return the block that reduces into the thread's partial results."""
    pairs = zip(parts, found.targets, strict=True)
    own = replace(found, targets=tuple(Load(part, t.indices) for part, t in pairs))
    body = own.body()
    return replace(
        block,
        body=body,
        init=own.starts(),
        writes=access_regions(body)[1],
        threads=Partial(),
    )


def _path_to(new: Block, path: tuple[Stmt, ...], old: Block) -> tuple[Stmt, ...]:
    """Return a path to a block that replaces another one; it decides which branches it is in."""
    return path_to(replace_statement(path[0], old, new), new)[:-1]


def _first(own: Block, path: tuple[Stmt, ...], names: Namer) -> Stmt:
    """Return the nest that stores the init of the partial results.

    It has no predicate: every thread takes part in the combination, so every part needs a value.
    """
    made = _split(own, path, names)
    bare = replace(made.block, predicate=TRUE)
    return bare if made.nest is made.block else replace_statement(made.nest, made.block, bare)


def _split(block: Block, path: tuple[Stmt, ...], names: Namer) -> Start:
    made = split_off(block, path, names)
    if made is None:
        raise KernelStatementError(
            f"the extents of the loops around block {block.name!r} depend on its reduction loops, "
            "so the partial results of its threads cannot be combined",
            where=f"block {block.name!r}",
            hint="bind a reduction loop that no other loop around the block depends on",
            parts=(block.name,),
        )
    return made


def _total(block: Block, found: Reducing, parts: tuple[Buffer, ...]) -> Block:
    """Return the block with an ``init`` that combines its init with the total of the parts."""
    made = [] if block.init is None else list(stores(block.init))
    alone = {s.buffer: s.value for s in made if [x.buffer for x in made].count(s.buffer) == 1}
    exact = {(s.buffer, s.indices): s.value for s in made}
    pairs = tuple(zip(found.targets, parts, strict=True))
    totals = tuple(Load(part, target.indices) for target, part in pairs)
    starts = tuple(exact.get((t.buffer, t.indices), alone.get(t.buffer, t)) for t in found.targets)
    origins = found.origins
    named: list[Bind] = []
    if starts == found.reducer.identities:
        values: tuple[Element, ...] = totals
    else:
        values = combined(found.reducer, starts, totals)
        if block.init is not None:
            named = [replace(s, body=Seq(())) for s in walk(block.init) if isinstance(s, Bind)]
    locals_ = [Local(f"total_{k}", value.dtype) for k, value in enumerate(values)]
    final = [
        Store(target.buffer, target.indices, value, origins)
        for target, value in zip(found.targets, locals_ if len(values) > 1 else values, strict=True)
    ]
    binds = [Bind(name, value, Seq(())) for name, value in zip(locals_, values, strict=True)]
    init = joined((*named, *(binds if len(values) > 1 else ()), *final))
    return replace(block, init=init)


def _last(block: Block, path: tuple[Stmt, ...], names: Namer, role: Combined) -> Stmt:
    """Return the nest that combines the parts and writes the result."""
    made = _split(block, path, names)
    shell = made.block
    body = substitute_in(shell.body, {v.var: v.binding for v in shell.iters})
    guarded = body if shell.predicate is TRUE else If(shell.predicate, body)
    new = replace(
        shell,
        iters=(),
        reads=(),
        writes=(),
        predicate=TRUE,
        body=guarded,
        annotations=(),
        reducer=None if role.op else block.reducer,
        threads=role,
    )
    return _without_lanes(replace_statement(made.nest, shell, new))


def _without_lanes(nest: Stmt) -> Stmt:
    """Return a nest with serial instead of vectorized loops: threads combine single elements."""
    if not isinstance(nest, For):
        return nest
    kind = "serial" if nest.kind == "vectorized" else nest.kind
    return replace(nest, kind=kind, body=_without_lanes(nest.body))
