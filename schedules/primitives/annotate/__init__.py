"""Primitives that add and remove annotations."""
