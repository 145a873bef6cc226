"""The parser of the text format; it uses Python's syntax tree and executes nothing."""
