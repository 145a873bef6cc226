"""Executables: compiled programs in this process, on the CPU and on GPUs."""
