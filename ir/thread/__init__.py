"""Thread-level IR: what a kernel, or the host flow, is after lowering, for CPU and GPU alike."""
