"""Provers in order of cost: rewrite rules, sampling, isl, z3."""
