"""Isolated processes that execute compiled code and the interpreter."""
