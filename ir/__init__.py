"""Program representation: symbolic integers, graph, loop, thread and host IR, text format."""
