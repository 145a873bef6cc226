"""Elementwise functions as thread-IR values: single operations or polynomials."""

from .functions import binary_function, unary_function

__all__ = ["binary_function", "unary_function"]
