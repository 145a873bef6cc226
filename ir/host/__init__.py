"""Host IR: the ordered form of a graph function with explicit memory management."""
