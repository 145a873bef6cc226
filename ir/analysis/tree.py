"""An index of a loop-level function: parents, loops and blocks by uid, names, facts in scope."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final, Self

from ..identity import Uid
from ..loop.decompose import reduction_position
from ..loop.nodes import Alloc, Bind, Block, Buffer, For, If, Let, PrimFunc, Seq, Stmt, Store
from ..loop.visit import children, stores, walk
from ..symbolic import Facts, Var, free_vars, negate
from .facts_at import assuming, outside_loops, within_loop

_BINDERS = (For, Let)


class _Part:
    """The index of adjacent statements, which functions that share the statements share."""

    __slots__ = ("_all_names", "allocs", "blocks", "lets", "loops", "names", "parent", "parts")

    def __init__(self) -> None:
        """Create an empty index."""
        self.parent: dict[Stmt, Stmt] = {}
        self.loops: dict[Uid, For] = {}
        self.blocks: dict[Uid, Block] = {}
        self.lets: list[Let] = []
        self.allocs: list[Alloc] = []
        self.names: set[str] = set()
        self.parts: list[_Part] = []
        self._all_names: frozenset[str] | None = None

    def walk(self, root: Stmt) -> Self:
        """Add a statement in one traversal."""
        parent, names, stack = self.parent, self.names, [root]
        while stack:
            top = stack.pop()
            if isinstance(top, For):
                self.loops[top.uid] = top
                names.add(top.var.name)
                parent[top.body] = top
                stack.append(top.body)
                continue
            if isinstance(top, Store):
                continue
            if isinstance(top, Block):
                self.blocks[top.uid] = top
                names.add(top.name)
                names.update(item.var.name for item in top.iters)
            elif isinstance(top, Alloc):
                self.allocs.append(top)
            elif isinstance(top, Let):
                self.lets.append(top)
                names.add(top.var.name)
            elif isinstance(top, Bind):
                names.add(top.local.name)
            elif isinstance(top, Seq) and len(top.body) >= _SHARED:
                parent.update(dict.fromkeys(top.body, top))
                self.add(_parts_of(top.body))
                continue
            inner = children(top)
            for child in inner:
                parent[child] = top
            stack.extend(reversed(inner))
        return self

    def add(self, parts: Iterable[_Part]) -> Self:
        """Add the indices of later statements."""
        parent, loops, blocks = self.parent, self.loops, self.blocks
        for part in parts:
            self.parts.append(part)
            parent.update(part.parent)
            loops.update(part.loops)
            blocks.update(part.blocks)
            if part.lets:
                self.lets.extend(part.lets)
            if part.allocs:
                self.allocs.extend(part.allocs)
        return self

    @property
    def all_names(self) -> frozenset[str]:
        """The names of the variables and blocks."""
        if self._all_names is None:
            inner = [part.all_names for part in self.parts]
            self._all_names = frozenset(self.names).union(*inner)
        return self._all_names


_SHARED: Final = 4
"""The number of statements from which on a sequence is indexed in parts."""

_ADJACENT: Final = 16
"""The number of adjacent statements of a long sequence that are indexed in one part."""


def _parts_of(statements: tuple[Stmt, ...]) -> Iterable[_Part]:
    """Return the index of statements in parts."""
    if len(statements) <= _ADJACENT:
        return map(_part_of, statements)
    starts = range(0, len(statements), _ADJACENT)
    return [_part_of_all(statements[k : k + _ADJACENT]) for k in starts]


@lru_cache(maxsize=4096)
def _part_of(statement: Stmt) -> _Part:
    return _Part().walk(statement)


@lru_cache(maxsize=1024)
def _part_of_all(statements: tuple[Stmt, ...]) -> _Part:
    return _Part().add(map(_part_of, statements))


class Tree:
    """The index of one function, obtained from :func:`tree_of`, which caches recent ones."""

    __slots__ = (
        "_facts", "_names", "_order", "_outermost", "_part", "_symbols", "allocs", "blocks",
        "buffers", "function", "lets", "loops", "memo", "parent",
    )  # fmt: skip

    def __init__(self, function: PrimFunc) -> None:
        """Index a function in one traversal."""
        self.function = function
        part = _Part().walk(function.body)
        self.parent = part.parent
        self.loops = part.loops
        self.blocks = part.blocks
        self.lets: tuple[Let, ...] = tuple(part.lets)
        self.buffers: dict[Uid, Buffer] = {
            b.uid: b for b in (*function.buffer_params, *function.buffers)
        }
        self.buffers.update((alloc.buffer.uid, alloc.buffer) for alloc in part.allocs)
        self.allocs: dict[Buffer, Alloc | None] = dict.fromkeys(function.buffers)
        self.allocs.update((alloc.buffer, alloc) for alloc in part.allocs)
        self.memo: dict[object, object] = {}
        self._part = part
        self._order: dict[Stmt, int] | None = None
        self._facts: dict[Stmt, Facts] = {}
        self._names: frozenset[str] | None = None
        self._symbols: frozenset[Var] | None = None
        self._outermost: tuple[Block, ...] | None = None

    @property
    def order(self) -> Mapping[Stmt, int]:
        """The position of each statement in the program."""
        if self._order is None:
            self._order = {s: k for k, s in enumerate(walk(self.function.body))}
        return self._order

    def has(self, statement: Stmt) -> bool:
        """Return whether a statement is part of the function."""
        return statement in self.parent or statement is self.function.body

    @property
    def temporaries(self) -> tuple[Buffer, ...]:
        """The temporaries, those of the whole function first."""
        return tuple(self.allocs)

    def is_temporary(self, buffer: Buffer) -> bool:
        """Return whether a buffer is allocated by the function."""
        return buffer in self.allocs

    def allocated_in(self, buffer: Buffer, statement: Stmt) -> bool:
        """Return whether each execution of a statement provides new elements of a buffer."""
        alloc = self.allocs.get(buffer)
        return alloc is not None and self.contains(statement, alloc)

    def ancestors(self, statement: Stmt) -> Iterator[Stmt]:
        """Yield the enclosing statements of a statement, innermost first."""
        above = self.parent.get(statement)
        while above is not None:
            yield above
            above = self.parent.get(above)

    def loops_above(self, statement: Stmt) -> tuple[For, ...]:
        """Return the loops around a statement up to the nearest block, outermost first."""
        found: list[For] = []
        above = self.parent.get(statement)
        while above is not None and not isinstance(above, Block):
            if isinstance(above, For):
                found.append(above)
            above = self.parent.get(above)
        return tuple(reversed(found))

    def binders_above(self, statement: Stmt) -> tuple[For | Let, ...]:
        """Return the loops and lets around a statement up to the nearest block, outermost first."""
        found: list[For | Let] = []
        above = self.parent.get(statement)
        while above is not None and not isinstance(above, Block):
            if isinstance(above, _BINDERS):
                found.append(above)
            above = self.parent.get(above)
        return tuple(reversed(found))

    def contains(self, outer: Stmt, inner: Stmt) -> bool:
        """Return whether ``inner`` is ``outer`` or is nested in it."""
        above: Stmt | None = inner
        while above is not None and above is not outer:
            above = self.parent.get(above)
        return above is not None

    def common(self, statements: Iterable[Stmt]) -> Stmt:
        """Return the innermost statement that is or encloses each of the statements."""
        paths = [[*reversed(list(self.ancestors(s))), s] for s in statements]
        shared = self.function.body
        for level in zip(*paths, strict=False):
            if any(s is not level[0] for s in level):
                break
            shared = level[0]
        return shared

    def names(self) -> frozenset[str]:
        """Return all names in use."""
        if self._names is None:
            taken = {self.function.name, *(b.name for b in self.buffers.values())}
            taken.update(self._part.all_names, (v.name for v in self.symbols()))
            self._names = frozenset(taken)
        return self._names

    def symbols(self) -> frozenset[Var]:
        """Return the symbols of the function's parameters and of buffers of the whole function."""
        if self._symbols is None:
            buffers = (*self.function.buffer_params, *self.function.buffers)
            self._symbols = _symbols_of(buffers).union(self.function.scalar_params)
        return self._symbols

    def facts(self, statement: Stmt) -> Facts:
        """Return the facts in scope at a statement: facts of the function, loops, and branches."""
        known = self._facts.get(statement)
        if known is None:
            known = self._facts[statement] = self._derive(statement)
        return known

    def _derive(self, statement: Stmt) -> Facts:
        above = self.parent.get(statement)
        if above is None:
            return self.function.facts
        outer = self.facts(above)
        match above:
            case For(var=var, extent=extent):
                return within_loop(outer, var, extent)
            case Let(var=var, lower=lower, upper=upper):
                return assuming(outer, var >= lower, var < upper)
            case Block(iters=iters, init=init):
                if statement is init:
                    outer = self._before_reduction(above, outer)
                    iters = tuple(v for v in iters if v.kind != "reduce")
                for item in iters:
                    outer = within_loop(outer, item.var, item.extent)
                return outer
            case If(condition=condition, then=then):
                claim = condition if statement is then else negate(condition)
                return assuming(outer, claim)
            case _:
                return outer

    def _before_reduction(self, block: Block, facts: Facts) -> Facts:
        """Return the facts at a block without those of the loops before which its init runs."""
        path: list[Stmt] = [block]
        while (above := self.parent.get(path[-1])) is not None and not isinstance(above, Block):
            path.append(above)
        around = tuple(reversed(path[1:]))
        inner = around[reduction_position(around, block) :]
        spatial = (v.binding.free for v in block.iters if v.kind != "reduce")
        omitted = {s.var for s in inner if isinstance(s, _BINDERS)}
        return outside_loops(facts, omitted - frozenset[Var]().union(*spatial))

    def blocks_in(self, statement: Stmt) -> tuple[Block, ...]:
        """Return the outermost blocks in a statement, in program order.

        If the statement is a block, only this block is returned. Nested blocks are not included:
        a block is one unit to the statements around it.
        """
        return _blocks_in(statement)

    def outermost_blocks(self) -> tuple[Block, ...]:
        """Return the blocks that are not nested in a block, in program order."""
        if self._outermost is None:
            self._outermost = self.blocks_in(self.function.body)
        return self._outermost

    def leaf_blocks(self) -> tuple[Block, ...]:
        """Return the blocks without nested blocks, in program order."""
        outer = {self.block_around(b) for b in self.blocks.values()}
        return tuple(b for b in self.blocks.values() if b not in outer)

    def block_around(self, statement: Stmt) -> Block | None:
        """Return the innermost block that encloses a statement, or None."""
        return next((s for s in self.ancestors(statement) if isinstance(s, Block)), None)

    def lets_in(self, statement: Stmt) -> tuple[Let, ...]:
        """Return the lets in a statement, outside of the blocks in it, in program order."""
        return tuple(s for s in self.lets if s is statement or self._reaches(s, statement))

    def _reaches(self, inner: Stmt, outer: Stmt) -> bool:
        """Return whether a statement is nested in another one, outside of the blocks in it."""
        for above in self.ancestors(inner):
            if above is outer:
                return True
            if isinstance(above, Block):
                return False
        return False

    def outer_lets(self, buffer: Buffer) -> tuple[Let, ...]:
        """Return the lets outside of blocks that load an integer from a buffer, in order."""
        return tuple(s for s in self.lets_in(self.function.body) if s.load.buffer is buffer)

    def writers(self, buffer: Buffer) -> tuple[Block, ...]:
        """Return the outermost blocks with a store to a buffer, in program order."""
        return tuple(
            b for b in self.outermost_blocks() if any(s.buffer is buffer for s in block_stores(b))
        )


@lru_cache(maxsize=1024)
def _symbols_of(buffers: tuple[Buffer, ...]) -> frozenset[Var]:
    dims = {dim for b in buffers for dim in (*b.shape, *(b.strides or ()))}
    return frozenset[Var]().union(*map(free_vars, dims))


@lru_cache(maxsize=4096)
def _blocks_in(statement: Stmt) -> tuple[Block, ...]:
    found, stack = list[Block](), [statement]
    while stack:
        top = stack.pop()
        if isinstance(top, For):
            stack.append(top.body)
        elif isinstance(top, Block):
            found.append(top)
        elif isinstance(top, Seq) and len(top.body) >= _SHARED:
            for child in top.body:
                found.extend(_blocks_in(child))
        else:
            stack.extend(reversed(children(top)))
    return tuple(found)


def block_stores(block: Block) -> Iterator[Store]:
    """Yield the stores of a block, first those of its init."""
    if block.init is not None:
        yield from stores(block.init)
    yield from stores(block.body)


@lru_cache(maxsize=512)
def tree_of(function: PrimFunc) -> Tree:
    """Return the index of a function; results are cached.

    Examples
    --------
    >>> from ..dtype import f32
    >>> from ..loop.builder import Builder
    >>> b = Builder("copy")
    >>> x, y = b.param("x", (8,), f32), b.param("y", (8,), f32, "out")
    >>> b.compute(y, lambda i: b.load(x, i))
    >>> [loop.var.name for loop in tree_of(b.finish()).loops.values()]
    ['i0']
    """
    return Tree(function)
