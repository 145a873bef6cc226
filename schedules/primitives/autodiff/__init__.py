"""Primitives that differentiate functions."""
