"""Steps on whole graphs: lowering operators, fusing, folding, versions of kernels."""
