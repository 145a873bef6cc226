"""Conversion of a perfect nest around a block into one block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ....ir.analysis import Interval, Tree, with_regions
from ....ir.loop.decompose import Namer, split_off
from ....ir.loop.nodes import Block, For, IterKind, IterVar, Let, Stmt
from ....ir.symbolic import (
    Expr,
    SymInt,
    Var,
    all_of,
    as_expr,
    conjuncts,
    free_vars,
    substitute,
    to_text,
)
from ...domain_checks import iterates_reduction
from ...edit import Edit
from ...handles import LoopRef, block_ref, refs_of
from ...problem import Problem
from ...requirement import Requirement
from ...state import State


@dataclass(frozen=True, slots=True)
class Chain:
    """A perfect nest of loops and the block that is its body."""

    loops: tuple[For, ...]
    block: Block

    @property
    def variables(self) -> frozenset[Var]:
        """The variables of the loops."""
        return frozenset(loop.var for loop in self.loops)


def chain_below(loop: For) -> Chain | Stmt:
    """Return the perfect nest of a loop, or the first statement that is not a loop or block."""
    loops: list[For] = []
    below: Stmt = loop
    while isinstance(below, For):
        loops.append(below)
        below = below.body
    return Chain(tuple(loops), below) if isinstance(below, Block) else below


def outside(tree: Tree, chain: Chain) -> dict[Var, Interval] | Let | IterVar:
    """Return the outer variables that the block of a chain depends on, with their intervals.

    Return the ``Let`` instead if the block depends on an integer read from memory whose range
    depends on a loop or on another such integer, and has no constant bounds. Return the iteration
    variable if its block does not contain the variables of its extent.
    """
    used = frozenset[Var]().union(
        *(free_vars(v.binding) | free_vars(v.extent) for v in chain.block.iters),
        free_vars(chain.block.predicate),
        *(free_vars(x.extent) for x in chain.loops),
    )
    found: dict[Var, Interval] = {}
    for above in tree.ancestors(chain.loops[0] if chain.loops else chain.block):
        match above:
            case For(var=variable, extent=extent) if variable in used:
                found = {variable: Interval.full(extent), **found}
            case Let(var=variable) if variable in used:
                interval = _symbolic_range(above, tree.symbols())
                if interval is None:
                    return above
                found = {variable: interval, **found}
            case Block(iters=iters):
                inner = _extents_inside(above)
                visible = tree.symbols() | inner.keys()
                for item in iters:
                    if item.var in used and not free_vars(inner[item.var]) <= visible:
                        return item
                return {v: Interval.full(e) for v, e in inner.items() if v in used} | found
            case _:
                pass
    return found


def _extents_inside(block: Block) -> dict[Var, Expr]:
    """Return the extents of the iteration variables of a block as terms over these variables."""
    names: dict[Var, SymInt] = {v.binding: v.var for v in block.iters if isinstance(v.binding, Var)}
    return {v.var: substitute(v.extent, names) for v in block.iters}


def _symbolic_range(let: Let, symbols: frozenset[Var]) -> Interval | None:
    """Return the range of a loaded integer over the symbols of the function, or None."""
    variable = let.var
    lower = let.lower if free_vars(let.lower) <= symbols else variable.lower
    upper: Expr | int | None = let.upper
    if not free_vars(let.upper) <= symbols:
        upper = None if variable.upper is None else variable.upper + 1
    if lower is None or upper is None:
        return None
    return Interval(as_expr(lower), as_expr(upper) - lower, exhaustive=False)


def kind_of_variable(chain: Chain, variable: Var) -> frozenset[IterKind]:
    """Return the kinds of the iteration variables that an outer variable binds."""
    return frozenset(v.kind for v in chain.block.iters if variable in free_vars(v.binding))


def chain_problems(
    state: State, ref: LoopRef, nest: Requirement, kinds: Requirement
) -> Iterator[Problem]:
    """Yield a problem if the loops below a loop cannot become one block.

    ``nest`` and ``kinds`` are the two requirements.
    """
    loop, tree = state.loop(ref), state.tree(ref.function)
    chain = chain_below(loop)
    if not isinstance(chain, Chain):
        blocks = tuple(tree.blocks_in(loop))
        names = [b.name for b in blocks]
        yield Problem(
            nest,
            f"the loops below {loop.var.name!r} are not a perfect nest around a single block; "
            f"blocks inside: {', '.join(names) or 'none'}",
            (ref, *refs_of(ref.function, *blocks)),
            {"blocks": len(names)},
        )
        return
    found = outside(tree, chain)
    if isinstance(found, Let):
        yield Problem(
            kinds,
            f"block {chain.block.name!r} depends on {found.var.name!r}, which is read from memory "
            "and whose range depends on a loop or on another such integer",
            (ref, block_ref(ref.function, chain.block)),
        )
        return
    if isinstance(found, IterVar):
        around = next(b for b in tree.ancestors(loop) if isinstance(b, Block))
        yield Problem(
            kinds,
            f"block {chain.block.name!r} depends on {found.var.name!r}, whose extent "
            f"{to_text(found.extent)} is known only outside of block {around.name!r}",
            (ref, *refs_of(ref.function, chain.block, around)),
            {"extent": to_text(found.extent)},
        )
        return
    for variable in found:
        fed = kind_of_variable(chain, variable)
        if len(fed) > 1:
            yield Problem(
                kinds,
                f"outer variable {variable.name!r} binds {' and '.join(sorted(fed))} iteration "
                f"variables of block {chain.block.name!r}; expected one kind",
                (ref, block_ref(ref.function, chain.block)),
                {"kinds": ", ".join(sorted(fed))},
            )


def blockized(edit: Edit, chain: Chain) -> Block:
    """Return the block whose body is the loops of a chain.

    Its iteration variables are the outer variables that the inner block depends on. The terms of
    the predicate without loop variables of the chain move to the new block.
    """
    around = outside(edit.tree, chain)
    if isinstance(around, Let | IterVar):
        raise TypeError(f"the range of {around.var.name!r} depends on a loop")
    made = {v: edit.loop_var(f"v{v.name}", values.extent) for v, values in around.items()}
    own: dict[Var, SymInt] = {v: made[v] + values.start for v, values in around.items()}
    iters = tuple(
        IterVar(made[v], values.extent, _only_kind(kind_of_variable(chain, v)), v - values.start)
        for v, values in around.items()
    )
    parts = conjuncts(chain.block.predicate)
    hoisted = [p for p in parts if free_vars(p).isdisjoint(chain.variables)]
    kept = all_of(*(p for p in parts if p not in hoisted))
    inner = _renamed(replace(chain.block, predicate=kept), own)
    loops = tuple(replace(x, extent=substitute(x.extent, own)) for x in chain.loops)
    init, inner = _moved_init(edit, loops, inner, iters)
    body: Stmt = inner
    for loop in reversed(loops):
        body = replace(loop, body=body)
    outer = Block(
        edit.mint(),
        edit.fresh(f"{inner.name}_o"),
        iters,
        (),
        (),
        body,
        init,
        all_of(*hoisted),
        origins=inner.origins,
    )
    return with_regions(outer)


def _only_kind(kinds: frozenset[IterKind]) -> IterKind:
    kind: IterKind
    for kind in kinds:
        return kind
    return "spatial"


def _renamed(block: Block, names: Mapping[Var, SymInt]) -> Block:
    iters = tuple(
        replace(v, binding=substitute(v.binding, names), extent=substitute(v.extent, names))
        for v in block.iters
    )
    return replace(block, iters=iters, predicate=substitute(block.predicate, names))


def _moved_init(
    edit: Edit, loops: tuple[For, ...], inner: Block, iters: tuple[IterVar, ...]
) -> tuple[Stmt | None, Block]:
    """Move the init to the new block if that block has reduction iteration variables."""
    if inner.init is None or all(v.kind != "reduce" for v in iters):
        return None, inner
    outer = frozenset(v.var for v in iters if v.kind == "reduce")
    start = split_off(inner, loops, Namer(edit.mint, edit.fresh), omitted=outer)
    if start is None:
        raise TypeError(f"the init of {inner.name!r} cannot be decomposed")
    return start.nest, with_regions(replace(inner, init=None))


def init_problems(state: State, ref: LoopRef, requirement: Requirement) -> Iterator[Problem]:
    """Yield a problem if the init of the block cannot be moved out of the loops."""
    chain = chain_below(state.loop(ref))
    if not isinstance(chain, Chain) or chain.block.init is None:
        return
    tree = state.tree(ref.function)
    for outer in tree.loops_above(chain.loops[0]):
        kinds = kind_of_variable(chain, outer.var)
        if "reduce" not in kinds and iterates_reduction(tree, chain.block, outer):
            yield Problem(
                requirement,
                f"results of block {chain.block.name!r} get terms in several iterations of loop "
                f"{outer.var.name!r}, which is outside of the new block",
                (ref, *refs_of(ref.function, outer, chain.block)),
            )
            return
    edit, around = Edit(state, ref.function), outside(tree, chain)
    found = around if isinstance(around, dict) else {}
    outer = frozenset(v for v in found if "reduce" in kind_of_variable(chain, v))
    if split_off(chain.block, chain.loops, Namer(edit.mint, edit.fresh), omitted=outer) is None:
        yield Problem(
            requirement,
            f"the init of block {chain.block.name!r} cannot be duplicated for only the spatial "
            f"loops below {state.loop(ref).var.name!r}: an extent depends on another of the loops, "
            "or on an outer loop of the reduction",
            (ref, block_ref(ref.function, chain.block)),
        )
