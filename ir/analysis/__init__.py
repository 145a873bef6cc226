"""Read-only questions about loop-level programs."""

from __future__ import annotations

from .accesses import Access, accesses, bindings_of, is_plain, reads, writes
from .cost import flops, footprint, live_ranges, peak_bytes, size_in_bytes
from .dataflow import consumers, producers, read_buffers, written_buffers
from .dependences import (
    OWN,
    Conflict,
    access_spans,
    conflicts,
    covered_inside,
    feeds,
    feeds_kind,
    finished_inside,
    implied_by_domain,
    is_private,
    is_reduction,
    loops_inside,
    reduction_update,
    region_at,
    writes_apart,
    written_at,
)
from .digits import determined
from .pattern import PatternKind, pattern_kind
from .places import assuming, conjuncts, within_loop, within_loops
from .regions import with_regions
from .spans import Span, covers, span_of, union, within_dimension
from .tree import Tree, block_stores, tree_of

__all__ = [
    "OWN",
    "Access",
    "Conflict",
    "PatternKind",
    "Span",
    "Tree",
    "access_spans",
    "accesses",
    "assuming",
    "bindings_of",
    "block_stores",
    "conflicts",
    "conjuncts",
    "consumers",
    "covered_inside",
    "covers",
    "determined",
    "feeds",
    "feeds_kind",
    "finished_inside",
    "flops",
    "footprint",
    "implied_by_domain",
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
    "span_of",
    "tree_of",
    "union",
    "with_regions",
    "within_dimension",
    "within_loop",
    "within_loops",
    "writes",
    "writes_apart",
    "written_at",
    "written_buffers",
]
