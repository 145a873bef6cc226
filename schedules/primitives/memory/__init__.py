"""Primitives that plan memory."""
