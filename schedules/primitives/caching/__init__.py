"""Primitives that stage data in another buffer."""
