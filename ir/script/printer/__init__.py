"""The printer of the text format; the parser reads its output back exactly."""
