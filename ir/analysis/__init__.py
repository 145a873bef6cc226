"""Read-only analyses of loop-level programs."""

from __future__ import annotations

from .accesses import Access, accesses, bindings_of, is_plain, reads, writes
from .cost import all_in_blocks, flops, footprint, live_ranges, peak_bytes, size_in_bytes
from .dataflow import consumers, producers, read_buffers, written_buffers
from .dependences import (
    OWN,
    Conflict,
    access_intervals,
    bound_kinds,
    conflicts,
    covered_inside,
    feeds,
    finished_inside,
    implied_by_domain,
    is_private,
    is_reduction,
    loops_inside,
    reduction_update,
    region_at,
    writes_disjoint,
    written_at,
)
from .facts_at import assuming, within_loop, within_loops
from .intervals import Interval, covers, interval_of, union, within_dimension
from .iter_map import injective_in
from .pattern import PatternKind, pattern_kind
from .regions import with_regions
from .tree import Tree, block_stores, tree_of

__all__ = [
    "OWN",
    "Access",
    "Conflict",
    "Interval",
    "PatternKind",
    "Tree",
    "access_intervals",
    "accesses",
    "all_in_blocks",
    "assuming",
    "bindings_of",
    "block_stores",
    "bound_kinds",
    "conflicts",
    "consumers",
    "covered_inside",
    "covers",
    "feeds",
    "finished_inside",
    "flops",
    "footprint",
    "implied_by_domain",
    "injective_in",
    "interval_of",
    "is_plain",
    "is_private",
    "is_reduction",
    "live_ranges",
    "loops_inside",
    "pattern_kind",
    "peak_bytes",
    "producers",
    "read_buffers",
    "reads",
    "reduction_update",
    "region_at",
    "size_in_bytes",
    "tree_of",
    "union",
    "with_regions",
    "within_dimension",
    "within_loop",
    "within_loops",
    "writes",
    "writes_disjoint",
    "written_at",
    "written_buffers",
]
