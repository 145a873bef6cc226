"""Steps that make several kernels of one: guarded versions, and copies for some callers."""
