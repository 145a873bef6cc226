"""Read-only analyses of loop-level programs."""

from __future__ import annotations

from .accesses import (
    Access,
    accesses,
    bindings_of,
    domain_of,
    is_plain,
    ranges_of,
    reads,
    values_of,
    writes,
)
from .cost import flops, footprint, live_ranges, peak_bytes, size_in_bytes
from .dataflow import consumers, producers, read_buffers, written_buffers
from .dependences import (
    OWN,
    Conflict,
    access_intervals,
    bound_kinds,
    conflicts,
    feeds,
    finished_inside,
    implied_by_domain,
    is_covered,
    is_private,
    is_reduction,
    iterated_kinds,
    loops_inside,
    private_copies,
    region_at,
    writes_always,
    writes_separate,
    written_in,
)
from .disjoint_writes import binders_inside, writes_disjoint
from .domains import Coverage, Domain, executed_domain, loop_values, results_domain
from .enclosing import enclosing, statements_around
from .facts_at import assuming, outside_loops, within_loop, within_loops
from .instances import Instances, Multiplicity, determined, instances
from .intervals import Interval, covers, interval_of, union, within_dimension
from .iter_map import injective_in
from .pattern import PatternKind, pattern_kind
from .regions import with_own_regions, with_regions
from .tree import Tree, block_stores, tree_of
from .updates import (
    excluding_identities,
    operation_on_own,
    reduction_of,
    reduction_update,
    reorders,
    starts_at_identity,
    update_of,
)
from .written_before_read import written_before_read

__all__ = [
    "OWN",
    "Access",
    "Conflict",
    "Coverage",
    "Domain",
    "Instances",
    "Interval",
    "Multiplicity",
    "PatternKind",
    "Tree",
    "access_intervals",
    "accesses",
    "assuming",
    "binders_inside",
    "bindings_of",
    "block_stores",
    "bound_kinds",
    "conflicts",
    "consumers",
    "covers",
    "determined",
    "domain_of",
    "enclosing",
    "excluding_identities",
    "executed_domain",
    "feeds",
    "finished_inside",
    "flops",
    "footprint",
    "implied_by_domain",
    "injective_in",
    "instances",
    "interval_of",
    "is_covered",
    "is_plain",
    "is_private",
    "is_reduction",
    "iterated_kinds",
    "live_ranges",
    "loop_values",
    "loops_inside",
    "operation_on_own",
    "outside_loops",
    "pattern_kind",
    "peak_bytes",
    "private_copies",
    "producers",
    "ranges_of",
    "read_buffers",
    "reads",
    "reduction_of",
    "reduction_update",
    "region_at",
    "reorders",
    "results_domain",
    "size_in_bytes",
    "starts_at_identity",
    "statements_around",
    "tree_of",
    "union",
    "update_of",
    "values_of",
    "with_own_regions",
    "with_regions",
    "within_dimension",
    "within_loop",
    "within_loops",
    "writes",
    "writes_always",
    "writes_disjoint",
    "writes_separate",
    "written_before_read",
    "written_buffers",
    "written_in",
]
