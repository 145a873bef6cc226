"""Fusion patterns of functions, derived from their loops (Relax §4.2, TVM's OpPatternKind)."""

from __future__ import annotations

from enum import IntEnum

from ..loop.nodes import Binary, Block, Element, Let, Load, PrimFunc
from ..loop.visit import walk, walk_element
from ..symbolic import Const, Expr, Var, free_vars
from .accesses import Access, accesses
from .dependences import is_reduction
from .tree import tree_of
from .updates import reduction_update


class PatternKind(IntEnum):
    """The relation between output elements and input elements of a function.

    Fusion compares kinds by their order: a function of one kind can absorb functions of lower
    kinds.
    """

    ELEMENTWISE = 0
    """Each output element depends on input elements of the same index."""
    BROADCAST = 1
    """Element-wise, with inputs that lack some dimensions but keep the order of the others."""
    INJECTIVE = 2
    """Each output element depends on single elements of any index: transpose, slice, gather."""
    REDUCTION = 3
    """Each output element combines many input elements: sums, softmax, norms."""
    OUT_FUSABLE = 4
    """A contraction of two operands, such as matmul; element-wise consumers can be fused."""
    OPAQUE = 5
    """Any other function: ordered iterations, in-place updates, nested blocks."""


def pattern_kind(function: PrimFunc) -> PatternKind:
    """Return the fusion pattern of a function.

    Examples
    --------
    >>> from ..dtype import f32
    >>> from ..loop.builder import Builder
    >>> b = Builder("transpose")
    >>> x, y = b.param("x", (8, 4), f32), b.param("y", (4, 8), f32, "out")
    >>> b.compute(y, lambda i, j: b.load(x, j, i))
    >>> pattern_kind(b.finish()).name
    'INJECTIVE'
    """
    tree = tree_of(function)
    blocks = tree.outermost_blocks()
    in_place = any(getattr(p, "access", "in") in ("inout", "state") for p in function.params)
    if not blocks or in_place or len(blocks) < len(tree.blocks):
        return PatternKind.OPAQUE
    return _combined([_block_kind(b) for b in blocks])


def _combined(kinds: list[PatternKind]) -> PatternKind:
    contractions = kinds.count(PatternKind.OUT_FUSABLE)
    if contractions > 1 or (contractions and PatternKind.REDUCTION in kinds):
        return PatternKind.OPAQUE
    return max(kinds)


def _block_kind(block: Block) -> PatternKind:
    if any(v.kind == "ordered" for v in block.iters):
        return PatternKind.OPAQUE
    if is_reduction(block):
        return _reduction_kind(block)
    found = accesses(block)
    stores = [a for a in found if a.writes]
    if len(stores) != 1 or not _plain(stores[0].indices):
        return PatternKind.INJECTIVE if _spatial_only(found) else PatternKind.OPAQUE
    if any(isinstance(s, Let) for s in walk(block.body)):
        return PatternKind.INJECTIVE
    return max((_load_kind(a, stores[0]) for a in found if not a.writes), default=PatternKind(0))


def _spatial_only(found: tuple[Access, ...]) -> bool:
    written = {a.buffer for a in found if a.writes}
    return all(a.buffer not in written for a in found if not a.writes)


def _plain(indices: tuple[Expr, ...]) -> bool:
    varying = [i for i in indices if not isinstance(i, Const)]
    return all(isinstance(i, Var) for i in varying) and len(set(varying)) == len(varying)


def _load_kind(load: Access, store: Access) -> PatternKind:
    if load.indices == store.indices:
        return PatternKind.ELEMENTWISE
    if not _plain(load.indices):
        return PatternKind.INJECTIVE
    positions = [
        store.indices.index(i) for i in load.indices if i in store.indices and isinstance(i, Var)
    ]
    known = all(i in store.indices or isinstance(i, Const) for i in load.indices)
    in_order = known and positions == sorted(positions)
    return PatternKind.BROADCAST if in_order else PatternKind.INJECTIVE


def _reduction_kind(block: Block) -> PatternKind:
    update = reduction_update(block)
    if update is None:
        return PatternKind.OPAQUE
    store, value = update
    if not _plain(store.indices) or value.op != "add":
        return PatternKind.REDUCTION
    spatial = frozenset(v.var for v in block.iters if v.kind == "spatial")
    reduced = frozenset(v.var for v in block.iters if v.kind == "reduce")
    for element in walk_element(value.right):
        if isinstance(element, Binary) and element.op == "mul":
            left, right = _variables(element.left), _variables(element.right)
            shared = bool(left & right & reduced)
            if shared and left & spatial - right and right & spatial - left:
                return PatternKind.OUT_FUSABLE
    return PatternKind.REDUCTION


def _variables(element: Element) -> frozenset[Var]:
    found: set[Var] = set()
    for inner in walk_element(element):
        if isinstance(inner, Load):
            for index in inner.indices:
                found |= free_vars(index)
    return frozenset(found)
