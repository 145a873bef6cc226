"""Addresses of library functions in this process."""

from .addresses import FAILED, MissingSymbolError, library_address, raised_error

__all__ = ["FAILED", "MissingSymbolError", "library_address", "raised_error"]
