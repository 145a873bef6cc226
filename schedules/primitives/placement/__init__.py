"""Primitives that move or inline blocks."""
