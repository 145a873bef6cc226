"""Primitives that take reductions apart."""
