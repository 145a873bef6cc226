"""Primitives that move blocks, or dissolve them into others."""
