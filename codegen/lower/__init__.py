"""Lowering: scheduled loop IR to thread IR, and graph functions to host IR."""

from .pipeline import LoweredKernel, kernel_symbols, lower_kernel

__all__ = ["LoweredKernel", "kernel_symbols", "lower_kernel"]
