"""Default schedules without search: shape-generic, built from the same primitives."""

from .default import apply_defaults, schedule_kernel, with_default_schedule

__all__ = ["apply_defaults", "schedule_kernel", "with_default_schedule"]
