"""Processors: what the host has, and what a target's features mean to LLVM."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from ..ir.errors import TilewrightError
from ..ir.target import Target


class UnsupportedPlatformError(TilewrightError):
    """A processor that Tilewright does not generate code for."""

    title = "Unsupported platform"


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

    Examples
    --------
    >>> resolve(Target("cpu", features=("avx2",))).lanes(32)
    8
    """

    name: str
    features: str
    vector_bits: int
    registers: int

    def lanes(self, bits: int) -> int:
        """Give how many elements of so many bits one register holds."""
        return max(1, self.vector_bits // bits)


_LEVELS: Final = {
    "avx2": Cpu("x86-64-v3", "", 256, 16),
    "avx512": Cpu("x86-64-v4", "", 512, 32),
}
"""Feature sets with a name: the x86-64 levels 3 and 4."""

_NEEDED: Final = {
    "avx2": ("avx2", "bmi2", "f16c", "fma", "lzcnt", "movbe"),
    "avx512": ("avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"),
}


INSTRUCTIONS: Final = ("avx512bf16", "avx512vnni")
"""Features beyond the levels that tensor instructions ask for."""


@cache
def host_features() -> frozenset[str]:
    """Give what this machine's processor can do, in LLVM's names."""
    from llvmlite import binding

    return frozenset(k for k, present in binding.get_host_cpu_features().items() if present)


@cache
def _host_platform() -> tuple[str, str]:
    from llvmlite import binding

    return binding.get_host_cpu_name(), binding.get_process_triple()


def levels_of_host() -> tuple[str, ...]:
    """Give the named feature sets that this machine can run, the least first."""
    have = host_features()
    levels = [level for level, needed in _NEEDED.items() if have.issuperset(needed)]
    return tuple(levels if "avx2" in levels else [])


def resolve(target: Target) -> Cpu:
    """Give the processor that a target means.

    Raises
    ------
    UnsupportedPlatformError
        If this machine is no x86-64 with AVX2, or a feature is unknown or not the host's.
    """
    _check_platform()
    levels = levels_of_host()
    asked = [f for f in target.features if f in _LEVELS]
    extras = [f for f in target.features if f not in _LEVELS]
    _check_features(asked, extras)
    if not target.features:
        name, _ = _host_platform()
        best = _LEVELS[levels[-1]]
        have = host_features()
        # The name alone may promise what a virtual machine hides: without avx512f there is none.
        absent = () if "avx512f" in have else ("-avx512f",)
        features = ",".join((*(f"+{f}" for f in sorted(have)), *absent))
        return Cpu(name, features, best.vector_bits, best.registers)
    base = _LEVELS["avx512" if "avx512" in asked else "avx2"]
    features = ",".join(f"+{f}" for f in sorted(extras))
    return Cpu(base.name, features, base.vector_bits, base.registers)


def with_level(target: Target) -> Target:
    """Name the host's best feature set where a target names none: schedules depend on it.

    Examples
    --------
    >>> with_level(Target("cpu", features=("avx2",))).features
    ('avx2',)
    >>> with_level(Target("cpu")).features[0] == levels_of_host()[-1]
    True
    """
    if target.features or target.arch not in ("", "x86_64"):
        return target
    level = levels_of_host()[-1]
    more = (f for f in INSTRUCTIONS if level == "avx512" and f in host_features())
    return replace(target, features=(level, *more))


def _check_platform() -> None:
    name, triple = _host_platform()
    if not triple.startswith("x86_64") or "linux" not in triple:
        raise UnsupportedPlatformError(
            f"cannot generate code for {triple}", hint="Tilewright runs on x86-64 Linux with AVX2"
        )
    if not levels_of_host():
        raise UnsupportedPlatformError(
            f"processor {name!r} lacks AVX2, FMA or F16C",
            hint="Tilewright runs on x86-64 Linux with AVX2",
        )


def _check_features(asked: list[str], extras: list[str]) -> None:
    missing = [f for f in asked if f not in levels_of_host()]
    missing += [f for f in extras if f not in host_features()]
    if missing:
        raise UnsupportedPlatformError(
            f"this processor has no {', '.join(map(repr, missing))}",
            hint=f"feature sets are {', '.join(map(repr, _LEVELS))}; this processor has "
            + ", ".join(sorted(host_features())),
        )
