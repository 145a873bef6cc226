"""CUDA: the driver behind executables, reached through PyCUDA."""
