"""The run-time support: entry checks, plans, workspaces, results, providers of the table."""

from . import calls, gemm, planner, providers, results, views, workspaces

__all__ = ["calls", "gemm", "planner", "providers", "results", "views", "workspaces"]
