"""Loop IR of a kernel prepared for its launch, and the checks of the launch."""
