"""From prepared loop IR to thread IR: buffers to addresses, elements to values, loops to code."""
