"""The CPU families and x86-64 levels that code is generated for: one row per family."""

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
    has_fma, has_f16_conversion : bool
        Whether it has the instructions of the fields of :class:`CpuFamily` with these names.

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
    has_fma: bool = True
    has_f16_conversion: bool = True

    def lanes(self, bits: int) -> int:
        """Return the number of elements of ``bits`` bits in one vector register, at least 1."""
        return max(1, self.vector_bits // bits)


LEVELS: Final[Mapping[str, Cpu]] = {
    "sse4.2": Cpu("x86-64-v2", "", 128, 16, has_fma=False, has_f16_conversion=False),
    "avx2": Cpu("x86-64-v3", "", 256, 16),
    "avx512": Cpu("x86-64-v4", "", 512, 32),
}
"""The x86-64 processors of the named feature sets: levels 2, 3 and 4."""


@dataclass(frozen=True, slots=True)
class CpuFamily:
    """A processor family other than x86-64.

    Parameters
    ----------
    title : str
        The name of the family for users.
    baseline : Cpu
        The processor of a target without features. RISC-V has no vector registers without the
        feature ``v``; its entry describes the floating-point registers.
    linker : str
        The target triple of the linker.
    features : tuple of str
        The features that a target can have, and an exported library can detect when it is opened.
    has_fma : bool
        Whether it has an instruction for ``a * b + c`` with one rounding.
    has_f16_conversion : bool
        Whether it has instructions that convert between f16 and f32.
    pause : tuple of str
        LLVM's intrinsic that a loop calls while it waits, and its operand; empty if there is none.
    runs_libraries : bool
        Whether machine code for it can be loaded as a library; modules of WebAssembly are
        validated by their engine instead.
    c_flags : tuple of str
        Flags of the C compiler for the sources of exports.
    """

    title: str
    baseline: Cpu
    linker: str
    features: tuple[str, ...] = ()
    has_fma: bool = True
    has_f16_conversion: bool = True
    pause: tuple[str, ...] = ()
    runs_libraries: bool = True
    c_flags: tuple[str, ...] = ()


FAMILIES: Final[Mapping[str, CpuFamily]] = {
    "aarch64": CpuFamily(
        "AArch64", Cpu("generic", "+neon", 128, 32, "aarch64-unknown-linux-gnu"),
        "aarch64-linux-gnu", ("bf16", "dotprod", "fullfp16", "i8mm", "lse", "sve", "sve2"),
        pause=("llvm.aarch64.hint", "i32 1"),
    ),
    "riscv64": CpuFamily(
        "64-bit RISC-V",
        Cpu("generic-rv64", "+m,+a,+f,+d,+c", 64, 32, "riscv64-unknown-linux-gnu", "lp64d"),
        "riscv64-linux-gnu", ("v", "zba", "zbb", "zbs", "zfh", "zvfh"),
        has_f16_conversion=False,
    ),
    "wasm32": CpuFamily(
        "WebAssembly",
        Cpu(
            "generic", "+simd128,+bulk-memory,+nontrapping-fptoint,+sign-ext", 128, 16,
            "wasm32-unknown-unknown",
        ),
        "wasm32-freestanding", ("relaxed-simd", "tail-call"),
        has_fma=False, has_f16_conversion=False, runs_libraries=False,
        c_flags=("-mcpu=generic+simd128+bulk_memory+nontrapping_fptoint+sign_ext",),
    ),
}  # fmt: skip
"""The processor families other than x86-64, by the architecture of their targets."""


SSE_FEATURES: Final = frozenset({"popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"})
"""The features of x86-64 level 2 that code may use."""


def level_of(features: tuple[str, ...]) -> str:
    """Return the feature set that x86-64 code for these features uses.

    Examples
    --------
    >>> level_of(("avx2", "fma")), level_of(("avx512vnni",)), level_of(())
    ('avx2', 'avx512', 'avx512')
    >>> level_of(("sse4.2",))
    'sse4.2'
    """
    if features and set(features) <= SSE_FEATURES:
        return "sse4.2"
    wide = not features or any(f.startswith("avx512") for f in features)
    return "avx512" if wide else "avx2"


def cpu_of(arch: str, features: tuple[str, ...]) -> Cpu:
    """Return the vector registers of an architecture and, on x86-64, of a feature set.

    Examples
    --------
    >>> cpu_of("", ("avx2", "fma")).registers, cpu_of("aarch64", ()).vector_bits
    (16, 128)
    """
    return FAMILIES[arch].baseline if arch in FAMILIES else LEVELS[level_of(features)]
