"""Transposes that a matrix product computes itself, by reading its right operand transposed."""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.analysis import PatternKind, pattern_kind, tree_of
from ..ir.analysis.updates import reduction_update
from ..ir.graph.nodes import Binding, CallTIR, GraphFunc, Value
from ..ir.graph.visit import users
from ..ir.loop.nodes import Binary, Block, Cast, Element, Load
from ..ir.loop.straight_line import single_store
from ..ir.module import Module
from ..ir.symbolic import free_vars
from .quantized_weights import MATRIX


def fused_transposes(module: Module, graph: GraphFunc) -> frozenset[Value]:
    """Return the values that permute dimensions and are computed inside of a product.

    The only user of such a value is the right operand of a matrix product, or another such value.
    After them, the product reads elements that are adjacent along the reduced dimension, such as
    the keys of an attention. It copies them into panels, as it would copy the transposed operand;
    for a single row, it reads them in their order.
    """
    calls = {b.value: b for b in graph.bindings}
    uses = users(graph)
    found: set[Value] = set()
    for binding in graph.bindings:
        for value, axis in _right_operands(module, binding):
            found.update(_chain(module, calls, uses, value, axis))
    return frozenset(found - set(graph.returned))


def _right_operands(module: Module, binding: Binding) -> Iterator[tuple[Value, int]]:
    """Yield the right operand of a product and its reduced axis, if the last axis is the column."""
    call = binding.right
    if not isinstance(call, CallTIR) or call.versions or call.updates:
        return
    kernel = module.prim(call.function)
    if pattern_kind(kernel) != PatternKind.OUT_FUSABLE:
        return
    blocks = tree_of(kernel).outermost_blocks()
    for load, axis in (found for block in blocks for found in _transposable(block)):
        if load.buffer in kernel.buffer_params:
            operand = call.args[kernel.buffer_params.index(load.buffer)]
            if isinstance(operand, Value) and call.args.count(operand) == 1:
                yield operand, axis


def _transposable(block: Block) -> Iterator[tuple[Load, int]]:
    """Yield the factor of a product whose last index is the column, and the axis of the depth."""
    update = reduction_update(block)
    depth = [v.var for v in block.iters if v.kind == "reduce"]
    if update is None or len(depth) != 1 or len(update[0].indices) < MATRIX:
        return
    store, added = update
    product = added.right
    if not isinstance(product, Binary) or product.op != "mul":
        return
    row, column = store.indices[-2:]
    for load in (uncast(product.left), uncast(product.right)):
        if isinstance(load, Load) and load.indices and load.indices[-1] == column:
            free = {v for index in load.indices for v in free_vars(index)}
            if depth[0] in load.indices and row not in free:
                yield load, load.indices.index(depth[0])


def uncast(element: Element) -> Element:
    """Return the operand of conversions."""
    while isinstance(element, Cast):
        element = element.operand
    return element


def _chain(
    module: Module,
    calls: dict[Value, Binding],
    uses: dict[Value, list[Binding]],
    value: Value,
    axis: int,
) -> list[Value]:
    """Return the longest chain of permutations whose source is contiguous along an axis."""
    chain: list[Value] = []
    complete = 0
    while value in calls and len(uses.get(value, [])) == 1:
        permuted = _permutation(module, calls[value])
        if permuted is None:
            break
        chain.append(value)
        value, axes = permuted
        axis = axes[axis]
        if axis == len(axes) - 1:
            complete = len(chain)
    return chain[:complete]


def _permutation(module: Module, binding: Binding) -> tuple[Value, tuple[int, ...]] | None:
    """Return the value whose dimensions a call permutes, and its axis for each axis of the result.

    A constant is permuted at load time, so its permutation is not part of a product.
    """
    call = binding.right
    if not isinstance(call, CallTIR) or call.versions or call.updates:
        return None
    kernel = module.prim(call.function)
    blocks = tree_of(kernel).outermost_blocks()
    if len(blocks) != 1 or len(kernel.buffer_params) != 2:
        return None
    load = transposed_load(blocks[0])
    source = call.args[0]
    if load is None or load.buffer is not kernel.buffer_params[0] or not isinstance(source, Value):
        return None
    variables = [v.var for v in blocks[0].iters]
    return source, tuple(load.indices.index(v) for v in variables)


def transposed_load(block: Block) -> Load | None:
    """Return the load of a block that only permutes the dimensions of a tensor."""
    store = single_store(block.body)
    if store is None or block.init is not None or not isinstance(store.value, Load):
        return None
    load, variables = store.value, tuple(v.var for v in block.iters)
    same = len(load.indices) == len(variables) and set(load.indices) == set(variables)
    return load if same and store.indices == variables else None
