"""Multiplicity of the instances of a block.

An instance is one execution of a block for one value of its iteration variables. Repeating an
instance changes the result of an update, ``C[i] += ...``, and of every step that moves one.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

from ..loop.nodes import Block, For, IterVar, Stmt
from ..symbolic import Expr, Facts, Var, const_value, free_vars, is_proved
from .enclosing import Enclosing, enclosing, used_vars
from .intervals import Interval
from .inversion import Equation, invert
from .iter_map import injective_in
from .tree import Tree


class Multiplicity(enum.Enum):
    """The number of times that each instance of a block runs."""

    ONCE = "once"
    """At most once: the iteration variables determine the iterations of all loops."""
    REPEATED = "repeated"
    """More than once if a loop that binds no iteration variable has more than one iteration."""
    UNKNOWN = "unknown"
    """The iteration variables do not provably determine the iterations."""


@dataclass(frozen=True, slots=True)
class Instances:
    """The multiplicity of the instances of a block.

    Parameters
    ----------
    multiplicity : Multiplicity
        How often each instance runs.
    loops : tuple of For
        The loops that may repeat an instance, outermost first; empty for ``ONCE``.
    reason : str
        Why an instance may run more than once; empty for ``ONCE``.
    """

    multiplicity: Multiplicity
    loops: tuple[For, ...] = ()
    reason: str = ""

    @property
    def once(self) -> bool:
        """Whether each instance runs at most once."""
        return self.multiplicity is Multiplicity.ONCE


ONCE: Final = Instances(Multiplicity.ONCE)


def instances(tree: Tree, block: Block, within: Stmt | None = None) -> Instances:
    """Return how often the enclosing statements run each instance of a block.

    Each instance runs at most once if the values of its iteration variables determine the
    iteration of every loop around the block. Integers read from memory are arbitrary: two
    iterations may read the same one.

    Parameters
    ----------
    tree : Tree
        The index of the function.
    block : Block
        The block.
    within : Stmt or None
        Count during one execution of this statement, which may be a loop around the block; by
        default during one execution of the enclosing block or function. For one iteration of a
        loop, pass the body of the loop.

    Returns
    -------
    Instances
        The multiplicity; results are cached.

    Examples
    --------
    >>> from ..script import parse
    >>> from .tree import tree_of
    >>> tree = tree_of(
    ...     parse('''
    ... @prim_func
    ... def f(x: Buffer[(8,), f32], y: Out[(1,), f32]):
    ...     for r in range(3):
    ...         for k in range(8):
    ...             with block("sum"):
    ...                 vk = reduce(k)
    ...                 with init(): y[0] = 0.0
    ...                 y[0] += x[vk]
    ... ''').prims[0]
    ... )
    >>> (block,) = tree.outermost_blocks()
    >>> found = instances(tree, block)
    >>> found.multiplicity.name, [loop.var.name for loop in found.loops]
    ('REPEATED', ['r'])
    >>> instances(tree, block, within=found.loops[0].body).once
    True
    """
    key = ("instances", block, within)
    known = tree.memo.get(key)
    if not isinstance(known, Instances):
        known = tree.memo[key] = _instances(tree, block, within)
    return known


def _instances(tree: Tree, block: Block, within: Stmt | None) -> Instances:
    found = enclosing(tree, block, within)
    facts = tree.facts(block.body)
    left = found.extents.keys() - determined(found, found.iters, facts)
    left = {v for v in left if not is_proved(found.extents[v] <= 1, facts)}
    if not left:
        return ONCE
    loops = tuple(x for x in found.loops if x.var in left)
    names = ", ".join(repr(x.var.name) for x in loops)
    if left.isdisjoint(used_vars(found)) and not used_vars(found) & found.lets.keys():
        noun = "loops" if len(loops) > 1 else "loop"
        reason = f"the iterations of {noun} {names} repeat the instances of block {block.name!r}"
        return Instances(Multiplicity.REPEATED, loops, reason)
    reason = (
        f"the iteration variables of block {block.name!r} do not determine the iterations of "
        f"{'loops' if len(loops) > 1 else 'loop'} {names}, so an instance may run more than once"
    )
    return Instances(Multiplicity.UNKNOWN, loops, reason)


def determined(found: Enclosing, iters: tuple[IterVar, ...], facts: Facts) -> frozenset[Var]:
    """Return the loop variables whose values are determined by iteration variables of a block.

    A loop with at most one iteration is determined. A variable read from memory is known once all
    loops around the read are.

    Parameters
    ----------
    found : Enclosing
        The loops.
    iters : tuple of IterVar
        Iteration variables of the block, such as all spatial ones.
    facts : Facts
        The facts in the body of the block.
    """
    sizes = {v: const_value(extent) for v, extent in found.extents.items()}
    known = {v for v, size in sizes.items() if size is not None and size <= 1}
    known |= {v.binding for v in iters if isinstance(v.binding, Var)} & found.extents.keys()
    hidden = dict(found.lets)
    while len(known) < len(found.extents):
        for variable, loaded in list(hidden.items()):
            if loaded.around.isdisjoint(hidden) and loaded.around & found.extents.keys() <= known:
                del hidden[variable]
        rest = {v: e for v, e in found.extents.items() if v not in known}
        usable = [
            v
            for v in iters
            if free_vars(v.binding).isdisjoint(hidden) and not free_vars(v.binding).isdisjoint(rest)
        ]
        new = _injective(usable, rest, facts) if usable else frozenset[Var]()
        if not new:
            break
        known |= new
    return frozenset(known)


def _injective(iters: list[IterVar], loops: dict[Var, Expr], facts: Facts) -> frozenset[Var]:
    ranges = {v: Interval.full(extent) for v, extent in loops.items()}
    found = injective_in([v.binding for v in iters], ranges, facts)
    if found:
        return found
    equations = [Equation(v.binding, v.var, v.extent) for v in iters]
    return frozenset(invert(equations, loops, facts).values)
