"""Kernels of the default rules against peers and the roofline: ``tests.benchmarks.kernels``."""
