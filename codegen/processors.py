"""Processors that code is made for, whether or not this process runs on one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Cpu:
    """A processor as code generation sees it.

    Parameters
    ----------
    name : str
        LLVM's name of the processor whose instructions and timing are assumed.
    features : str
        LLVM's features beyond those of the name, such as ``"+avx2,+fma"``.
    vector_bits : int
        Width of a vector register.
    registers : int
        Number of vector registers.
    triple : str
        LLVM's name of processor and system.
    abi : str
        LLVM's name of the calling convention where the triple leaves a choice.

    Examples
    --------
    >>> LEVELS["avx2"].lanes(32)
    8
    """

    name: str
    features: str
    vector_bits: int
    registers: int
    triple: str = "x86_64-unknown-linux-gnu"
    abi: str = ""

    def lanes(self, bits: int) -> int:
        """Give how many elements of so many bits one register holds."""
        return max(1, self.vector_bits // bits)


LEVELS: Final = {
    "avx2": Cpu("x86-64-v3", "", 256, 16),
    "avx512": Cpu("x86-64-v4", "", 512, 32),
}
"""Feature sets with a name: the x86-64 levels 3 and 4."""

FAMILIES: Final = {
    "aarch64": Cpu("generic", "+neon", 128, 32, "aarch64-unknown-linux-gnu"),
    "riscv64": Cpu(
        "generic-rv64", "+m,+a,+f,+d,+c", 64, 32, "riscv64-unknown-linux-gnu", "lp64d"
    ),
    "wasm32": Cpu(
        "generic", "+simd128,+bulk-memory,+nontrapping-fptoint,+sign-ext", 128, 16,
        "wasm32-unknown-unknown",
    ),
}  # fmt: skip
"""The least that every processor of another family has."""

FEATURES: Final = {
    "aarch64": ("bf16", "dotprod", "fullfp16", "i8mm", "lse", "sve", "sve2"),
    "riscv64": ("v", "zba", "zbb", "zbs", "zfh", "zvfh"),
    "wasm32": ("relaxed-simd", "tail-call"),
}
"""What a target may ask for beyond that."""
