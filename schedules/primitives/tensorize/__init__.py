"""Primitives that put tensor instructions in the place of loops."""
