"""Decomposition of reductions into an init nest and an update nest.

The decomposition defines the semantics of a reduction block: ``init`` runs for every spatial
iteration before the outermost reduction loop, even if the reduction domain is empty. An empty sum
is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

from ...errors import MalformedProgramError
from ..copies import replace
from ..identity import Uid, UidSource, fresh_name
from ..symbolic import (
    Add,
    Bool,
    Expr,
    Le,
    Lt,
    Mul,
    Var,
    all_of,
    as_expr,
    conjuncts,
    free_vars,
    linear_form,
    negate,
    substitute,
)
from ..symbolic.monotone import upper_limit
from .determined_loops import determined_loops
from .nodes import Bind, Block, For, If, IterVar, Let, PrimFunc, Stmt
from .ranges import loop_var
from .regions import access_regions
from .visit import all_buffers, path_to, replace_statement, seq, substitute_in, walk

_ZERO: Final = as_expr(0)


class InseparableInitError(MalformedProgramError):
    """A reduction whose init cannot run before the loops of the reduction."""

    title = "Inseparable init"


@dataclass(frozen=True, slots=True)
class Namer:
    """A source of uids and names for new nodes."""

    mint: Callable[[], Uid]
    fresh: Callable[[str], str]

    def variable(self, base: str, extent: Expr) -> Var:
        """Create a variable with the range ``[0, extent)``."""
        return loop_var(self.fresh(base), extent)


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


def split_off(
    block: Block,
    path: tuple[Stmt, ...],
    names: Namer,
    *,
    widen: bool = False,
    omitted: frozenset[Var] = frozenset(),
) -> Start | None:
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
    widen : bool
        Whether a copied loop or a spatial iteration variable whose extent depends on an omitted
        loop gets the largest such extent, and an integer that is read from memory inside the path
        becomes a loop over its range.
    omitted : frozenset of Var
        The variables of reduction loops around the path, which the nest does not use, either.

    Returns
    -------
    Start or None
        None if the extent of a copied loop or of a spatial iteration variable depends on the
        variable of an omitted loop, or a spatial iteration variable on an integer that is read from
        memory inside the path; with ``widen``, if the largest such extent is unknown.
    """
    copies = _Copies(block, names, omitted, widen=widen)
    parts = copies.follow(path)
    spatial = None if parts is None else copies.domains()
    if parts is None or spatial is None:
        return None
    start = _init_block(block, spatial, copies.renamed, _kept(spatial, parts, copies), names)
    nest: Stmt = start
    for shell in reversed(copies.shells):
        nest = replace(shell, body=nest)
    return Start(nest, start)


def init_condition(path: tuple[Stmt, ...], block: Block) -> Bool | None:
    """Return the condition under which an init runs, over the variables of the loops around it.

    Conditions of statements before the reduction are not part of it. The result is None if the
    iterations of the init cannot be separated from the reduction.

    Parameters
    ----------
    path : tuple of Stmt
        The statements between the nearest enclosing block and the block, outermost first.
    block : Block
        A block with an init.
    """
    names = Namer(lambda: 0, lambda base: base)
    copies = _Copies(block, names, frozenset(), widen=True)
    parts = copies.follow(path[reduction_position(path, block) :])
    spatial = None if parts is None else copies.domains()
    return None if parts is None or spatial is None else _kept(spatial, parts, copies)


class _Copies:
    """The loops around an init, without those that iterate the reduction only.

    A loop that is copied over more iterations than the program runs is in ``widened``; its block
    needs conditions that the iteration variables are in their domains.
    """

    def __init__(self, block: Block, names: Namer, omitted: frozenset[Var], *, widen: bool) -> None:
        self._block = block
        self._spatial = bound_variables(block.iters)[0]
        self._names = names
        self._widen = widen
        self._ranges: list[tuple[Var, Expr, Expr]] = []
        self.dropped: set[Var] = {*omitted}
        self.renamed: dict[Var, Expr] = {}
        self.shells: list[For] = []
        self.widened: set[Var] = set()

    def follow(self, path: tuple[Stmt, ...]) -> list[Bool] | None:
        """Copy or omit the loops of a path, and return all conditions around the block.

        The result is None if a loop can be neither copied nor omitted.
        """
        parts: list[Bool] = [*conjuncts(self._block.predicate)]
        for outer, inner in pairwise((*path, self._block)):
            match outer:
                case For() | Let():
                    if not self._add(outer):
                        return None
                case If(condition=condition, then=then):
                    parts += conjuncts(condition if inner is then else negate(condition))
                case _:
                    pass
        return parts

    def domains(self) -> tuple[IterVar, ...] | None:
        """Return the spatial iteration variables; None if the extent of one is unknown."""
        iters = [self._domain(v) for v in self._block.iters if v.kind != "reduce"]
        known = tuple(v for v in iters if v is not None)
        return known if len(known) == len(iters) else None

    def _add(self, binder: For | Let) -> bool:
        """Copy or omit a loop or an integer read from memory; return whether that is possible."""
        variable = binder.var
        first, stop = _limits(binder)
        if variable not in self._spatial:
            self.dropped.add(variable)
            self._ranges.append((variable, first, stop - 1))
            return True
        extent = stop - first
        if isinstance(binder, Let) or not free_vars(extent).isdisjoint(self.dropped):
            found = self._widest(variable, first, stop) if self._widen else None
            if found is None:
                return False
            first, extent = found
            self.widened.add(variable)
        self._copy(binder, substitute(first, self.renamed), substitute(extent, self.renamed))
        return True

    def _widest(self, variable: Var, first: Expr, stop: Expr) -> tuple[Expr, Expr] | None:
        """Return start and extent of a range that contains the values in all omitted iterations."""
        low = upper_limit(0 - first, self._ranges)
        high = upper_limit(stop, self._ranges)
        if low is not None and high is not None:
            known = free_vars(low) | free_vars(high)
            if known.isdisjoint(self.dropped):
                return 0 - low, high + low
        domains = (v.extent for v in self._block.iters if v.binding is variable)
        for extent in domains:
            if free_vars(extent).isdisjoint(self.dropped):
                return _ZERO, extent
        return None

    def _domain(self, item: IterVar) -> IterVar | None:
        """Return an iteration variable whose extent depends on no omitted loop; None if unknown."""
        if free_vars(item.extent).isdisjoint(self.dropped):
            return item
        most = upper_limit(item.extent, self._ranges) if self._widen else None
        known = most is not None and free_vars(most).isdisjoint(self.dropped)
        return replace(item, extent=most) if most is not None and known else None

    def _copy(self, binder: For | Let, first: Expr, extent: Expr) -> None:
        counter = self._names.variable(f"{binder.var.name}_init", extent)
        self.renamed[binder.var] = first + counter
        uid = self._names.mint()
        if isinstance(binder, For):
            self.shells.append(replace(binder, uid=uid, var=counter, extent=extent))
        else:
            self.shells.append(For(uid, counter, extent, binder.body))


def _limits(binder: For | Let) -> tuple[Expr, Expr]:
    """Return the first value of a loop or an integer read from memory, and the end of its range."""
    if isinstance(binder, Let):
        return binder.lower, binder.upper
    return _ZERO, binder.extent


def _init_block(
    block: Block,
    spatial: tuple[IterVar, ...],
    renamed: Mapping[Var, Expr],
    predicate: Bool,
    names: Namer,
) -> Block:
    fresh: dict[Var, Expr] = {}
    iters: list[IterVar] = []
    for item in spatial:
        extent = substitute(item.extent, renamed)
        fresh[item.var] = variable = names.variable(f"{item.var.name}_init", extent)
        iters.append(IterVar(variable, extent, item.kind, substitute(item.binding, renamed)))
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


def _kept(spatial: tuple[IterVar, ...], parts: list[Bool], copies: _Copies) -> Bool:
    """Return the conditions on spatial iterations alone, with range checks where needed.

    A condition on the reduction does not keep the init from running.
    """
    dropped = copies.dropped
    parts = [p if (q := without_variables(p, dropped)) is None else q for p in parts]
    kept = [p for p in parts if free_vars(p).isdisjoint(dropped)]
    mixed = [p for p in parts if not free_vars(p) <= dropped and p not in kept]
    unbounded = copies.widened.union(*map(free_vars, mixed))
    if any(not unbounded.isdisjoint(free_vars(v.binding)) for v in spatial):
        for item in spatial:
            kept += [item.binding >= 0, item.binding < item.extent]
    return all_of(*kept)


def without_variables(condition: Bool, variables: Collection[Var]) -> Bool | None:
    """Return an equivalent condition without some variables; None if none is known.

    A linear inequality that is the same at both ends of the range of a variable does not depend on
    it, such as ``2 * i + k < 2 * n`` for ``k`` in ``[0, 1]``. An equality may hold between them.

    Examples
    --------
    >>> from ..symbolic import var
    >>> i, n, k = var("i"), var("n"), var("k", lower=0, upper=1)
    >>> str(without_variables(i * 2 + k < n * 2, {k}))
    'i < n'
    >>> without_variables(i + k < n, {k}) is None
    True
    """
    for variable in sorted(condition.free & frozenset(variables), key=lambda v: v.serial):
        if not isinstance(condition, Le | Lt):
            return None
        if linear_form(condition.delta, (variable,)) is None:
            return None
        if variable.lower is None or variable.upper is None:
            return None
        first = substitute(condition, {variable: variable.lower})
        if substitute(condition, {variable: variable.upper}) is not first:
            return None
        condition = first
    return condition


def decomposed(function: PrimFunc) -> PrimFunc:
    """Replace the init of every reduction block by a separate init nest.

    The reduction block keeps its update only.

    Raises
    ------
    InseparableInitError
        If the iterations of an init cannot be separated from the reduction.

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
        body = without_init(body, block, names)
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
            new = without_init(new, block, names)
        else:
            new = replace_statement(new, block, replace(block, init=None))
    return new


def without_init(body: Stmt, block: Block, names: Namer) -> Stmt:
    """Return the body of a function with the init of a reduction block as a separate nest.

    Raises
    ------
    InseparableInitError
        If the iterations of the init cannot be separated from the reduction.
    """
    path = around(body, block)
    first = reduction_position(path, block)
    start = split_off(block, path[first:], names, widen=True)
    if start is None:
        raise InseparableInitError(
            f"the iterations of the init of block {block.name!r} cannot be separated from its "
            "reduction",
            where=f"block {block.name!r}",
        )
    anchor = path[first] if first < len(path) else block
    update = replace(block, init=None)
    new = replace_statement(anchor, block, update)
    return replace_statement(body, anchor, seq(start.nest, new))


def bound_variables(iters: Iterable[IterVar]) -> tuple[frozenset[Var], frozenset[Var]]:
    """Return the variables in the bindings of spatial variables, and of those of a reduction."""
    spatial, reducing = set[Var](), set[Var]()
    for item in iters:
        (reducing if item.kind == "reduce" else spatial).update(free_vars(item.binding))
    return frozenset(spatial), frozenset(reducing)


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


@lru_cache(maxsize=4096)
def reduction_variables(path: tuple[Stmt, ...], block: Block) -> frozenset[Var]:
    """Return the variables of the statements that iterate a reduction.

    Loops around an integer that is read from memory and bound to the reduction iterate it, too, and
    so do loops that are summed with a reduction loop in a spatial binding, ``spatial(i + k)``: each
    result has its terms in several iterations of both. An integer that is read at an index of
    spatial loops alone, such as the first element of a row, is constant during a reduction, and so
    is a loop variable that the spatial iteration variables determine, such as ``s`` of
    ``spatial(s), reduce(k + s)``. The parameters are those of `reduction_position`.
    """
    spatial, reducing = bound_variables(block.iters)
    if not spatial.isdisjoint(reducing):
        reducing -= determined_loops(path, block)
    lets = [statement for statement in reversed(path) if isinstance(statement, Let)]
    while True:
        found = reducing
        if lets:
            found -= _constant_integers(path, spatial - reducing)
            for let in lets:
                if let.var in found:
                    read = (free_vars(index) for index in let.load.indices)
                    found |= frozenset[Var]().union(*read) - spatial
            found -= _constant_integers(path, spatial - found)
        for item in _summing(block, found):
            found |= free_vars(item.binding)
        if found <= reducing:
            return found
        reducing |= found


def _summing(block: Block, reducing: frozenset[Var]) -> tuple[IterVar, ...]:
    """Return the spatial iteration variables whose bindings sum a variable of the reduction."""
    return tuple(
        item
        for item in block.iters
        if item.kind != "reduce" and not _summands(item.binding).isdisjoint(reducing)
    )


def _constant_integers(path: tuple[Stmt, ...], fixed: frozenset[Var]) -> frozenset[Var]:
    """Return the integers read from memory that are constant for some values of loop variables."""
    varying: set[Var] = set()
    found: set[Var] = set()
    for statement in path:
        if isinstance(statement, For) and statement.var not in fixed:
            varying.add(statement.var)
        if isinstance(statement, Let):
            read = frozenset[Var]().union(*(free_vars(i) for i in statement.load.indices))
            (varying if read & varying else found).add(statement.var)
    return frozenset(found)


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


def starts_before_reduction(path: tuple[Stmt, ...], block: Block) -> bool:
    """Return whether the init of a block runs for the same spatial iterations as the block.

    If not, it runs for the largest extents of the loops around it, see `split_off`. The parameters
    are those of `separate_init`.
    """
    first = reduction_position(path, block)
    return split_off(block, path[first:], Namer(lambda: 0, lambda base: base)) is not None


def separate_init(path: tuple[Stmt, ...], block: Block) -> Start | None:
    """Return the nest of the init of a block, which runs before its reduction, or None.

    The nodes have the names of the originals, and no uids.

    Parameters
    ----------
    path : tuple of Stmt
        The statements between the nearest enclosing block and the block, outermost first.
    block : Block
        A block with an init.
    """
    inner = path[reduction_position(path, block) :]
    return split_off(block, inner, Namer(lambda: 0, _without_suffix), widen=True)


def _without_suffix(base: str) -> str:
    return base.removesuffix("_init")


def around(body: Stmt, block: Block) -> tuple[Stmt, ...]:
    """Return the statements between the nearest enclosing block and a block, outermost first."""
    path = path_to(body, block)[:-1]
    inner = [k for k, s in enumerate(path) if isinstance(s, Block)]
    return path[inner[-1] + 1 :] if inner else path


def namer_of(function: PrimFunc) -> Namer:
    """Return a namer whose uids and names are unused in a function."""
    buffers = all_buffers(function)
    taken: set[str] = {function.name, *(b.name for b in buffers)}
    taken |= {v.name for v in function.scalar_params}
    largest = max((b.uid for b in buffers), default=0)
    for statement in walk(function.body):
        if isinstance(statement, For | Let):
            taken.add(statement.var.name)
        if isinstance(statement, Bind):
            taken.add(statement.local.name)
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
