"""Processors: what the host has, and what a target's features mean to LLVM."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Final

from ..ir.errors import TilewrightError
from ..ir.target import Target
from .processors import FAMILIES, FEATURES, LEVELS, Cpu


class UnsupportedPlatformError(TilewrightError):
    """A processor that Tilewright does not generate code for."""

    title = "Unsupported platform"


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
def known_features() -> frozenset[str]:
    """Give every feature of x86-64 that LLVM has a name for, where this process runs on one."""
    from llvmlite import binding

    return frozenset(binding.get_host_cpu_features())


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
    """Give the processor that a target means; it need not be this machine's.

    Raises
    ------
    UnsupportedPlatformError
        If no such processor or feature is known, or the target is this machine and this is no
        x86-64 with AVX2.

    Examples
    --------
    >>> resolve(Target("cpu", features=("avx2",))).lanes(32)
    8
    >>> resolve(Target("cpu", arch="aarch64", features=("dotprod",))).features
    '+neon,+dotprod'
    """
    if target.arch in FAMILIES:
        return _of_family(target)
    if not target.features and not target.arch:
        return _host()
    asked = [f for f in target.features if f in LEVELS]
    extras = [f for f in target.features if f not in LEVELS]
    _check_known(target, extras, known_features(), tuple(LEVELS))
    base = LEVELS["avx512" if "avx512" in asked else "avx2"]
    return replace(base, features=",".join(f"+{f}" for f in sorted(extras)))


def _of_family(target: Target) -> Cpu:
    base, more = FAMILIES[target.arch], FEATURES[target.arch]
    _check_known(target, list(target.features), frozenset(more), ())
    return replace(base, features=",".join((base.features, *(f"+{f}" for f in target.features))))


def _host() -> Cpu:
    """Give the processor of this machine, with all it has."""
    _check_platform()
    name, _ = _host_platform()
    best, have = LEVELS[levels_of_host()[-1]], host_features()
    # The name alone may promise what a virtual machine hides: without avx512f there is none.
    absent = () if "avx512f" in have else ("-avx512f",)
    features = ",".join((*(f"+{f}" for f in sorted(have)), *absent))
    return replace(best, name=name, features=features)


def require_runnable(target: Target) -> None:
    """Refuse to load code that this machine cannot run.

    Raises
    ------
    UnsupportedPlatformError
        If the target is another processor family, or has features that this machine lacks.
    """
    _check_platform()
    if target.arch not in ("", "x86_64"):
        raise UnsupportedPlatformError(
            f"code for {target.arch} does not run on this x86-64 machine",
            hint="export it, and load it where it runs",
        )
    asked = [f for f in target.features if f in LEVELS]
    missing = [f for f in asked if f not in levels_of_host()]
    missing += [f for f in target.features if f not in LEVELS and f not in host_features()]
    if missing:
        raise UnsupportedPlatformError(
            f"this processor has no {', '.join(map(repr, missing))}",
            hint=f"feature sets are {', '.join(map(repr, LEVELS))}; this processor has "
            + ", ".join(sorted(host_features())),
        )


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


def _check_known(
    target: Target, asked: list[str], known: frozenset[str], sets: tuple[str, ...]
) -> None:
    unknown = [f for f in asked if f not in known]
    if unknown:
        kinds = f"feature sets are {', '.join(map(repr, sets))}; " if sets else ""
        raise UnsupportedPlatformError(
            f"{target.arch or 'x86_64'} has no feature {', '.join(map(repr, unknown))}",
            hint=f"{kinds}features are {', '.join(sorted(known))}",
        )
