"""Host IR: the ordered, allocated form of a graph function, and the run-time support in it."""
