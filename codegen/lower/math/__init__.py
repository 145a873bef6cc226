"""Functions of elements as values: direct operations, or polynomials for what has none."""

from .functions import binary_function, unary_function

__all__ = ["binary_function", "unary_function"]
