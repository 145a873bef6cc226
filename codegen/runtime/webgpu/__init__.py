"""Kernels on a GPU through WebGPU."""
