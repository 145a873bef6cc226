"""CUDA devices of executables, by PyCUDA and the CUDA driver."""
