"""Convolutions, recognized from their loops: sums of products over windows of an image."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..ir.analysis import reorders
from ..ir.loop.nodes import Block, Element, IterVar, Load, PrimFunc
from ..ir.loop.straight_line import single_store, straight_line
from ..ir.loop.visit import stores
from ..ir.symbolic import Expr, Var, const_value, linear_form, substitute, var
from ..ir.symbolic.terms import FloorDiv
from ..ir.symbolic.traverse import postorder
from .patterns import are_complete, factors_of
from .primitives.graph.collapse_dims import nests


@dataclass(frozen=True, slots=True)
class Convolution:
    """``C[.., x] += A[.., x * stride + kx * dilation] * W[o, .., kx]``, then element-wise blocks.

    ``block`` is the reduction, ``prologue`` the blocks before it, such as the padding of the image,
    and ``epilogue`` those after it, in order. ``column`` is the iteration variable x of adjacent
    elements of the result, which only the last index of the image contains, with the factor
    ``stride``. ``channel`` is the iteration variable o that the weights are indexed by: groups of
    ``shared`` adjacent channels read the same elements of the image; None for all channels. A
    product of matrices is a convolution whose windows have one element.
    """

    prologue: tuple[Block, ...]
    block: Block
    epilogue: tuple[Block, ...]
    column: IterVar
    channel: IterVar
    image: Load
    weight: Load
    stride: int
    shared: int | None

    @property
    def has_windows(self) -> bool:
        """Whether a window may have several elements."""
        return self.image.indices[-1] != self.column.var

    @property
    def rows(self) -> tuple[IterVar, ...]:
        """The other iteration variables of the result, in the order of its dimensions."""
        store = next(stores(self.block.body))
        order = {index: k for k, index in enumerate(store.indices)}
        found = (v for v in self.block.iters if v.kind == "spatial")
        others = [v for v in found if v not in (self.column, self.channel)]
        return tuple(sorted(others, key=lambda v: order[v.var]))

    @property
    def terms(self) -> tuple[IterVar, ...]:
        """The iteration variables of the sum."""
        return tuple(v for v in self.block.iters if v.kind == "reduce")

    @property
    def along_rows(self) -> tuple[IterVar, ...]:
        """The terms that an index of the image adds to its last row; none without rows."""
        if not self.rows:
            return ()
        row = self.rows[-1].var
        along = {v for i in self.image.indices if row in i.free for v in i.free}
        return tuple(v for v in self.terms if v.var in along)


def convolution_of(func: PrimFunc) -> Convolution | None:
    """Return the convolution that an unscheduled kernel computes; None if it computes another.

    Every block runs its whole domain, each iteration once.

    Examples
    --------
    >>> from ..ir.script import parse
    >>> f = parse('''
    ... @prim_func
    ... def f(x: Buffer[(4, 34), f32], w: Buffer[(8, 4, 3), f32], y: Out[(8, 32), f32]):
    ...     for o in range(8):
    ...         for i in range(32):
    ...             for c in range(4):
    ...                 for k in range(3):
    ...                     with block("conv"):
    ...                         vo, vi, vc, vk = spatial(o), spatial(i), reduce(c), reduce(k)
    ...                         with init(): y[vo, vi] = 0.0
    ...                         y[vo, vi] += x[vc, vi + vk] * w[vo, vc, vk]
    ... ''').prim("f")
    >>> found = convolution_of(f)
    >>> found.image.buffer.name, found.column.var.name, found.channel.var.name, found.stride
    ('x', 'vi', 'vo', 1)
    """
    around = around_reduction(func)
    parts = around and _operands(around[1])
    if around is None or parts is None:
        return None
    return Convolution(*around, *parts)


def around_reduction(
    func: PrimFunc,
) -> tuple[tuple[Block, ...], Block, tuple[Block, ...]] | None:
    """Return the only reduction of an unscheduled kernel, with the blocks before and after it.

    Every block is complete and has one store, the reduction can be reordered, and the blocks after
    it have plain stores of its rank. None for another kernel.
    """
    blocks = nests(func, units=True)
    if not blocks or any(straight_line(b.body) is None for b in blocks):
        return None
    if any(single_store(b.body) is None for b in blocks):
        return None
    if any(v.kind == "ordered" for b in blocks for v in b.iters):
        return None
    reductions = [k for k, b in enumerate(blocks) if b.init is not None]
    if len(reductions) != 1 or not are_complete(func, blocks):
        return None
    at = reductions[0]
    before, head, after = blocks[:at], blocks[at], blocks[at + 1 :]
    if not reorders(head) or any(not follows(b, head) for b in after):
        return None
    return tuple(before), head, tuple(after)


def follows(block: Block, head: Block) -> bool:
    """Return whether a block after the sum has a plain store of the same rank."""
    result, own = next(stores(head.body)), next(stores(block.body))
    variables = {v.var for v in block.iters}
    plain = len(set(own.indices)) == len(own.indices) and all(i in variables for i in own.indices)
    return plain and len(own.indices) == len(result.indices) == len(block.iters)


def _operands(block: Block) -> tuple[IterVar, IterVar, Load, Load, int, int | None] | None:
    """Return column, channel, image, weights, stride and shared channels of a convolution."""
    factors, store = factors_of(block), next(stores(block.body))
    spatial = {v.var: v for v in block.iters if v.kind == "spatial"}
    bound = {v.binding for v in block.iters}
    if factors is None or set(store.indices) != set(spatial) or len(store.indices) != len(spatial):
        return None
    if any(const_value(v.extent) == 0 or bound & v.extent.free for v in block.iters):
        return None
    for image, weight in (factors, factors[::-1]):
        found = _windows(block, store.indices, image, weight)
        if found is not None:
            column, channel, stride, shared = found
            if isinstance(image, Load) and isinstance(weight, Load):
                return spatial[column], spatial[channel], image, weight, stride, shared
    return None


def _windows(
    block: Block, result: tuple[Expr, ...], image: Element, weight: Element
) -> tuple[Var, Var, int, int | None] | None:
    """Return column, channel, stride and shared channels if an operand is read in windows."""
    if not isinstance(image, Load) or not isinstance(weight, Load):
        return None
    terms = {v.var for v in block.iters if v.kind == "reduce"}
    indices = [i for i in weight.indices if const_value(i) != 0]
    channels = [i for i in indices if i in result]
    plain = all(isinstance(i, Var) for i in indices)
    if not plain or len(channels) != 1 or set(indices) != {*terms, channels[0]}:
        return None
    channel, column = channels[0], result[-1]
    if not (isinstance(column, Var) and isinstance(channel, Var)) or column is channel:
        return None
    *others, last = image.indices
    form = linear_form(last, (column,))
    if form is None or column not in last.free or any(column in i.free for i in others):
        return None
    stride = const_value(form.coefficients[column])
    if stride is None or stride < 1 or not form.rest.free <= terms:
        return None
    if not form.rest.free and (stride > 1 or const_value(form.rest) != 0):
        return None
    return column, channel, stride, _shared(image, channel)


def _shared(image: Load, channel: Var) -> int | None:
    """Return how many adjacent channels read the same elements of an image; None for all."""
    if not any(channel in i.free for i in image.indices):
        return None
    sizes = set(_divisors(image.indices, channel))
    if len(sizes) != 1:
        return 1
    (size,) = sizes
    member = var("member", lower=0, upper=size - 1)
    split = {channel: var("group", lower=0) * size + member}
    return 1 if any(member in substitute(i, split).free for i in image.indices) else size


def _divisors(indices: tuple[Expr, ...], channel: Var) -> Iterator[int]:
    """Yield the constants by which indices divide a channel."""
    for index in indices:
        for term in postorder(index):
            if isinstance(term, FloorDiv) and term.numerator == channel:
                size = const_value(term.divisor)
                if size is not None:
                    yield size
