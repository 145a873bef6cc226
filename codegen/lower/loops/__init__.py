"""Passes from scheduled loop IR to loop IR that the thread-level lowering writes down directly."""
