"""Kernels on the GPU of the page that displays a workbench."""
