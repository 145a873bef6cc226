"""Primitives that transform reductions."""
