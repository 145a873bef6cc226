"""Primitives that change how loops nest and count."""
