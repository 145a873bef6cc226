"""The run-time support: entry checks, plans, workspaces, results, providers of the table."""

from . import (
    calls,
    devices,
    gemm,
    memory,
    planner,
    pool,
    providers,
    results,
    views,
    workspaces,
)

__all__ = [
    "calls", "devices", "gemm", "memory", "planner", "pool", "providers", "results", "views",
    "workspaces",
]  # fmt: skip
