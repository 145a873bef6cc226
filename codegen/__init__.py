"""How a program runs: lowering, LLVM, and the runtime."""
