"""Names of TVM and Halide that schedules lack, and their equivalents here, for error messages."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

METHODS: Mapping[str, str] = MappingProxyType(
    {
        # TVM
        "copy": "TVM's `copy` is `branch` here",
        "fork_seed": "each step draws with the seed of the schedule and its own number; "
        "`tilewright.Schedule(module, seed=1)` sets the seed",
        "get": "`sch.state.loop(handle)` and `sch.state.block(handle)` return the node of a handle",
        "get_sref": "`sch.state.loop(handle)` and `sch.state.block(handle)` return the node of a "
        "handle",
        "loops": "`sch.get_loops(block)` returns the loops around a block",
        "blocks": "`sch.get_blocks(function)` returns the blocks of a function",
        "mod": "TVM's `mod` is `module` here",
        "reindex": "the `index_map` of `cache_read` changes the layout of a copy",
        "reindex_cache_read": "TVM's `reindex_cache_read` is `cache_read` with an `index_map` here",
        "remove_rv": "handles do not need to be removed",
        "seed": "the seed is a parameter of the constructor: `tilewright.Schedule(module, seed=1)`",
        "work_on": "the parameter `function` of `get_block` and `get_loop` selects a function",
        # Halide
        "compute_root": "blocks are at the root until `compute_at` moves them",
        "gpu_blocks": 'Halide\'s `gpu_blocks` is `sch.bind(loop, "blockIdx.x")` here',
        "gpu_threads": 'Halide\'s `gpu_threads` is `sch.bind(loop, "threadIdx.x")` here',
        "in_": "Halide's `in` is `cache_read` here",
        "partition": "Halide's `partition` is `loop_partition` here",
        "store_at": "a buffer is allocated where its block is; `compute_at` moves both",
        "store_in": "Halide's `store_in` is `set_scope` here",
        # Actions that are functions of the package
        "build": "`tilewright.compile(sch)` compiles a schedule",
        "compile": "`tilewright.compile(sch)` compiles a schedule",
        "measure": "`tilewright.measure(sch, *arguments)` measures a schedule",
        "export": "`tilewright.export(sch, directory)` exports a schedule",
        "print": "`sch.show()` prints the program",
        "script": "`str(sch)` is the text of the program",
        "save": "`to_json(sch.trace)` of tilewright.schedules is the text of the steps",
    }
)
"""Attributes that users of other compilers expect on a schedule, with a hint."""

PARAMETERS: Mapping[str, str] = MappingProxyType(
    {
        "ann_key": "key",
        "ann_val": "value",
        "block_or_loop": "target",
        "buffer_index": "buffer",
        "disable_predication": "tail",
        "func_name": "function",
        "loop_rv": "loop",
        "read_buffer_index": "buffer",
        "storage_scope": "scope",
        "tail_strategy": "tail",
        "tensor_intrin": "intrinsic",
        "thread_axis": "thread",
        "write_buffer_index": "buffer",
    }
)
"""Parameters of TVM and Halide, with the parameter of the same purpose here."""

UNIT_LOOPS = ("preserve_unit_iters", "preserve_unit_loops")
"""Parameters of TVM that state whether loops of one iteration remain."""


def method_hint(name: str) -> str:
    """Return the hint for an attribute of another compiler; empty if the name is not known.

    Examples
    --------
    >>> method_hint("mod")
    "TVM's `mod` is `module` here"
    """
    return METHODS.get(name, "")


def parameter_hint(name: str, known: tuple[str, ...]) -> str:
    """Return the question for a parameter of another compiler; empty if no known one matches.

    Examples
    --------
    >>> parameter_hint("storage_scope", ("block", "buffer", "scope"))
    "TVM's or Halide's 'storage_scope' is 'scope' here"
    >>> parameter_hint("preserve_unit_loops", ("block", "loop"))
    'moved blocks get no loops of one iteration, other steps keep them; omit it'
    """
    if name in UNIT_LOOPS:
        return "moved blocks get no loops of one iteration, other steps keep them; omit it"
    own = PARAMETERS.get(name)
    return f"TVM's or Halide's {name!r} is {own!r} here" if own in known else ""
