"""Lowering: scheduled loop IR to thread IR, and graph functions to host IR."""

from typing import TYPE_CHECKING

from ...renamed import module_getattr
from .pipeline import LoweredKernel, kernel_symbols, lower_kernel

__all__ = ["LoweredKernel", "kernel_symbols", "lower_kernel"]

if not TYPE_CHECKING:  # a type checker reports former names as unknown
    __getattr__ = module_getattr(__name__)
