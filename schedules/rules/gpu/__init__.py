"""Default rules of kernels for GPUs: shape-generic composite steps."""
