"""Default schedules of kernels for GPUs: shape-generic, as traces of ordinary steps."""

from .default import schedule_for_gpu

__all__ = ["schedule_for_gpu"]
