"""Elements that iterations of a loop access for given values of the symbols, by enumeration."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, cast

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
from ..symbolic import (
    Bool,
    Expr,
    Le,
    Lt,
    UnboundSymbolError,
    Var,
    ZeroDivisorError,
    as_expr,
    conjuncts,
    evaluate,
    total,
)
from ..symbolic.evaluator import evaluator
from ..symbolic.terms import Add, Const, linear_terms
from ..symbolic.traverse import postorder
from .accesses import accesses
from .dependences import with_separate_inits
from .tree import Tree

_STEPS: Final = 4096
"""The number of statements and accesses of an iteration that are enumerated."""

_ITERATIONS: Final = 4
"""The number of first iterations that are enumerated; the last one is, too."""

_TOTAL_STEPS: Final = 1 << 16
"""The number of statements and accesses of all iterations that are enumerated."""

_SIZES: Final = (5, 3, 8, 17, 0)
"""The values of symbols, as far as their ranges and the facts permit them."""

_FURTHER_STEPS: Final = 16384
"""The number of statements and accesses of further iterations that are enumerated."""

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
    groups = (_by_known_axes(p.unknown.get(buffer, ())) for p in (one, other))
    for (axes, some), (others, more) in itertools.product(*(g.items() for g in groups)):
        common = [k for k, (a, b) in enumerate(zip(axes, others, strict=True)) if a and b]
        if not _at_axes(some, common).isdisjoint(_at_axes(more, common)):
            return True
    return False


def _by_known_axes(
    elements: Iterable[tuple[int | None, ...]],
) -> dict[tuple[bool, ...], list[tuple[int | None, ...]]]:
    """Return elements by whether each of their indices is known."""
    found: dict[tuple[bool, ...], list[tuple[int | None, ...]]] = {}
    for at in elements:
        found.setdefault(tuple(i is not None for i in at), []).append(at)
    return found


def _at_axes(
    elements: Iterable[tuple[int | None, ...]], axes: Sequence[int]
) -> set[tuple[int | None, ...]]:
    return {tuple([at[k] for k in axes]) for at in elements}


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
    left = _TOTAL_STEPS
    for sizes in _assignments(tree):
        for choice in (0, 1):
            if left <= 0:
                return
            try:
                around = _surroundings(tree, loop, sizes, choice)
                count = None if around is None else evaluate(loop.extent, around)
            except (UnboundSymbolError, ZeroDivisorError):
                continue
            if around is None or count is None or count <= 1:
                continue
            chosen = dict.fromkeys((*range(min(count, _ITERATIONS)), count - 1))
            found = {i: _enumerated(tree, loop, {**around, loop.var: i}) for i in chosen}
            left -= sum(steps for _, steps in found.values())
            yield sizes, {i: part for i, (part, _) in found.items()}


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
        for i in itertools.chain((0, 1), near, range(count)):
            if i in found:
                continue
            found[i], steps = _enumerated(tree, loop, {**around, loop.var: i})
            left -= steps
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


def _enumerated(tree: Tree, loop: For, values: dict[Var, int]) -> tuple[Footprint, int]:
    """Return the footprint of one iteration, and the steps that its enumeration took."""
    run = _Run(tree, values)
    with contextlib.suppress(_LimitError):
        run.statement(with_separate_inits(tree, loop.body))
    return run.found, run.steps


class _Functions(dict[Expr | Bool, Callable[[Mapping[Var, int]], int]]):
    """The functions of terms; made on first use."""

    def __missing__(self, term: Expr | Bool) -> Callable[[Mapping[Var, int]], int]:
        function = self[term] = evaluator(term)
        return function


_Limits: TypeAlias = list[tuple[int, Expr]]
"""Coefficients ``c`` and terms ``t`` with ``c * v + t <= 0`` where the body of a loop runs."""


class _Plan:
    """Functions and loop limits that the enumerations of one function share."""

    def __init__(self) -> None:
        self.functions = _Functions()
        self._limits: dict[For, _Limits] = {}

    def limits(self, loop: For) -> _Limits:
        """Return the conditions on a loop variable without which the loop body does nothing."""
        known = self._limits.get(loop)
        if known is None:
            known = self._limits[loop] = list(_limits(loop))
        return known


def _limits(loop: For) -> Iterator[tuple[int, Expr]]:
    """Yield the linear conditions on a loop variable in the guards around its whole body.

    The variables of inner loops are replaced by the ends of their ranges.
    """
    inside: set[Var] = {loop.var}
    for condition in _guards(loop.body, inside):
        if not isinstance(condition, Le | Lt):
            continue
        terms, constant = linear_terms(condition.delta)
        factor, rest = 0, [as_expr(constant)]
        for term, c in terms:
            least = term.lower if c > 0 else term.upper
            if term is loop.var:
                factor = c
            elif term.free.isdisjoint(inside):
                rest.append(c * term)
            elif least is None or loop.var in term.free:
                break
            else:
                rest.append(as_expr(c * least))
        else:
            if factor:
                yield factor, total(rest)


def _guards(statement: Stmt, inside: set[Var]) -> Iterator[Bool]:
    """Yield the conditions without which a statement does nothing, and collect its loops."""
    while True:
        match statement:
            case For(var=var, body=body):
                inside.add(var)
                statement = body
            case If(condition=condition, then=then, otherwise=None):
                yield from conjuncts(condition)
                statement = then
            case Block(predicate=predicate):
                yield from conjuncts(predicate)
                return
            case _:
                return


class _Run:
    """The enumeration of one iteration; code that depends on elements is not enumerated."""

    def __init__(self, tree: Tree, values: dict[Var, int]) -> None:
        known = tree.memo.get(_Plan)
        if known is None:
            known = tree.memo[_Plan] = _Plan()
        self._plan = cast("_Plan", known)
        self._functions = self._plan.functions
        self.found = Footprint()
        self._values = values
        self.steps = 0

    def statement(self, statement: Stmt) -> None:
        """Enumerate the accesses of a statement; those that are not known are skipped."""
        self._count()
        try:
            self._statement(statement)
        except (UnboundSymbolError, ZeroDivisorError):
            self._possible(statement, runs=True)

    def _count(self) -> None:
        self.steps += 1
        if self.steps > _STEPS:
            raise _LimitError

    def _value(self, term: Expr) -> int:
        return self._functions[term](self._values)

    def _holds(self, condition: Bool) -> bool:
        return bool(self._functions[condition](self._values))

    def _statement(self, statement: Stmt) -> None:
        match statement:
            case Store(buffer=buffer, indices=indices, value=value):
                self._reads(value)
                at = self._at(indices)
                self.found.written.setdefault(buffer, set()).add(at)
            case Bind(value=value, body=body):
                self._reads(value)
                self.statement(body)
            case For():
                self._loop(statement)
            case If(condition=condition, then=then, otherwise=otherwise):
                branch = then if self._holds(condition) else otherwise
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

    def _loop(self, loop: For) -> None:
        for i in self._iterations(loop):
            self._values[loop.var] = i
            self.statement(loop.body)

    def _iterations(self, loop: For) -> range:
        """Return the iterations of a loop without those that its guards exclude."""
        first, stop = 0, self._value(loop.extent)
        for factor, term in self._plan.limits(loop):
            rest = self._known(term)
            if rest is None:
                continue
            if factor > 0:
                stop = min(stop, -rest // factor + 1)
            else:
                first = max(first, -(rest // factor))
        return range(first, stop)

    def _block(self, block: Block) -> None:
        if not self._holds(block.predicate):
            return
        for item in block.iters:
            self._values[item.var] = self._value(item.binding)
        self.statement(block.body)

    def _possible(self, statement: Stmt, *, runs: bool) -> None:
        """Enumerate the stores of a statement that runs for some integers from memory.

        A store at indices that are known counts as a write, unless a condition with such integers
        excludes it for all but some iterations (``runs`` is false).
        """
        self._count()
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
            case Block(iters=iters, predicate=predicate):
                for item in iters:
                    self._values.pop(item.var, None)
                    with contextlib.suppress(UnboundSymbolError, ZeroDivisorError):
                        self._values[item.var] = self._value(item.binding)
                runs = runs and self._decided(predicate)
            case _:
                pass
        for child in children(statement):
            self._possible(child, runs=runs)

    def _decided(self, condition: Bool) -> bool:
        """Return whether a condition is true without integers from memory."""
        try:
            return self._holds(condition)
        except (UnboundSymbolError, ZeroDivisorError):
            return False

    def _reads(self, element: Element) -> None:
        if isinstance(element, Load):
            self._load(element)
        elif isinstance(element, Where) and isinstance(element.condition, Condition):
            chosen = self._holds(element.condition.value)
            self._reads(element.then if chosen else element.otherwise)
        elif isinstance(element, Where):
            self._reads(element.condition)  # which of the values is read depends on elements
        else:
            for part in operands(element):
                self._reads(part)

    def _load(self, load: Load) -> None:
        self._count()
        try:
            at = self._at(load.indices)
        except (UnboundSymbolError, ZeroDivisorError):
            return
        self.found.read.setdefault(load.buffer, set()).add(at)
        if at not in self.found.written.get(load.buffer, ()):
            self.found.exposed.setdefault(load.buffer, set()).add(at)

    def _known(self, index: Expr) -> int | None:
        try:
            return self._value(index)
        except (UnboundSymbolError, ZeroDivisorError):
            return None

    def _at(self, indices: Iterable[Expr]) -> tuple[int, ...]:
        functions, values = self._functions, self._values
        return tuple([functions[i](values) for i in indices])
