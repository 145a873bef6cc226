"""Lowering: scheduled loop IR to thread IR, and graph functions to host IR."""

from .pipeline import KernelArtifact, kernel_symbols, lower_kernel

__all__ = ["KernelArtifact", "kernel_symbols", "lower_kernel"]
