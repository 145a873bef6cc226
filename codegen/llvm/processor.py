"""LLVM CPU names, features, and vector registers of targets."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from ...target import host
from ...target.cpus import FAMILIES, LEVELS, Cpu, level_of
from ...target.features import FEATURE_SETS, check_known
from ...target.target import Target


@cache
def known_features() -> frozenset[str]:
    """Return all x86-64 features that LLVM knows."""
    from llvmlite import binding

    return frozenset(binding.get_host_cpu_features())


@cache
def _host_name() -> str:
    from llvmlite import binding

    return binding.get_host_cpu_name()


def resolve(target: Target) -> Cpu:
    """Return the CPU of a target, which may differ from the host.

    Raises
    ------
    UnsupportedPlatformError
        If the CPU or a feature is unknown, or the target is the host and the host is not x86-64
        with AVX2.

    Examples
    --------
    >>> resolve(Target("cpu", features=("avx2",))).lanes(32)
    8
    >>> resolve(Target("cpu", arch="aarch64", features=("dotprod",))).features
    '+neon,+dotprod'
    """
    if target.arch in FAMILIES:
        family = FAMILIES[target.arch]
        check_known(target.arch, target.features, frozenset(family.features))
        base = family.baseline
        return replace(base, features=_joined(base.features, target.features))
    if not target.features and not target.arch:
        return _host()
    extras = tuple(f for f in target.features if f not in FEATURE_SETS)
    check_known("x86_64", extras, known_features())
    level = "avx512" if "avx512" in target.features else "avx2"
    base = LEVELS["sse4.2" if level_of(target.features) == "sse4.2" else level]
    return replace(base, features=_joined("", tuple(sorted(extras))))


def _joined(base: str, features: tuple[str, ...]) -> str:
    return ",".join(filter(None, (base, *(f"+{f}" for f in features))))


def _host() -> Cpu:
    """Return the host CPU with all detected features."""
    host.check_host()
    best, have = LEVELS[host.levels_of_host()[-1]], host.host_features()
    # The CPU name may imply features that a virtual machine or the feature cap disables.
    absent = () if "avx512f" in have else ("-avx512f",)
    name = best.name if host.host_cap() else _host_name()
    return replace(best, name=name, features=",".join((*(f"+{f}" for f in sorted(have)), *absent)))
