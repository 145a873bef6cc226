"""Primitives that transform loops."""
