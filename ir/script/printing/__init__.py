"""The printer: what a person reads, and reads back exactly."""
