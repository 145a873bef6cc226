"""Facts about machines: targets, feature sets, CPU families, GPU limits, the host."""
