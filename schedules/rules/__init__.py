"""Default schedules without search: shape-generic composite steps."""

from typing import TYPE_CHECKING

from ...renamed import module_getattr
from .default import apply_defaults, default_schedule, schedule_kernel, with_default_schedule

__all__ = ["apply_defaults", "default_schedule", "schedule_kernel", "with_default_schedule"]

if not TYPE_CHECKING:  # a type checker reports former names as unknown
    __getattr__ = module_getattr(__name__)
