"""Scans along the lanes of a vector.

The lanes of a vectorized loop combine the values of a scan, so such a loop may bind the ordered
iteration variable of a scan.
"""

from __future__ import annotations

from ..loop.nodes import Block, For
from ..loop.scans import scan_variable
from ..symbolic import Bool, Le, Lt, Var, conjuncts, const_value, linear_form
from .tree import Tree


def scans_lanes(tree: Tree, loop: For) -> bool:
    """Return whether a loop contains only a scan whose consecutive iterations it runs.

    Iterations that the predicate of the block excludes are the last ones. Loops of one iteration
    may be around the scan.

    Parameters
    ----------
    tree : Tree
        The index of the function.
    loop : For
        The loop.

    Examples
    --------
    >>> from ..script import parse
    >>> from .tree import tree_of
    >>> f = parse('''
    ... @prim_func
    ... def f(x: Buffer[(8,), f32], y: Out[(8,), f32]):
    ...     for i in range(8):
    ...         with block("sums"):
    ...             vi = ordered(i)
    ...             y[vi] = scan(add, x[vi])
    ... ''').prim("f")
    >>> scans_lanes(tree_of(f), f.body)
    True
    """
    body = loop.body
    while isinstance(body, For) and const_value(body.extent) == 1:
        body = body.body
    if not isinstance(body, Block) or tree.blocks_in(loop.body) != (body,):
        return False
    return scans_consecutively(body, loop.var)


def scans_consecutively(block: Block, variable: Var) -> bool:
    """Return whether consecutive values of a loop variable are consecutive steps of a scan."""
    own = scan_variable(block)
    if own is None or block.reducer is None:
        return False
    if any(x.dtype.is_packed for x in block.reducer.left):
        return False
    for item in block.iters:
        if variable not in item.binding.free:
            if item.var is own:
                return False
            continue
        form = linear_form(item.binding, (variable,))
        if item.var is not own or form is None or const_value(form.coefficients[variable]) != 1:
            return False
    parts = [p for p in conjuncts(block.predicate) if variable in p.free]
    return all(_is_upper_limit(part, variable) for part in parts)


def _is_upper_limit(claim: Bool, variable: Var) -> bool:
    """Return whether a condition holds for the first values of a variable only, if for any."""
    if not isinstance(claim, Lt | Le):
        return False
    form = linear_form(claim.delta, (variable,))
    factor = None if form is None else const_value(form.coefficients[variable])
    return factor is not None and factor > 0
