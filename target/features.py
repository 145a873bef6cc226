"""Instruction-set features: the sets with a name, and the features of each processor family."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..errors import TilewrightError
from ..nearest import did_you_mean, listed
from .cpus import FAMILIES, SSE_FEATURES


class UnsupportedPlatformError(TilewrightError):
    """A processor or feature that Tilewright does not generate code for."""

    title = "Unsupported platform"


FEATURE_SETS: Final[Mapping[str, tuple[str, ...]]] = {
    "avx2": ("avx2", "bmi2", "f16c", "fma", "lzcnt", "movbe"),
    "avx512": (
        "avx2", "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl", "bmi2", "f16c", "fma",
        "lzcnt", "movbe",
    ),
}  # fmt: skip
"""The feature sets that Tilewright itself can run on, smallest first, and the features of each."""

PORTABLE_SETS: Final[Mapping[str, tuple[str, ...]]] = {"sse4.2": tuple(sorted(SSE_FEATURES))}
"""The feature sets of older processors, that code can be exported for."""

TENSOR_FEATURES: Final = ("avx512bf16", "avx512vnni")
"""Features outside of the sets that tensor instructions require."""

FAMILY_FEATURES: Final[Mapping[str, tuple[str, ...]]] = {
    "x86_64": (
        "avx2", "avx512bf16", "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl",
        "avx512vnni", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse3", "sse4.1",
        "sse4.2", "ssse3",
    ),
    **{arch: family.features for arch, family in FAMILIES.items()},
}  # fmt: skip
"""The features that an exported library can detect when it is opened, by processor family.

A target of a family other than x86-64 can have only these features. WebAssembly engines validate
modules themselves.
"""


def expanded(features: tuple[str, ...]) -> tuple[str, ...]:
    """Return features with each named set replaced by its members.

    Examples
    --------
    >>> expanded(("avx2", "avx512vnni"))[-2:]
    ('movbe', 'avx512vnni')
    """
    sets = {**FEATURE_SETS, **PORTABLE_SETS}
    return tuple(dict.fromkeys(name for f in features for name in sets.get(f, (f,))))


def check_known(arch: str, requested: tuple[str, ...], known: frozenset[str]) -> None:
    """Check that a processor family has the requested features.

    Raises
    ------
    UnsupportedPlatformError
        If ``requested`` contains a feature that is not in ``known``.
    """
    unknown = [f for f in requested if f not in known]
    if unknown:
        sets = ", ".join(map(repr, FEATURE_SETS))
        kinds = f"feature sets are {sets}; " if arch == "x86_64" else ""
        names = (*FEATURE_SETS, *sorted(known)) if arch == "x86_64" else sorted(known)
        near = did_you_mean(unknown[0], names)
        raise UnsupportedPlatformError(
            f"{arch} has no feature {', '.join(map(repr, unknown))}",
            where=f"features {requested!r} of the target",
            hint=f"{near + ' ' if near else ''}{kinds}features are "
            f"{listed(unknown[0], sorted(known), limit=24)}",
        )
