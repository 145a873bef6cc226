"""What a program is: symbolic integers, graph, loop, thread and host level IR, and their text."""
