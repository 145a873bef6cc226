"""Lowering of prepared loop IR to thread IR: addresses, values, statements, and intrinsics."""
