"""Default schedules that need no search: shape-generic, as traces of ordinary steps."""

from .default import apply_defaults, finished, schedule_kernel

__all__ = ["apply_defaults", "finished", "schedule_kernel"]
