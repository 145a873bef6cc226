"""The steps that walks aim at, and the programs on which they aim at them.

A few families of programs permit a step such as ``reverse_compute_inline``; a walk that aims at it
starts from one of those. How often a step is the goal of a walk was chosen such that every step is
accepted at least 200 times in 3,000 walks; the report of a run prints the numbers.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tests.fuzz.programs import FAMILIES
from tests.fuzz.steps import ISOLATED, KINDS, LIBRARY, RULES, VERBS, families_of

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence

TEMPORARIES = ("chain", "masked_temporary", "rolling")
"""Families with a temporary that each consumer element reads once."""

ROWS = ("norm", "softmax", "attention", "scalar", "reduction", "overwide", "window", "band")
"""Families with reductions of rows."""

FITTING: Mapping[str, Sequence[str]] = {
    "compute_at": ("norm", "chain", "softmax", "masked_temporary", "rolling"),
    "compute_inline": TEMPORARIES,
    "decompose_reduction": (*ROWS, "contraction", "biased", "triangle", "rolling"),
    "inline_elementwise": ("chain",),
    "pack": ("contraction",),
    "pad_einsum": ("contraction", "norm", "scalar", "chain", "softmax", "pointwise"),
    "register_tile": ("contraction",),
    "reverse_compute_at": ("chain",),
    "reverse_compute_inline": ("chain", "masked_temporary"),
    "rfactor": (*ROWS, "contraction"),
    "scan_blocks": ("scans", "scans", "pair_scans"),
    "schedule_attention": ("fused_attention",),
    "schedule_columns": ("columns",),
    "schedule_windows": ("window",),
    "schedule_convolution": ("convolution",),
    "schedule_elementwise": ("border", "product", "in_place", "chain", "flattened", "strided"),
    "schedule_gpu_matmul": ("contraction",),
    "schedule_gpu_rows": (
        "reduction", "scalar", "overwide", "window", "softmax", "triangle", "rows_crossed",
    ),
    "schedule_matmul": ("contraction",),
    "schedule_scans": ("scans", "pair_scans"),
    "schedule_gpu_scan_runs": ("scans", "pair_scans"),
    "schedule_rows": (
        "reduction", "norm", "scalar", "overwide", "window", "softmax", "rolling", "rows_crossed",
    ),
    "set_scope": ("norm", "guarded_window", "chain", "softmax", "attention", "masked_temporary"),
    "storage_align": ("chain", "attention", "masked_temporary"),
    "tensorize": ("contraction", "contraction", "product_epilogue"),
    "transform_layout": ("norm", "guarded_window", "chain", "softmax", "attention", "rolling"),
}  # fmt: skip
"""The families of programs that permit a step, for steps that most families do not permit."""

WEIGHTS: Mapping[str, int] = {
    "schedule_matmul": 15, "tensorize": 16, "schedule_gpu_matmul": 15, "schedule_elementwise": 15,
    "schedule_rows": 15, "schedule_gpu_rows": 13, "schedule_gpu_nests": 14, "pack": 9,
    "schedule_gpu_loops": 12, "schedule_kernel": 9, "register_tile": 6, "inline_elementwise": 6,
    "schedule_gpu_serial": 6, "reverse_compute_at": 4, "cooperative_copy": 3, "schedule_nests": 3,
    "reverse_compute_inline": 4, "rfactor": 5, "compute_inline": 2, "interchange": 2, "tile": 2,
    "schedule_copy": 2, "unannotate": 2, "pad_einsum": 2, "schedule_scans": 14, "scan_blocks": 2,
    "schedule_gpu_scan_runs": 16, "schedule_convolution": 16,
    "schedule_columns": 16, "schedule_attention": 6, "schedule_windows": 12,
}  # fmt: skip
"""How often a step is the goal of a walk, relative to 1."""

ON_GPU = (*(r for r in RULES if "gpu" in r), "cooperative_copy")
"""Composite steps for GPUs."""

ON_CPU = (
    "schedule_matmul", "schedule_rows", "schedule_elementwise", "schedule_nests", "schedule_scans",
    "schedule_columns", "schedule_convolution", "schedule_attention", "schedule_windows",
    "tensorize",
)  # fmt: skip
"""Steps for CPUs."""


def _goals() -> tuple[str, ...]:
    """Return the steps in the order in which walks aim at them, frequent ones repeatedly."""
    left, found = Counter({v: WEIGHTS.get(v, 1) for v in (*VERBS, *LIBRARY)}), []
    while +left:
        found += [v for v in left if left[v] > 0]
        left.subtract(list(left))
    return tuple(found)


GOALS = _goals()


def goal_of(seed: int) -> str:
    """Return the step that the walk of a seed aims at."""
    return GOALS[seed % len(GOALS)]


def family_of_goal(seed: int, goal: str) -> str:
    """Return the family of programs of the walk of a seed."""
    fitting = FITTING.get(goal) or list(FAMILIES)
    return fitting[(seed + seed // len(GOALS)) % len(fitting)]


def next_verb(rng: random.Random, goal: str, counted: Sequence[str], *, on_gpu: bool) -> str:
    """Draw a step: the goal of the walk, a missing family, a composite, or any primitive."""
    share = rng.random()
    if share < 0.3 and goal not in RULES:
        return rng.choice((goal, *ISOLATED)) if goal == "blockize" else goal
    if share < 0.4:
        return rng.choice(LIBRARY)
    if share < 0.5 and len(counted) >= 4:
        missing = [v for v in VERBS if families_of([v]) - families_of(counted)]
        if missing:
            return rng.choice(missing)
    early = len(counted) < 5 or on_gpu
    verb = rng.choice(VERBS)
    return rng.choice(VERBS) if early and verb in KINDS else verb
