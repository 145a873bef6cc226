"""Running what was compiled: tensors, the runtime table, executables, workers, the cache."""
