"""Passes from scheduled loop IR to the loop IR that lowering to thread IR accepts."""
