"""What lies beside an exported model, or is compiled into it: headers, C, and loaders."""
