"""The families of random programs, and the choice of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fuzz.families import (
    accesses,
    attentions,
    dense,
    domains,
    functions,
    images,
    indexed,
    mixtures,
    narrow,
    pairs,
    rows,
    scans,
    scoped,
    shared,
    state,
    times,
    updates,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping

    from tests.fuzz.program import Program

FAMILIES: Mapping[str, Callable[[random.Random], Program]] = {
    f.__name__: f
    for f in (
        dense.contraction, dense.window, dense.reduction, dense.chain, dense.border,
        images.convolution,
        rows.softmax, rows.norm, rows.attention, rows.scalar, rows.pointwise, rows.columns,
        domains.triangle, domains.band, domains.agreeing, domains.branch, domains.guard,
        domains.overwide, domains.polynomial, domains.repeated, domains.empty, domains.product,
        indexed.gather, indexed.shifted_gather, indexed.scatter, indexed.histogram,
        indexed.ragged, indexed.csr, indexed.paged, indexed.append,
        state.in_place, state.recurrence, state.rolling, state.guarded_window,
        state.masked_temporary, state.several_stores, state.raw, state.nested, state.biased,
        updates.rows_updated, updates.rows_crossed, updates.product_epilogue,
        accesses.flattened, accesses.both_triangular, accesses.anti_diagonal, accesses.strided,
        accesses.joined, accesses.pages, accesses.butterfly,
        times.double_buffer, times.wavefront, times.factorization, times.swap, times.cyclic,
        times.running,
        mixtures.several_indices, mixtures.dependent_sums, mixtures.several_outputs,
        mixtures.offset_domains,
        scoped.scoped_rows, scoped.scoped_depths, scoped.scoped_sums, scoped.scoped_guards,
        scoped.ragged_scratch,
        narrow.narrow_product, narrow.packed_map, narrow.narrow_chain,
        functions.exact_functions, functions.elementary_functions,
        scans.scans, scans.pair_scans, scans.recurrences,
        pairs.complex_maps, pairs.complex_sums, pairs.complex_scans, pairs.complex_functions,
        pairs.interleaved,
        shared.bound_chain, shared.two_stores, shared.extremes, shared.reducers, shared.in_order,
        shared.moments, attentions.fused_attention,
    )
}  # fmt: skip


def program(rng: random.Random) -> Program:
    """Draw a program of any family."""
    return rng.choice(list(FAMILIES.values()))(rng)
