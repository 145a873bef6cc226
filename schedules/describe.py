"""Descriptions of the parts of a program, as tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from ..display import Cell, Table
from ..ir.analysis import Tree, flops, footprint, size_in_bytes
from ..ir.analysis.bounds import displayed_accesses, status_text
from ..ir.graph.nodes import Binding, GraphFunc, Value
from ..ir.graph.regions import binding_of
from ..ir.graph.visit import all_bindings, all_values, branches_of, operands_of
from ..ir.loop.nodes import Block, Buffer, BufferParam, For, Region
from ..ir.symbolic import TRUE
from .handles import (
    HANDLE_TYPES,
    BindingRef,
    BlockRef,
    BufferRef,
    FunctionRef,
    Handle,
    LoopRef,
    kind_of,
    label,
)
from .problem import ParameterError
from .state import StaleHandleError, State

Rows = list[tuple[Cell, ...]]


def describe(state: State, ref: Handle) -> Table:
    """Return the properties of a part of the program.

    Parameters
    ----------
    state : State
        The version to describe.
    ref : Handle
        The handle of a function, loop, block, buffer or binding. If later steps replaced it by one
        part, that part is described.

    Raises
    ------
    ParameterError
        If ``ref`` is not a handle.
    StaleHandleError
        If the part no longer exists, or was replaced by several parts.
    """
    given = cast("object", ref)
    if not isinstance(given, HANDLE_TYPES):
        raise ParameterError(
            f"expected a handle, got {type(given).__name__}",
            where="argument 'part'",
            hint='pass a handle, such as the result of sch.get_block("matmul")',
        )
    current = state.follow(ref)
    ref = current[0] if len(current) == 1 else ref
    match ref:
        case FunctionRef():
            rows = _function(state, ref)
        case LoopRef():
            rows = _loop(state.tree(ref.function), state.loop(ref))
        case BlockRef():
            rows = _block(state.tree(ref.function), state.block(ref))
        case BufferRef():
            rows = _buffer(state.tree(ref.function), state.buffer(ref))
        case BindingRef():
            rows = _binding(state.module.graph(ref.function), ref)
    scope = "" if isinstance(ref, FunctionRef) else f" of {ref.function}"
    return Table(("property", "value"), tuple(rows), f"{kind_of(ref)} {label(ref)}{scope}")


def _function(state: State, ref: FunctionRef) -> Rows:
    function = state.module.functions.get(ref.function)
    if isinstance(function, GraphFunc):
        return [
            ("parameters", _listed(str(p) for p in function.params)),
            ("bindings", len(function.bindings)),
            ("stage", function.stage),
            ("facts", _listed(str(f.predicate) for f in function.facts)),
        ]
    if function is None:
        raise StaleHandleError(
            f"no function {ref.function!r}", hint=f"functions are {_listed(state.module.functions)}"
        )
    tree = state.tree(ref.function)
    return [
        ("parameters", _listed(str(p) for p in function.params)),
        ("temporaries", _listed(str(b) for b in tree.temporaries)),
        ("loops", len(tree.loops)),
        ("blocks", _listed(b.name for b in tree.blocks.values())),
        ("facts", _listed(str(f.predicate) for f in function.facts)),
        ("accesses", status_text(displayed_accesses(function))),
        ("operations", str(flops(function))),
        ("accessed bytes", str(footprint(function))),
    ]


def _loop(tree: Tree, loop: For) -> Rows:
    inside = [s for s in tree.loops.values() if s is not loop and tree.contains(loop, s)]
    return [
        ("extent", str(loop.extent)),
        ("kind", f"thread {loop.thread}" if loop.kind == "thread" else loop.kind),
        ("loops around", _loops(tree.loops_above(loop))),
        ("loops inside", _loops(inside)),
        ("blocks", _listed(b.name for b in tree.blocks_in(loop))),
        ("annotations", _listed(f"{key} = {value}" for key, value in loop.annotations)),
    ]


def _block(tree: Tree, block: Block) -> Rows:
    rows: Rows = [("loops around", _loops(tree.loops_above(block)))]
    rows += [(f"{v.kind} {v.var.name}", f"{v.binding}, extent {v.extent}") for v in block.iters]
    inside = [b for b in tree.blocks.values() if tree.block_around(b) is block]
    own = [a for a in displayed_accesses(tree.function) if a.block is block]
    rows += [
        ("reads", _regions(block.reads)),
        ("writes", _regions(block.writes)),
        ("accesses", status_text(own) or None),
        ("guard", None if block.predicate == TRUE else str(block.predicate)),
        ("initialization", "none" if block.init is None else str(block.init)),
        ("blocks inside", _listed(b.name for b in inside)),
        ("annotations", _listed(f"{key} = {value}" for key, value in block.annotations)),
    ]
    return rows


def _buffer(tree: Tree, buffer: Buffer) -> Rows:
    params = [p for p in tree.function.params if isinstance(p, BufferParam)]
    access = next((p.access for p in params if p.buffer is buffer), None)
    strides = "compact" if buffer.strides is None else _listed(map(str, buffer.strides))
    return [
        ("role", "temporary" if access is None else f"parameter, access {access}"),
        ("dtype", str(buffer.dtype)),
        ("shape", _listed(map(str, buffer.shape)) or "()"),
        ("scope", buffer.scope),
        ("size (bytes)", str(size_in_bytes(buffer))),
        ("alignment (bytes)", buffer.alignment),
        ("strides (elements)", strides),
        ("written by", _users(tree, buffer, writes=True)),
        ("read by", _users(tree, buffer, writes=False)),
    ]


def _users(tree: Tree, buffer: Buffer, *, writes: bool) -> str:
    return _listed(
        block.name
        for block in tree.leaf_blocks()
        for region in [block.writes if writes else block.reads]
        if any(r.buffer is buffer for r in region)
    )


def _binding(graph: GraphFunc, ref: BindingRef) -> Rows:
    binding = binding_of(graph, ref.uid)
    value = next((v for v in all_values(graph) if v.uid == ref.uid), None)
    if value is None:
        raise StaleHandleError(f"no binding {label(ref)!r}", where=f"function {graph.name!r}")
    return [
        ("annotation", str(value.info)),
        ("value", "parameter" if binding is None else str(binding.right)),
        ("used by", _listed(b.value.name for b in all_bindings(graph.bindings) if _uses(b, value))),
        ("origins", None if binding is None else _listed(sorted(binding.origins))),
    ]


def _uses(binding: Binding, value: Value) -> bool:
    results = (o for branch in branches_of(binding.right) for o in branch.results)
    return any(operand is value for operand in (*operands_of(binding.right), *results))


def _regions(regions: tuple[Region, ...]) -> str:
    return _listed(map(str, regions))


def _loops(loops: Iterable[For]) -> str:
    return _listed(
        f"{x.var.name} ({x.extent}{'' if x.kind == 'serial' else f', {x.thread or x.kind}'})"
        for x in loops
    )


def _listed(words: Iterable[str]) -> str:
    return ", ".join(words) or "none"
