"""The parser: Python's own syntax tree, read and never executed."""
