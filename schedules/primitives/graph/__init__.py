"""Graph-level primitives."""
