"""Decomposition of reductions into an init nest and an update nest.

The decomposition defines the semantics of a reduction block: ``init`` runs for every spatial
iteration before the outermost reduction loop, even if the reduction domain is empty. An empty sum
is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from ..identity import Uid, UidSource, fresh_name
from ..symbolic import (
    Add,
    Bool,
    Expr,
    Mul,
    Var,
    all_of,
    conjuncts,
    const_value,
    free_vars,
    negate,
    substitute,
    var,
)
from .nodes import Block, For, If, IterVar, Let, PrimFunc, Stmt
from .regions import access_regions
from .visit import path_to, replace_statement, seq, substitute_in, walk


@dataclass(frozen=True, slots=True)
class Namer:
    """A source of uids and names for new nodes."""

    mint: Callable[[], Uid]
    fresh: Callable[[str], str]

    def variable(self, base: str, extent: Expr) -> Var:
        """Create a variable with the range ``[0, extent)``."""
        size = const_value(extent)
        upper = None if size is None else max(size - 1, 0)
        return var(self.fresh(base), lower=0, upper=upper)


@dataclass(frozen=True, slots=True)
class Start:
    """The init of a block as a separate nest.

    Parameters
    ----------
    nest : Stmt
        ``block`` and the spatial loops around it.
    block : Block
        The block that stores the init values.
    """

    nest: Stmt
    block: Block


def split_off(block: Block, path: tuple[Stmt, ...], names: Namer) -> Start | None:
    """Create the init nest of a reduction block.

    Parameters
    ----------
    block : Block
        A block with an init.
    path : tuple of Stmt
        The statements around the block, outermost first, starting at the statement before which
        the nest will be inserted. Loops that bind spatial iteration variables are copied, other
        loops are omitted. Conditions on spatial iterations become the predicate of the init;
        conditions on the omitted loops do not keep it from running.
    names : Namer
        The names of the new nodes.

    Returns
    -------
    Start or None
        None if the extent of a copied loop depends on the variable of an omitted loop, or a spatial
        iteration variable on an integer that is read from memory inside the path.
    """
    spatial = _bound_by(block, reduce=False)
    loops = [s for s in path if isinstance(s, For)]
    dropped = {x.var for x in loops if x.var not in spatial}
    dropped |= {s.var for s in path if isinstance(s, Let)}
    dropped |= _bound_by(block, reduce=True) - spatial
    if not dropped.isdisjoint(spatial):
        return None
    renamed: dict[Var, Var] = {}
    shells: list[For] = []
    parts: list[Bool] = [*conjuncts(block.predicate)]
    for outer, inner in pairwise((*path, block)):
        match outer:
            case For(var=variable, extent=extent) if variable in spatial:
                if not free_vars(extent).isdisjoint(dropped):
                    return None
                size = substitute(extent, renamed)
                renamed[variable] = names.variable(f"{variable.name}_init", size)
                shells.append(replace(outer, uid=names.mint(), var=renamed[variable], extent=size))
            case If(condition=condition, then=then):
                parts += conjuncts(condition if inner is then else negate(condition))
            case _:
                pass
    start = _init_block(block, renamed, _kept(block, parts, dropped), names)
    nest: Stmt = start
    for shell in reversed(shells):
        nest = replace(shell, body=nest)
    return Start(nest, start)


def _bound_by(block: Block, *, reduce: bool) -> frozenset[Var]:
    """Return the variables in the bindings of the reduction or of the other variables."""
    chosen = (v for v in block.iters if (v.kind == "reduce") is reduce)
    return frozenset[Var]().union(*(free_vars(v.binding) for v in chosen))


def _init_block(block: Block, renamed: Mapping[Var, Var], predicate: Bool, names: Namer) -> Block:
    fresh: dict[Var, Expr] = {}
    iters: list[IterVar] = []
    for item in block.iters:
        if item.kind == "reduce":
            continue
        variable = names.variable(f"{item.var.name}_init", item.extent)
        fresh[item.var] = variable
        iters.append(replace(item, var=variable, binding=substitute(item.binding, renamed)))
    init = block.init
    body = substitute_in(block.body if init is None else init, fresh)
    reads, writes = access_regions(body)
    return Block(
        names.mint(),
        names.fresh(f"{block.name}_init"),
        tuple(iters),
        reads,
        writes,
        body,
        predicate=substitute(predicate, renamed),
        origins=block.origins,
    )


def _kept(block: Block, parts: list[Bool], dropped: set[Var]) -> Bool:
    """Return the conditions on spatial iterations alone, with range checks where needed.

    A condition on the reduction does not keep the init from running.
    """
    kept = [p for p in parts if free_vars(p).isdisjoint(dropped)]
    mixed = [p for p in parts if not free_vars(p) <= dropped and p not in kept]
    if any(not free_vars(p).isdisjoint(free_vars(v.binding)) for p in mixed for v in block.iters):
        for item in block.iters:
            if item.kind != "reduce":
                kept += [item.binding >= 0, item.binding < item.extent]
    return all_of(*kept)


def decomposed(function: PrimFunc) -> PrimFunc:
    """Replace the init of every reduction block by a separate init nest.

    The reduction block keeps its update only. A block keeps its init if the loops of the init nest
    cannot be separated from its reduction loops.

    Examples
    --------
    >>> from ..dtype import f32
    >>> from .builder import Builder
    >>> b = Builder("total")
    >>> x, y = b.param("x", (8,), f32), b.param("y", (), f32, "out")
    >>> b.reduce(y, (8,), lambda k: b.load(x, k), name="sum")
    >>> [s.name for s in walk(decomposed(b.finish()).body) if isinstance(s, Block)]
    ['sum_init', 'sum']
    """
    pending = [s for s in walk(function.body) if isinstance(s, Block) and s.init is not None]
    if not pending:
        return function
    names = namer_of(function)
    body = function.body
    for block in pending:
        body = _without_init(body, block, names)
    return replace(function, body=body)


def decomposed_in(root: Stmt, path: Callable[[Block], tuple[Stmt, ...]]) -> Stmt:
    """Return a statement with the inits that run inside it as separate nests.

    Inits that run before the statement are omitted.

    Parameters
    ----------
    root : Stmt
        The statement, such as the body of a loop.
    path : callable
        Returns the statements between the nearest enclosing block and a block, outermost first.
    """
    pending = [s for s in walk(root) if isinstance(s, Block) and s.init is not None]
    names = Namer(lambda: 0, lambda base: base)
    new = root
    for block in pending:
        above = path(block)
        first = reduction_position(above, block)
        if root not in above or root in above[: first + 1] or root is block:
            new = _without_init(new, block, names)
        elif split_off(block, above[first:], names) is not None:
            new = replace_statement(new, block, replace(block, init=None))
    return new


def _without_init(body: Stmt, block: Block, names: Namer) -> Stmt:
    path = around(body, block)
    first = reduction_position(path, block)
    start = split_off(block, path[first:], names)
    if start is None:
        return body
    anchor = path[first] if first < len(path) else block
    update = replace(block, init=None)
    new = replace_statement(anchor, block, update)
    return replace_statement(body, anchor, seq(start.nest, new))


def reduction_position(path: tuple[Stmt, ...], block: Block) -> int:
    """Return the position of the first statement that iterates a reduction.

    Parameters
    ----------
    path : tuple of Stmt
        The statements between the nearest enclosing block and the block, outermost first.
    block : Block
        The block.

    Returns
    -------
    int
        The length of the path if no statement iterates the reduction.
    """
    reducing = reduction_variables(path, block)
    found = (k for k, s in enumerate(path) if isinstance(s, For | Let) and s.var in reducing)
    return next(found, len(path))


def reduction_variables(path: tuple[Stmt, ...], block: Block) -> frozenset[Var]:
    """Return the variables of the statements that iterate a reduction.

    Loops around an integer that is read from memory and bound to the reduction iterate it, too, and
    so do loops that are summed with a reduction loop in a spatial binding, ``spatial(i + k)``: each
    result has its terms in several iterations of both. The parameters are those of
    `reduction_position`.
    """
    spatial, reducing = _bound_by(block, reduce=False), _bound_by(block, reduce=True)
    for statement in reversed(path):
        if isinstance(statement, Let) and statement.var in reducing:
            read = (free_vars(index) for index in statement.load.indices)
            reducing |= frozenset[Var]().union(*read) - spatial
    for item in block.iters:
        if item.kind != "reduce" and not _summands(item.binding).isdisjoint(reducing):
            reducing |= free_vars(item.binding)
    return reducing


def _summands(term: Expr) -> frozenset[Var]:
    """Return the variables that occur in a term outside of quotients and remainders."""
    match term:
        case Var():
            return frozenset({term})
        case Add(terms=parts):
            return frozenset[Var]().union(*(_summands(part) for part, _ in parts))
        case Mul(factors=factors):
            return frozenset[Var]().union(*(_summands(part) for part in factors))
        case _:
            return frozenset()


def starts_before_reduction(body: Stmt, block: Block) -> bool:
    """Return whether the init of a block runs before its reduction loops.

    If it cannot be separated, it runs in the first iteration of these loops, and never if there are
    none.
    """
    return _without_init(body, block, Namer(lambda: 0, lambda base: base)) is not body


def around(body: Stmt, block: Block) -> tuple[Stmt, ...]:
    """Return the statements between the nearest enclosing block and a block, outermost first."""
    path = path_to(body, block)[:-1]
    inner = [k for k, s in enumerate(path) if isinstance(s, Block)]
    return path[inner[-1] + 1 :] if inner else path


def namer_of(function: PrimFunc) -> Namer:
    """Return a namer whose uids and names are unused in a function."""
    taken: set[str] = {function.name, *(b.name for b in function.buffers)}
    taken |= {b.name for b in function.buffer_params} | {v.name for v in function.scalar_params}
    largest = max((b.uid for b in (*function.buffers, *function.buffer_params)), default=0)
    for statement in walk(function.body):
        if isinstance(statement, For | Let):
            taken.add(statement.var.name)
        if isinstance(statement, Block):
            taken |= {statement.name, *(v.var.name for v in statement.iters)}
        if isinstance(statement, For | Block):
            largest = max(largest, statement.uid)
    source = UidSource()

    def mint() -> Uid:
        return largest + source()

    def fresh(base: str) -> str:
        chosen = fresh_name(base, taken)
        taken.add(chosen)
        return chosen

    return Namer(mint, fresh)
