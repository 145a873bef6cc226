"""Primitives that leave notes for later steps and for lowering."""
