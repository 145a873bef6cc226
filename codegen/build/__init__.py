"""Compile workers: LLVM text to object files, and the object cache."""
