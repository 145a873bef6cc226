"""Primitives that map loop nests to tensor intrinsics."""
