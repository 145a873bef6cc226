"""Default schedules of kernels for GPUs: shape-generic, built from the same primitives."""

from .default import schedule_for_gpu

__all__ = ["schedule_for_gpu"]
