"""Checks and passes on the thread IR of GPU kernels: launch limits, warps, barriers."""
