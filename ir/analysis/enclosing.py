"""The statements around a block, in the form that analyses of its iterations use."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from ..loop.nodes import Block, For, If, IterVar, Let, Stmt
from ..symbolic import TRUE, Bool, Expr, Var, conjuncts, eq, free_vars, negate, substitute
from .tree import Tree


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition under which a block runs, and the description of its source."""

    condition: Bool
    source: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """A variable of a ``Let``, and the loops and variables that determine the loaded element."""

    let: Let
    around: frozenset[Var]


@dataclass(frozen=True, slots=True)
class Enclosing:
    """The loops, variables and conditions between a statement and a block inside it.

    Iteration variables of blocks on the way are replaced by their bindings.

    Parameters
    ----------
    loops : tuple of For
        The loops, outermost first.
    extents : Mapping[Var, Expr]
        The extent of each loop variable.
    lets : Mapping[Var, Loaded]
        The variables read from memory.
    guards : tuple of Guard
        The conditions of branches and predicates; each is one conjunct.
    iters : tuple of IterVar
        The iteration variables of the block, with bindings and extents over the loops.
    """

    loops: tuple[For, ...]
    extents: dict[Var, Expr]
    lets: dict[Var, Loaded]
    guards: tuple[Guard, ...]
    iters: tuple[IterVar, ...]

    @property
    def bindings(self) -> tuple[Expr, ...]:
        """The bindings of the iteration variables."""
        return tuple(v.binding for v in self.iters)


def statements_around(tree: Tree, block: Block, within: Stmt | None = None) -> tuple[Stmt, ...]:
    """Return the statements from ``within`` to a block, outermost first, without the block.

    By default, they start inside the enclosing block. The result is empty if ``within`` is the
    block itself.
    """
    found: list[Stmt] = []
    if within is block:
        return ()
    parent = tree.parent
    above = parent.get(block)
    while above is not None:
        if within is None and isinstance(above, Block):
            break
        found.append(above)
        if above is within:
            break
        above = parent.get(above)
    found.reverse()
    return tuple(found)


def enclosing(tree: Tree, block: Block, within: Stmt | None = None) -> Enclosing:
    """Return the loops, variables and conditions between a statement and a block inside it.

    Parameters
    ----------
    tree : Tree
        The index of the function.
    block : Block
        The block.
    within : Stmt or None
        The outermost statement, inclusive; by default the outermost one in the enclosing block or
        the function.
    """
    return _Collector(statements_around(tree, block, within), block).result()


class _Collector:
    def __init__(self, path: tuple[Stmt, ...], block: Block) -> None:
        self._bound: dict[Var, Expr] = {}
        self._loops: list[For] = []
        self._extents: dict[Var, Expr] = {}
        self._lets: dict[Var, Loaded] = {}
        self._guards: list[Guard] = []
        self._block = block
        for statement, inner in pairwise((*path, block)):
            self._enter(statement, inner)
        self._predicate(block)

    def result(self) -> Enclosing:
        block = self._block
        iters = block.iters
        if self._bound:
            iters = tuple(
                IterVar(v.var, self._term(v.extent), v.kind, self._term(v.binding)) for v in iters
            )
        return Enclosing(tuple(self._loops), self._extents, self._lets, tuple(self._guards), iters)

    def _term(self, term: Expr) -> Expr:
        return substitute(term, self._bound) if self._bound else term

    def _claim(self, claim: Bool) -> Bool:
        return substitute(claim, self._bound) if self._bound else claim

    def _enter(self, statement: Stmt, inner: Stmt) -> None:
        match statement:
            case For(var=variable, extent=extent):
                self._loops.append(statement)
                self._extents[variable] = self._term(extent)
            case Let(var=variable):
                around = frozenset((*self._extents, *self._lets))
                self._lets[variable] = Loaded(statement, around)
            case If(condition=condition, then=then):
                claim = condition if inner is then else negate(condition)
                self._add(self._claim(claim), f"branch {claim}")
            case Block(iters=iters, init=init):
                self._predicate(statement)
                self._bound |= {v.var: self._term(v.binding) for v in iters}
                if inner is init:
                    for item in iters:
                        if item.kind == "reduce":
                            first = eq(self._bound[item.var], 0)
                            self._add(first, f"the init of block {statement.name!r}")
            case _:
                pass

    def _predicate(self, block: Block) -> None:
        if block.predicate is not TRUE:
            self._add(self._claim(block.predicate), f"the predicate of block {block.name!r}")

    def _add(self, claim: Bool, source: str) -> None:
        self._guards += [Guard(part, source) for part in conjuncts(claim) if part is not TRUE]


def used_vars(enclosed: Enclosing) -> frozenset[Var]:
    """Return the variables that the bindings contain."""
    return frozenset[Var]().union(*(free_vars(b) for b in enclosed.bindings))
