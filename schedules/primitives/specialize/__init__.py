"""Primitives that specialize and clone kernels."""
