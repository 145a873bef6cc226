"""Read-only queries of scheduled loop IR that several passes use."""
