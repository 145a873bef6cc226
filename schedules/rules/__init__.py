"""Default schedules without search: shape-generic, built from the same primitives."""

from typing import TYPE_CHECKING

from ...renamed import module_getattr
from .default import apply_defaults, schedule_kernel, with_default_schedule

__all__ = ["apply_defaults", "schedule_kernel", "with_default_schedule"]

if not TYPE_CHECKING:  # a type checker reports former names as unknown
    __getattr__ = module_getattr(__name__)
