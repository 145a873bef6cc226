"""What lowering does for GPUs alone: launches, threads of a block, shared memory, barriers."""
