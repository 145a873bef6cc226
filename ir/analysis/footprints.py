"""Elements that iterations of a loop access for given values of the symbols, by enumeration."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from ..loop.decompose import reduction_variables
from ..loop.nodes import (
    Bind,
    Block,
    Buffer,
    Condition,
    Element,
    For,
    If,
    Let,
    Load,
    Stmt,
    Store,
    Where,
)
from ..loop.visit import children, operands, walk
from ..symbolic import Bool, Expr, UnboundSymbolError, Var, ZeroDivisorError, evaluate
from ..symbolic.terms import Add, Const
from ..symbolic.traverse import postorder
from .accesses import accesses
from .enclosing import statements_around
from .tree import Tree

_STEPS: Final = 2048
"""The number of statements of an iteration that are enumerated."""

_ITERATIONS: Final = 4
"""The number of first iterations that are enumerated; the last one is, too."""

_COMPARED: Final = 256
"""The number of elements with unknown indices that are compared with those of another iteration."""

_SIZES: Final = (5, 3, 8, 17, 0)
"""The values of symbols, as far as their ranges and the facts permit them."""

_FURTHER_STEPS: Final = 8192
"""The number of statements of further iterations that are enumerated."""

_DISTANCES: Final = 64
"""The number of distances between iterations that are tried first."""

_LARGEST: Final = 1 << 24
"""The largest number in an index that is used as a distance."""

Iterations: TypeAlias = "tuple[dict[Var, int], dict[int, Footprint]]"
"""Values of the symbols, and the footprints of iterations for them."""

_Elements: TypeAlias = dict[Buffer, set[tuple[int, ...]]]
_Partial: TypeAlias = dict[Buffer, set[tuple[int | None, ...]]]


@dataclass(slots=True)
class Footprint:
    """The elements that a part of a program accesses, in order, until a limit.

    Parameters
    ----------
    written : dict
        The elements that are written, by buffer.
    read : dict
        The elements that are read.
    exposed : dict
        The elements that are read before they are written.
    unknown : dict
        The written elements that are not known, such as those at loaded indices, with None for
        each index that is not.
    """

    written: _Elements = field(default_factory=dict[Buffer, set[tuple[int, ...]]])
    read: _Elements = field(default_factory=dict[Buffer, set[tuple[int, ...]]])
    exposed: _Elements = field(default_factory=dict[Buffer, set[tuple[int, ...]]])
    unknown: _Partial = field(default_factory=dict[Buffer, set[tuple[int | None, ...]]])


def may_overlap(one: Footprint, other: Footprint, buffer: Buffer) -> bool:
    """Return whether writes of both parts to elements that are not known may be of one element."""
    parts = (itertools.islice(p.unknown.get(buffer, ()), _COMPARED) for p in (one, other))
    return any(
        all(i is None or j is None or i == j for i, j in zip(a, b, strict=True))
        for a, b in itertools.product(*parts)
    )


def footprints(tree: Tree, loop: For) -> Iterator[Iterations]:
    """Yield values of the symbols, and the footprints of some iterations of a loop for them.

    Parameters
    ----------
    tree : Tree
        The index of the function.
    loop : For
        The loop. The loops around it are in their first, or in their second iteration.

    Examples
    --------
    >>> from ..script import parse
    >>> from .tree import tree_of
    >>> tree = tree_of(
    ...     parse('''
    ... @prim_func
    ... def f(y: InOut[(3,), f32]):
    ...     for i in range(2):
    ...         with block("y"):
    ...             vi = ordered(i)
    ...             y[vi + 1] = y[vi] * 2.0
    ... ''').prims[0]
    ... )
    >>> _, found = next(footprints(tree, *tree.loops.values()))
    >>> [(i, *f.written.values(), *f.read.values()) for i, f in found.items()]
    [(0, {(1,)}, {(0,)}), (1, {(2,)}, {(1,)})]
    """
    for sizes in _assignments(tree):
        for choice in (0, 1):
            try:
                around = _surroundings(tree, loop, sizes, choice)
                count = None if around is None else evaluate(loop.extent, around)
            except (UnboundSymbolError, ZeroDivisorError):
                continue
            if around is None or count is None or count <= 1:
                continue
            chosen = dict.fromkeys((*range(min(count, _ITERATIONS)), count - 1))
            yield sizes, {i: _footprint(tree, loop, {**around, loop.var: i}) for i in chosen}


def further_footprints(tree: Tree, loop: For) -> Iterator[Iterations]:
    """Yield values of the symbols, and the footprints of more iterations than `footprints`.

    Among them are those whose number occurs in the indices of the loop, as the distance of two
    accesses does, and as many of the first ones as a limit on statements allows.

    Parameters
    ----------
    tree : Tree
        The index of the function.
    loop : For
        The loop. The loops around it are in their first iteration.
    """
    distances = _distances(loop)
    sizes_tried = (max(_SIZES), 2 * max(distances, default=0) + _SIZES[0])
    for sizes in _assignments(tree, sizes_tried):
        try:
            around = _surroundings(tree, loop, sizes, 0)
            count = 0 if around is None else evaluate(loop.extent, around)
        except (UnboundSymbolError, ZeroDivisorError):
            continue
        if around is None or count <= 1:
            continue
        near = (d + k for d in distances for k in (0, 1) if d + k < count)
        found: dict[int, Footprint] = {}
        left = _FURTHER_STEPS
        for i in dict.fromkeys(itertools.chain((0, 1), near, range(count))):
            run = _Run(tree, {**around, loop.var: i})
            with contextlib.suppress(_LimitError):
                run.statement(loop.body)
            found[i] = run.found
            left -= run.steps
            if left <= 0:
                break
        yield sizes, found


def _distances(loop: For) -> list[int]:
    """Return distances of iterations that may access one element, from the numbers in indices."""
    numbers, factors = {0}, {1}
    for index in _indices(loop.body):
        for term in postorder(index):
            match term:
                case Const(value=value):
                    numbers.add(abs(value))
                case Add(terms=terms, constant=constant):
                    numbers.add(abs(constant))
                    factors |= {abs(c) for _, c in terms}
                case _:
                    pass
    numbers = {n for n in numbers if n <= _LARGEST}
    exact = {abs(a - b) for a, b in itertools.combinations(sorted(numbers)[:_DISTANCES], 2)}
    found = exact | {-(-d // f) for d in exact for f in sorted(factors - {0, 1})[:4]}
    return sorted(found)[:_DISTANCES]


def _indices(statement: Stmt) -> Iterator[Expr]:
    """Yield the indices of the accesses of a statement."""
    for part in walk(statement):
        for access in accesses(part) if isinstance(part, Block) else ():
            yield from access.indices


def _assignments(tree: Tree, tried: Sequence[int] = _SIZES) -> Iterator[dict[Var, int]]:
    """Yield values of the symbols that are in their ranges and fulfill the facts."""
    symbols = sorted(tree.symbols(), key=lambda v: v.serial)
    for size in tried if symbols else tried[:1]:
        values = {v: _nearest(v, size) for v in symbols}
        if all(_holds(f.predicate, values) for f in tree.function.facts):
            yield values


def _nearest(symbol: Var, size: int) -> int:
    value = -(-size // symbol.multiple_of) * symbol.multiple_of
    value = value if symbol.lower is None else max(value, symbol.lower)
    return value if symbol.upper is None else min(value, symbol.upper)


def _holds(condition: Bool, values: Mapping[Var, int]) -> bool:
    try:
        return evaluate(condition, values)
    except (UnboundSymbolError, ZeroDivisorError):
        return False


def _surroundings(
    tree: Tree, loop: For, sizes: Mapping[Var, int], choice: int
) -> dict[Var, int] | None:
    """Return the values of the variables around a loop in one iteration; None if it never runs."""
    values = dict(sizes)
    path = [loop, *tree.ancestors(loop)][::-1]
    for statement, inner in itertools.pairwise(path):
        match statement:
            case For(var=var, extent=extent):
                count = evaluate(extent, values)
                if count < 1:
                    return None
                values[var] = min(choice, count - 1)
            case If(condition=condition, then=then):
                if evaluate(condition, values) is not (inner is then):
                    return None
            case Block(iters=iters, predicate=predicate):
                values |= {v.var: evaluate(v.binding, values) for v in iters}
                if not evaluate(predicate, values):
                    return None
            case _:
                pass
    return values


class _LimitError(Exception):
    """The limit of the enumeration."""


def _footprint(tree: Tree, loop: For, values: dict[Var, int]) -> Footprint:
    """Return the footprint of one iteration."""
    run = _Run(tree, values)
    with contextlib.suppress(_LimitError):
        run.statement(loop.body)
    return run.found


class _Run:
    """The enumeration of one iteration; code that depends on elements is not enumerated."""

    def __init__(self, tree: Tree, values: dict[Var, int]) -> None:
        self._tree = tree
        self.found = Footprint()
        self._values = values
        self.steps = 0

    def statement(self, statement: Stmt) -> None:
        """Enumerate the accesses of a statement; those that are not known are skipped."""
        self.steps += 1
        if self.steps > _STEPS:
            raise _LimitError
        try:
            self._statement(statement)
        except (UnboundSymbolError, ZeroDivisorError):
            self._possible(statement, runs=True)

    def _statement(self, statement: Stmt) -> None:
        match statement:
            case Store(buffer=buffer, indices=indices, value=value):
                self._reads(value)
                at = self._at(indices)
                self.found.written.setdefault(buffer, set()).add(at)
            case Bind(value=value, body=body):
                self._reads(value)
                self.statement(body)
            case For(var=var, extent=extent, body=body):
                count = evaluate(extent, self._values)
                for i in range(count):
                    self._values[var] = i
                    self.statement(body)
                if count <= 0:
                    self._empty(statement)
            case If(condition=condition, then=then, otherwise=otherwise):
                branch = then if evaluate(condition, self._values) else otherwise
                if branch is not None:
                    self.statement(branch)
            case Block():
                self._block(statement)
            case Let(load=load, body=body):
                self._load(load)
                self.statement(body)
            case _:
                for child in children(statement):
                    self.statement(child)

    def _block(self, block: Block) -> None:
        self._values |= {v.var: evaluate(v.binding, self._values) for v in block.iters}
        if evaluate(block.predicate, self._values):
            if block.init is not None:
                self.statement(block.init)
            self.statement(block.body)

    def _empty(self, loop: For) -> None:
        """Enumerate the inits of the reductions over a loop without iterations, which run."""
        for block in self._tree.blocks_in(loop.body):
            if block.init is None:
                continue
            reduced = reduction_variables(statements_around(self._tree, block), block)
            if loop.var in reduced:
                above = tuple(reversed(tuple(self._tree.ancestors(block))))
                self._init(block, block.init, above[above.index(loop) + 1 :], reduced)

    def _init(
        self, block: Block, init: Stmt, path: Sequence[Stmt], reduced: AbstractSet[Var]
    ) -> None:
        """Enumerate an init inside of spatial loops; conditions on reductions are not known."""
        if not path:
            for item in block.iters:
                self._values.pop(item.var, None)
                if item.binding.free.isdisjoint(reduced):
                    self._values[item.var] = evaluate(item.binding, self._values)
            if evaluate(block.predicate, self._values):
                self.statement(init)
            return
        match path[0]:
            case For(var=var, extent=extent) if var not in reduced:
                for i in range(evaluate(extent, self._values)):
                    self._values[var] = i
                    self._init(block, init, path[1:], reduced)
                return
            case For(var=var) | Let(var=var):
                self._values.pop(var, None)
            case If(condition=condition, then=then):
                inner = path[1] if len(path) > 1 else block
                if evaluate(condition, self._values) is not (inner is then):
                    return
            case _:
                pass
        self._init(block, init, path[1:], reduced)

    def _possible(self, statement: Stmt, *, runs: bool) -> None:
        """Enumerate the stores of a statement that runs for some integers from memory.

        A store at indices that are known counts as a write, unless a condition with such integers
        excludes it for all but some iterations (``runs`` is false).
        """
        match statement:
            case Store(buffer=buffer, indices=indices):
                at = tuple(map(self._known, indices))
                known = tuple(i for i in at if i is not None)
                if len(known) < len(at):
                    self.found.unknown.setdefault(buffer, set()).add(at)
                elif runs:
                    self.found.written.setdefault(buffer, set()).add(known)
                return
            case For(var=var) | Let(var=var):
                self._values.pop(var, None)
            case If(condition=condition):
                runs = runs and self._decided(condition)
            case Block(iters=iters, predicate=predicate, init=init):
                for item in iters:
                    self._values.pop(item.var, None)
                    with contextlib.suppress(UnboundSymbolError, ZeroDivisorError):
                        self._values[item.var] = evaluate(item.binding, self._values)
                runs = runs and self._decided(predicate)
                if init is not None:
                    self._possible(init, runs=runs)
            case _:
                pass
        for child in children(statement):
            self._possible(child, runs=runs)

    def _decided(self, condition: Bool) -> bool:
        """Return whether a condition is true without integers from memory."""
        try:
            return evaluate(condition, self._values)
        except (UnboundSymbolError, ZeroDivisorError):
            return False

    def _reads(self, element: Element) -> None:
        if isinstance(element, Load):
            self._load(element)
        elif isinstance(element, Where) and isinstance(element.condition, Condition):
            chosen = evaluate(element.condition.value, self._values)
            self._reads(element.then if chosen else element.otherwise)
        elif isinstance(element, Where):
            self._reads(element.condition)  # which of the values is read depends on elements
        else:
            for part in operands(element):
                self._reads(part)

    def _load(self, load: Load) -> None:
        try:
            at = self._at(load.indices)
        except (UnboundSymbolError, ZeroDivisorError):
            return
        self.found.read.setdefault(load.buffer, set()).add(at)
        if at not in self.found.written.get(load.buffer, ()):
            self.found.exposed.setdefault(load.buffer, set()).add(at)

    def _known(self, index: Expr) -> int | None:
        try:
            return evaluate(index, self._values)
        except (UnboundSymbolError, ZeroDivisorError):
            return None

    def _at(self, indices: Iterable[Expr]) -> tuple[int, ...]:
        return tuple(evaluate(i, self._values) for i in indices)
