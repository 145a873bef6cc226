"""Tensor instructions by target."""
