"""Thread-level IR: lowered kernels and host flow, for CPU and GPU."""
