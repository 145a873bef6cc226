"""Steps that draw a random decision, which the trace records and a replay imposes."""
