"""Copies of statements with fresh names and handles."""

from __future__ import annotations

from dataclasses import replace

from ..ir.analysis import Tree, with_regions
from ..ir.loop.nodes import Alloc, Block, For, Let, Stmt
from ..ir.loop.ranges import loop_var
from ..ir.loop.visit import children, substitute_in, with_children
from ..ir.symbolic import Var, var
from .domain_checks import iterates_reduction
from .edit import Edit


def copied(edit: Edit, statement: Stmt, suffix: str = "") -> Stmt:
    """Return a copy of a statement whose parts have new names and handles.

    These are its loops, blocks, variables, and the temporaries that it allocates.

    Parameters
    ----------
    edit : Edit
        The edit of the step.
    statement : Stmt
        The statement to copy.
    suffix : str
        The end of the names of the copied blocks.
    """
    parts = tuple(copied(edit, c, suffix) for c in children(statement))
    inner = with_children(statement, parts)
    match inner:
        case For(var=variable, extent=extent):
            new = loop_var(edit.fresh(variable.name), extent)
            renamed = substitute_in(inner.body, {variable: new})
            return replace(inner, uid=edit.mint(), var=new, body=renamed)
        case Block():
            return _copied_block(edit, inner, suffix)
        case Let(var=variable):
            name = edit.fresh(variable.name)
            value = var(name, lower=variable.lower, upper=variable.upper)
            return replace(inner, var=value, body=substitute_in(inner.body, {variable: value}))
        case Alloc(buffer=buffer):
            fresh = replace(buffer, uid=edit.mint(), name=edit.fresh(buffer.name))
            return Alloc(fresh, substitute_in(inner.body, buffers={buffer: fresh}))
        case _:
            return inner


def _copied_block(edit: Edit, block: Block, suffix: str) -> Block:
    fresh: dict[Var, Var] = {v.var: loop_var(edit.fresh(v.var.name), v.extent) for v in block.iters}
    copy = replace(block, uid=edit.mint(), name=edit.fresh(block.name + suffix))
    renamed = substitute_in(copy, fresh)
    if not isinstance(renamed, Block):
        raise TypeError(f"renaming block {block.name!r} returned another statement")
    iters = tuple(replace(v, var=fresh[v.var]) for v in renamed.iters)
    return replace(renamed, iters=iters)


def without_inits(tree: Tree, loop: For) -> Stmt:
    """Return the body of a loop without the inits of the blocks whose reduction it iterates."""
    found = {b.uid for b in tree.blocks_in(loop.body) if iterates_reduction(tree, b, loop)}

    def removed(statement: Stmt) -> Stmt:
        new = with_children(statement, tuple(map(removed, children(statement))))
        if not isinstance(new, Block) or new.uid not in found:
            return new
        return new if new.init is None else with_regions(replace(new, init=None))

    return removed(loop.body)
