"""The CPU families and x86-64 levels that code is generated for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Cpu:
    """A processor that code is generated for.

    Parameters
    ----------
    name : str
        LLVM's name of the processor that determines instruction timing.
    features : str
        LLVM's features in addition to those of ``name``, such as ``"+avx2,+fma"``.
    vector_bits : int
        Width of a vector register, in bits.
    registers : int
        Number of vector registers.
    triple : str
        LLVM's name of architecture, vendor and operating system.
    abi : str
        LLVM's name of the calling convention if the triple allows several.

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
        """Return the number of elements of ``bits`` bits in one vector register, at least 1."""
        return max(1, self.vector_bits // bits)


LEVELS: Final[Mapping[str, Cpu]] = {
    "avx2": Cpu("x86-64-v3", "", 256, 16),
    "avx512": Cpu("x86-64-v4", "", 512, 32),
}
"""The x86-64 processors of the named feature sets: levels 3 and 4."""

FAMILIES: Final[Mapping[str, Cpu]] = {
    "aarch64": Cpu("generic", "+neon", 128, 32, "aarch64-unknown-linux-gnu"),
    "riscv64": Cpu(
        "generic-rv64", "+m,+a,+f,+d,+c", 64, 32, "riscv64-unknown-linux-gnu", "lp64d"
    ),
    "wasm32": Cpu(
        "generic", "+simd128,+bulk-memory,+nontrapping-fptoint,+sign-ext", 128, 16,
        "wasm32-unknown-unknown",
    ),
}  # fmt: skip
"""The baseline processor of each other family.

RISC-V has no vector registers without the feature ``v``; its entry describes the floating-point
registers.
"""


def level_of(features: tuple[str, ...]) -> str:
    """Return the feature set that x86-64 code for these features uses.

    Examples
    --------
    >>> level_of(("avx2", "fma")), level_of(("avx512vnni",)), level_of(())
    ('avx2', 'avx512', 'avx512')
    """
    wide = not features or any(f.startswith("avx512") for f in features)
    return "avx512" if wide else "avx2"
