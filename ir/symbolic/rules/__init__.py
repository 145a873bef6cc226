"""The simplification rules, in tables: one module per kind of term."""
