"""Decomposition of reductions into an init nest and an update nest.

The decomposition defines the semantics of a reduction block: ``init`` runs for every spatial
iteration before the outermost reduction loop, even if the reduction domain is empty. An empty sum
is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ..identity import Uid, UidSource, fresh_name
from ..symbolic import (
    Bool,
    Expr,
    Var,
    all_of,
    conjuncts,
    const_value,
    free_vars,
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
        loops are omitted.
    names : Namer
        The names of the new nodes.

    Returns
    -------
    Start or None
        None if the extent of a copied loop depends on the variable of an omitted loop.
    """
    spatial = frozenset[Var]().union(
        *(free_vars(v.binding) for v in block.iters if v.kind != "reduce")
    )
    loops = [s for s in path if isinstance(s, For)]
    dropped = {x.var for x in loops if x.var not in spatial}
    renamed: dict[Var, Var] = {}
    wrappers: list[Stmt] = []
    for outer in path:
        match outer:
            case For(var=variable, extent=extent) if variable in spatial:
                if not free_vars(extent).isdisjoint(dropped):
                    return None
                size = substitute(extent, renamed)
                renamed[variable] = names.variable(f"{variable.name}_init", size)
                shell = replace(outer, uid=names.mint(), var=renamed[variable], extent=size)
                wrappers.append(shell)
            case If(condition=condition) if free_vars(condition).isdisjoint(dropped):
                wrappers.append(If(substitute(condition, renamed), outer.then))
            case If() | Let():
                return None
            case _:
                pass
    start = _init_block(block, renamed, dropped, names)
    nest: Stmt = start
    for wrapper in reversed(wrappers):
        match wrapper:
            case For():
                nest = replace(wrapper, body=nest)
            case If(condition=condition):
                nest = If(condition, nest)
            case _:
                pass
    return Start(nest, start)


def _init_block(block: Block, renamed: Mapping[Var, Var], dropped: set[Var], names: Namer) -> Block:
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
    predicate = _kept(block, dropped)
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


def _kept(block: Block, dropped: set[Var]) -> Bool:
    """Return the predicate restricted to spatial iterations, with range checks where needed."""
    parts = conjuncts(block.predicate)
    kept = [p for p in parts if free_vars(p).isdisjoint(dropped)]
    mixed = [p for p in parts if not free_vars(p) <= dropped and p not in kept]
    if any(not free_vars(p).isdisjoint(free_vars(v.binding)) for p in mixed for v in block.iters):
        kept += [v.binding < v.extent for v in block.iters if v.kind != "reduce"]
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


def _without_init(body: Stmt, block: Block, names: Namer) -> Stmt:
    path = around(body, block)
    reducing = frozenset[Var]().union(
        *(free_vars(v.binding) for v in block.iters if v.kind == "reduce")
    )
    first = next(
        (k for k, s in enumerate(path) if isinstance(s, For) and s.var in reducing), len(path)
    )
    start = split_off(block, path[first:], names)
    if start is None:
        return body
    anchor = path[first] if first < len(path) else block
    update = replace(block, init=None)
    new = replace_statement(anchor, block, update)
    return replace_statement(body, anchor, seq(start.nest, new))


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
