"""The ladder of provers, cheapest first: own rules, sampling, isl, z3."""
