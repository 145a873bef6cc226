"""Lowering: scheduled loop IR to thread IR, and graph functions to host IR."""

from typing import TYPE_CHECKING, Any

from ...renamed import module_getattr

if TYPE_CHECKING:  # a type checker reports former names as unknown
    from .pipeline import LoweredKernel, kernel_symbols, lower_kernel

__all__ = ["LoweredKernel", "kernel_symbols", "lower_kernel"]

if not TYPE_CHECKING:
    _former = module_getattr(__name__)

    def __getattr__(name: str) -> Any:
        """Load a name of the pipeline on first use; processes that only run code need none."""
        if name not in __all__:
            return _former(name)
        from . import pipeline

        return getattr(pipeline, name)
