"""Primitives that change where data lies."""
