"""The ``pad_einsum`` primitive."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from ....ir.analysis import Tree, accesses, is_plain, reads, reduction_update, with_regions, writes
from ....ir.dtype import DType
from ....ir.loop.nodes import (
    Binary,
    Block,
    Buffer,
    Cast,
    Condition,
    Element,
    For,
    IterVar,
    Load,
    Number,
    Stmt,
    Store,
    Where,
)
from ....ir.loop.ranges import loop_var
from ....ir.loop.visit import Rebuilder, replace_statement, seq, substitute_in
from ....ir.symbolic import (
    TRUE,
    Expr,
    Var,
    all_of,
    ceildiv,
    eq,
    free_vars,
    is_proved,
    to_text,
)
from ...apply import Primitive, Rewrite
from ...edit import Edit
from ...handles import BlockRef, Handle
from ...loop_nests import nest, whole
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State

_IndexedBuffer = tuple[Buffer, tuple[Expr, ...]]
"""A buffer, and the iteration variables that index it."""


@primitive(family="tensorize", returns=tuple[BlockRef, ...])
@dataclass(frozen=True, slots=True)
class PadEinsum(Primitive):
    """Pad the operands of a contraction, so that every extent is a multiple of a tile size.

    Before::

        for i, j, k in grid(M, N, K):
            C[i, j] += A[i, k] * B[k, j]

    After (``padding=(16, 1, 1)``)::

        for i, k in grid(ceildiv(M, 16) * 16, K):
            A_pad[i, k] = where(i < M, A[i, k], 0)
        for i, j, k in grid(ceildiv(M, 16) * 16, N, K):
            C_pad[i, j] += A_pad[i, k] * B[k, j]
        for i, j in grid(M, N):
            C[i, j] = C_pad[i, j]

    Parameters
    ----------
    block : BlockRef
        The contraction.
    padding : tuple of int
        The tile size per iteration variable of the block, in iterations; 1 for no padding.

    Notes
    -----
    Operands with a padded dimension are copied, with zeros in the padding, and the result is
    cropped. Extents that provably are multiples do not change. To pad during the copy
    to another memory scope, apply ``cache_read`` to the padded buffer and ``compute_inline`` to the
    padding block. The results are the handles of the padding blocks, in the order of the loads,
    followed by that of the cropping block, if there is one. Cost: linear in the size of the
    function.

    Names elsewhere: TVM ``pad_einsum``; Halide: none.

    References
    ----------
    TensorIR (ASPLOS '23), §4.3; TVM, ``tir.Schedule.pad_einsum``.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... n = symbols("n", lower=1)
    ...
    ... @prim_func
    ... def mv(a: Buffer[(n, 8), f32], b: Buffer[(8,), f32], c: Out[(n,), f32]):
    ...     for i in range(n):
    ...         for k in range(8):
    ...             with block("mv"):
    ...                 vi, vk = spatial(i), reduce(k)
    ...                 with init(): c[vi] = 0.0
    ...                 c[vi] += a[vi, vk] * b[vk]
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> sch.pad_einsum("mv", padding=(16, 1))
    (<block pad_a of mv>, <block crop_c of mv>)
    >>> print(sch)
    n = symbols("n", lower=1)
    <BLANKLINE>
    @prim_func(scheduled=True)
    def mv(a: Buffer[(n, 8), f32], b: Buffer[(8,), f32], c: Out[(n,), f32]):
        a_pad = alloc((ceildiv(n, 16) * 16, 8), f32)
        c_pad = alloc((ceildiv(n, 16) * 16,), f32)
        for ax0 in range(ceildiv(n, 16) * 16):
            for ax1 in range(8):
                with block("pad_a"):
                    vax0, vax1 = spatial(ax0), spatial(ax1)
                    a_pad[vax0, vax1] = where(vax0 < n, a[vax0, vax1], 0.0)
        for i in range(ceildiv(n, 16) * 16):
            for k in range(8):
                with block("mv"):
                    vi, vk = spatial(i), reduce(k)
                    with init(): c_pad[vi] = 0.0
                    c_pad[vi] += a_pad[vi, vk] * b[vk]
        for ax0_1 in range(n):
            with block("crop_c"):
                vax0_1 = spatial(ax0_1)
                c[vax0_1] = c_pad[vax0_1]
    """

    class Requires(Requirement):
        """The requirements of ``pad_einsum``."""

        EINSUM = (
            "the block is an einsum: it stores one element per spatial iteration, indexed by the "
            "spatial iteration variables, of a buffer that it reads only to update; every index "
            "of its loads is one iteration variable; a reduction has its init"
        )
        WHOLE_LOOPS = (
            "the loops around the block contain nothing else, and each runs one iteration "
            "variable over its whole extent, which does not depend on another loop"
        )
        TILE_SIZES = "there is one positive tile size per iteration variable"
        ZERO_PADDING = (
            "a padded reduction is a sum of products in which every load has the reduction "
            "variable as an index, so that the padding adds 0"
        )
        INCOMPLETE_TILE = "at least one extent is not provably a multiple of its tile size"

    block: BlockRef
    padding: tuple[int, ...]

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the block, its loops and the number of tile sizes."""
        block, tree = state.block(self.block), state.tree(self.block.function)
        for message in _not_einsum(tree, block):
            yield Problem(self.Requires.EINSUM, f"block {block.name!r} {message}", (self.block,))
        message = _not_trivial(tree, block)
        if message is not None:
            yield Problem(self.Requires.WHOLE_LOOPS, message, (self.block,))
        given, wanted = len(self.padding), len(block.iters)
        if given != wanted or any(p < 1 for p in self.padding):
            names = ", ".join(v.var.name for v in block.iters)
            yield Problem(
                self.Requires.TILE_SIZES,
                f"padding {self.padding} must have one positive tile size for each of the {wanted} "
                f"iteration variables of block {block.name!r} ({names})",
                (self.block,),
                {"given": given, "wanted": wanted},
            )

    def proofs(self, state: State) -> Iterator[Problem]:
        """Check that an extent needs padding, and that padding does not change a sum."""
        block = state.block(self.block)
        padded = self._padded(state)
        if not padded:
            shown = ", ".join(to_text(v.extent) for v in block.iters)
            yield Problem(
                self.Requires.INCOMPLETE_TILE,
                f"extents {shown} are already multiples of {self.padding}",
                (self.block,),
            )
        reduced = [v.var for v in block.iters if v.kind == "reduce" and v.var in padded]
        unsafe = {v: message for v in reduced if (message := _not_zero(block, v)) is not None}
        for message in unsafe.values():
            yield Problem(
                self.Requires.ZERO_PADDING,
                message,
                (self.block,),
                fixes=self._without(state, frozenset(unsafe)),
            )

    def _without(self, state: State, unsafe: frozenset[Var]) -> tuple[PadEinsum, ...]:
        """Return the step without padding of some reductions, if any padding remains."""
        iters = state.block(self.block).iters
        pairs = zip(iters, self.padding, strict=True)
        padding = tuple(1 if v.var in unsafe else p for v, p in pairs)
        step = replace(self, padding=padding)
        return (step,) if step._padded(state) else ()  # noqa: SLF001

    def _padded(self, state: State) -> dict[Var, Expr]:
        """Return the new extents of the iteration variables that need padding."""
        block = state.block(self.block)
        facts = state.tree(self.block.function).facts(block)
        return {
            v.var: ceildiv(v.extent, p) * p
            for v, p in zip(block.iters, self.padding, strict=True)
            if p > 1 and not is_proved(eq(v.extent % p, 0), facts)
        }

    def rewrite(self, state: State) -> Rewrite:
        """Insert the copies, and let the block access them."""
        edit = Edit(state, self.block.function)
        block = state.block(self.block)
        padding = _Padding(edit, block, self._padded(state))
        loops = edit.tree.loops_above(block)
        main = padding.enlarged(loops)
        body = seq(*padding.before, main, *padding.after)
        made = (*padding.before_blocks, *padding.after_blocks)
        used = [access.buffer for access in accesses(block)]
        return edit.finish(
            replace_statement(edit.tree.function.body, loops[0], body),
            results=tuple(edit.block_ref(b) for b in made),
            buffers=(*edit.tree.function.buffers, *padding.buffers),
            like=next((b for b in used if edit.tree.allocs.get(b) is not None), None),
        )

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield a padding to multiples of 16, the tile size of most intrinsics."""
        if isinstance(selection, BlockRef):
            block = state.block(selection)
            if block.iters and not any(_not_einsum(state.tree(selection.function), block)):
                yield cls(selection, (16,) * len(block.iters))


def _not_einsum(tree: Tree, block: Block) -> Iterator[str]:
    found = writes(block)
    if not is_plain(block) or len(found) != 1 or not isinstance(block.body, Store):
        yield "does not consist of exactly one store"
        return
    variables = {v.var: v.extent for v in block.iters}
    target = found[0]
    if any(v.kind == "ordered" for v in block.iters):
        yield "has ordered iteration variables"
    spatial = {v.var for v in block.iters if v.kind == "spatial"}
    if set(target.indices) != spatial or len(target.indices) != len(spatial):
        yield f"does not index {target.buffer.name!r} by its spatial iteration variables, each once"
        return
    for index, size in zip(target.indices, target.buffer.shape, strict=True):
        if isinstance(index, Var) and not is_proved(
            eq(variables[index], size), tree.function.facts
        ):
            yield f"does not write every element of {target.buffer.name!r}"
    updates = any(v.kind == "reduce" for v in block.iters)
    loaded = {a.buffer for a in (reads(block) if updates else accesses(block)) if not a.writes}
    if target.buffer in loaded:
        yield f"reads its output {target.buffer.name!r}"
    if any(b is not block for b in tree.writers(target.buffer)):
        yield f"is not the only writer of {target.buffer.name!r}"
    for access in reads(block):
        if not all(i in variables for i in access.indices):
            shown = ", ".join(map(to_text, access.indices))
            yield f"reads {access.buffer.name}[{shown}], whose indices are not iteration variables"
    if any(v.kind == "reduce" for v in block.iters) and block.init is None:
        yield "is a reduction without an init"


def _not_trivial(tree: Tree, block: Block) -> str | None:
    """Return why the loops of a block are not one per iteration variable, or None."""
    loops = tree.loops_above(block)
    around = list(tree.ancestors(block))[: len(loops)]
    single = all(isinstance(s, For) for s in around)
    bindings = [v.binding for v in block.iters]
    bare = len(loops) == len(bindings) and {x.var for x in loops} == set(bindings)
    extents = {x.var: x.extent for x in loops}
    same = bare and all(extents[_var(v.binding)] is v.extent for v in block.iters)
    if loops and single and same and block.predicate == TRUE:
        return _dependent_extent(block, extents)
    return (
        f"the loops around block {block.name!r} are not a perfect nest with one loop per "
        "iteration variable over its whole extent"
    )


def _dependent_extent(block: Block, loops: Mapping[Var, Expr]) -> str | None:
    """Return the iteration variable whose extent depends on a loop, or None."""
    dependent = next((v for v in block.iters if not free_vars(v.extent).isdisjoint(loops)), None)
    if dependent is None:
        return None
    return (
        f"the extent {to_text(dependent.extent)} of iteration variable {dependent.var.name!r} of "
        f"block {block.name!r} depends on another loop"
    )


def _var(term: Expr) -> Var:
    if not isinstance(term, Var):
        raise TypeError(f"{term} is not a variable")
    return term


def _not_zero(block: Block, variable: Var) -> str | None:
    """Return why zeros in the padding of a reduction may change the sum, or None."""
    update = reduction_update(block)
    if update is None or update[1].op != "add":
        return (
            f"block {block.name!r} is not a sum, so zeros in the padding of {variable.name!r} "
            "may change its result"
        )
    for factor in _factors(update[1].right):
        match factor:
            case Load(indices=indices) if variable in indices:
                continue
            case Number(value=value) if math.isfinite(value):
                continue
            case Load(buffer=buffer):
                return (
                    f"{buffer.name!r} is not indexed by {variable.name!r}, so its product with the "
                    "padding may not be 0"
                )
            case _:
                return f"block {block.name!r} is not a sum of products of loads"
    return None


def _factors(element: Element) -> Iterator[Element]:
    match element:
        case Binary(op="mul", left=left, right=right):
            yield from _factors(left)
            yield from _factors(right)
        case Cast(operand=operand):
            yield from _factors(operand)
        case _:
            yield element


class _Padding(Rebuilder):
    """The padded copies of the operands of a contraction, and the padded contraction."""

    def __init__(self, edit: Edit, block: Block, padded: dict[Var, Expr]) -> None:
        self._edit, self._block, self._padded = edit, block, padded
        self._extents = {v.var: v.extent for v in block.iters}
        self._copies: dict[_IndexedBuffer, Buffer] = {}
        self.before: list[Stmt] = []
        self.after: list[Stmt] = []
        self.before_blocks: list[Block] = []
        self.after_blocks: list[Block] = []
        for access in reads(block):
            if self._grows(access.indices):
                self._pad(access.buffer, access.indices)
        target = writes(block)[0]
        if self._grows(target.indices):
            self._crop(target.buffer, target.indices)

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The new buffers."""
        return tuple(self._copies.values())

    def _grows(self, indices: tuple[Expr, ...]) -> bool:
        return any(i in self._padded for i in indices)

    def _copy(self, buffer: Buffer, indices: tuple[Expr, ...]) -> Buffer:
        pairs = zip(indices, buffer.shape, strict=True)
        shape = tuple(self._padded.get(_var(i), size) for i, size in pairs)
        copy = self._edit.buffer(f"{buffer.name}_pad", shape, buffer.dtype, "global")
        self._copies[buffer, indices] = copy
        return copy

    def _pad(self, buffer: Buffer, indices: tuple[Expr, ...]) -> None:
        if (buffer, indices) in self._copies:
            return
        copy = self._copy(buffer, indices)

        def value(at: tuple[Expr, ...]) -> Element:
            sides = zip(at, indices, buffer.shape, strict=True)
            padded = [(i, {self._extents[_var(v)], d}) for i, v, d in sides if v in self._padded]
            inside = all_of(*(i < limit for i, limits in padded for limit in limits))
            return Where(Condition(inside), Load(buffer, at), _zero(buffer.dtype))

        made = self._elementwise(f"pad_{buffer.name}", copy, copy.shape, value)
        self.before_blocks.append(made)
        self.before.append(self._nest(made))

    def _crop(self, buffer: Buffer, indices: tuple[Expr, ...]) -> None:
        copy = self._copy(buffer, indices)
        made = self._elementwise(
            f"crop_{buffer.name}", buffer, buffer.shape, lambda at: Load(copy, at)
        )
        self.after_blocks.append(made)
        self.after.append(self._nest(made))

    def _elementwise(
        self,
        name: str,
        target: Buffer,
        shape: tuple[Expr, ...],
        value: Callable[[tuple[Expr, ...]], Element],
    ) -> Block:
        edit, origins = self._edit, self._block.origins
        variables = [edit.loop_var(f"vax{k}", size) for k, size in enumerate(shape)]
        pairs = zip(variables, shape, strict=True)
        iters = tuple(IterVar(v, size, "spatial", v) for v, size in pairs)
        at: tuple[Expr, ...] = tuple(variables)
        body = Store(target, at, value(at), origins)
        return with_regions(
            Block(edit.mint(), edit.fresh(name), iters, (), (), body, origins=origins)
        )

    def _nest(self, block: Block) -> Stmt:
        return nest(self._edit, block, whole(block), self._edit.tree.function.facts)

    def load(self, load: Load) -> Element:
        copy = self._copies.get((load.buffer, load.indices))
        return load if copy is None else Load(copy, load.indices)

    def store(self, store: Store) -> Stmt:
        copy = self._copies.get((store.buffer, store.indices))
        return store if copy is None else replace(store, buffer=copy)

    def enlarged(self, loops: tuple[For, ...]) -> Stmt:
        """Return the contraction on the copies, under loops with the padded extents."""
        block = self._block
        init = None if block.init is None else self.statement(block.init)
        fresh = {v: loop_var(v.name, extent) for v, extent in self._padded.items()}
        loop_vars: dict[Var, Var] = {}
        iters: list[IterVar] = []
        for item in block.iters:
            if item.var not in self._padded:
                iters.append(item)
                continue
            old, size = _var(item.binding), self._padded[item.var]
            loop_vars[old] = loop_var(old.name, size)
            iters.append(IterVar(fresh[item.var], size, item.kind, loop_vars[old]))
        body = substitute_in(self.statement(block.body), fresh)
        init = None if init is None else substitute_in(init, fresh)
        made: Stmt = with_regions(replace(block, iters=tuple(iters), init=init, body=body))
        sizes = {_var(v.binding): self._padded[v.var] for v in block.iters if v.var in self._padded}
        for loop in reversed(loops):
            variable, extent = loop_vars.get(loop.var, loop.var), sizes.get(loop.var, loop.extent)
            made = replace(loop, var=variable, extent=extent, body=made)
        return made


def _zero(dtype: DType) -> Number:
    return Number(dtype.number(0), dtype)
