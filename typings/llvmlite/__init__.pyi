"""What Tilewright calls of llvmlite; the rest is left out on purpose."""

__version__: str
