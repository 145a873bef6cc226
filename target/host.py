"""The host machine: processor features, cores, caches and memory, from the operating system."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

from ..errors import TilewrightError
from .cpus import LEVELS
from .features import FEATURE_SETS, TENSOR_FEATURES, UnsupportedPlatformError
from .target import Target

UNKNOWN: Final = "unknown"

HOST_FEATURES: Final = "TILEWRIGHT_HOST_FEATURES"
"""The environment variable that names the widest feature set to use of this machine."""

NVIDIA_DEVICE: Final = Path("/dev/nvidiactl")
"""The device file of the driver of NVIDIA GPUs."""

FLAGS: Final[Mapping[str, str]] = {
    "3dnowprefetch": "prfchw", "abm": "lzcnt", "amx_bf16": "amx-bf16", "amx_complex": "amx-complex",
    "amx_fp16": "amx-fp16", "amx_int8": "amx-int8", "amx_tile": "amx-tile",
    "avx512_bf16": "avx512bf16", "avx512_bitalg": "avx512bitalg", "avx512_fp16": "avx512fp16",
    "avx512_vbmi2": "avx512vbmi2", "avx512_vnni": "avx512vnni",
    "avx512_vp2intersect": "avx512vp2intersect", "avx512_vpopcntdq": "avx512vpopcntdq",
    "avx_ifma": "avxifma", "avx_ne_convert": "avxneconvert", "avx_vnni": "avxvnni",
    "avx_vnni_int16": "avxvnniint16", "avx_vnni_int8": "avxvnniint8", "bmi1": "bmi",
    "lahf_lm": "sahf", "lm": "64bit", "pclmulqdq": "pclmul", "pni": "sse3", "rdrand": "rdrnd",
    "sha_ni": "sha", "sse4_1": "sse4.1", "sse4_2": "sse4.2",
}  # fmt: skip
"""LLVM's names of the processor features that Linux names differently, by Linux's name."""

SAME_NAME: Final = frozenset(
    (  # noqa: SIM905  # a list literal is several times longer
        "adx aes avx avx2 avx512bw avx512cd avx512dq avx512f avx512ifma avx512vbmi avx512vl bmi2 "
        "cldemote clflushopt clwb clzero cmov cx16 cx8 f16c fma fma4 fsgsbase fxsr gfni invpcid "
        "lwp mmx movbe movdir64b movdiri mwaitx pku popcnt rdpid rdpru rdseed rtm serialize sha512 "
        "sm3 sm4 sse sse2 sse4a ssse3 tbm vaes vpclmulqdq waitpkg wbnoinvd xop xsave xsavec "
        "xsaveopt xsaves"
    ).split()
)
"""Processor features that have the same name in Linux and LLVM."""


class UnknownFeatureSetError(TilewrightError):
    """A value of ``TILEWRIGHT_HOST_FEATURES`` that does not name a feature set."""

    title = "Unknown feature set"


def host_cap() -> str | None:
    """Return the feature set that the environment caps this machine at; None if it does not.

    Raises
    ------
    UnknownFeatureSetError
        If the environment variable does not name a feature set.
    """
    cap = os.environ.get(HOST_FEATURES)
    if cap and cap not in FEATURE_SETS:
        raise UnknownFeatureSetError(
            f"{HOST_FEATURES}={cap!r} does not name a feature set",
            hint=f"feature sets are {', '.join(map(repr, FEATURE_SETS))}; unset the variable to"
            " use all features of this machine",
        )
    return cap or None


ARM_FLAGS: Final[Mapping[str, str]] = {
    "asimddp": "dotprod", "asimdhp": "fullfp16", "atomics": "lse", "bf16": "bf16", "i8mm": "i8mm",
    "sve": "sve", "sve2": "sve2",
}  # fmt: skip
"""LLVM's names of features of AArch64, by Linux's name."""


def machine_features() -> frozenset[str]:
    """Return LLVM's names of this processor's features, whatever ``HOST_FEATURES`` is.

    Examples
    --------
    >>> machine_features() >= host_features()
    True
    """
    of_arm = _cpuinfo().get("Features", "").split()
    return _processor_features() | {ARM_FLAGS[f] for f in of_arm if f in ARM_FLAGS}


def host_features() -> frozenset[str]:
    """Return LLVM's names of this processor's features, without those that exceed the cap.

    Examples
    --------
    >>> "sse2" in host_features()
    True
    """
    found = _processor_features()
    cap = host_cap()
    if cap is None:
        return found
    # A vector extension is hidden unless the set includes it: avxvnni is newer than avx2.
    included = {"avx", *FEATURE_SETS[cap]}
    return frozenset(f for f in found if f in included or not f.startswith(("amx", "avx")))


@cache
def _processor_features() -> frozenset[str]:
    """Return all features of the processor; none where the system does not list them."""
    flags = _cpuinfo().get("flags", "").split()
    names = {FLAGS.get(f, f) for f in flags if f in FLAGS or f in SAME_NAME}
    # SSE4.2 includes the CRC32 instructions, which have no flag.
    return frozenset(names | ({"crc32"} if "sse4.2" in names else set()))


def host_platform() -> tuple[str, str]:
    """Return the architecture and the operating system of this process."""
    return platform.machine(), sys.platform


def levels_of_host() -> tuple[str, ...]:
    """Return the named feature sets that this machine can run, smallest first."""
    have = host_features()
    return tuple(name for name, needed in FEATURE_SETS.items() if have.issuperset(needed))


def check_host() -> None:
    """Check that Tilewright can generate code for this machine.

    Raises
    ------
    UnsupportedPlatformError
        If this is not x86-64 Linux with AVX2.
    """
    machine, system = host_platform()
    if machine not in ("x86_64", "AMD64") or not system.startswith("linux"):
        raise UnsupportedPlatformError(
            f"cannot generate code for {machine} {system}",
            hint="Tilewright runs on x86-64 Linux with AVX2",
        )
    if not levels_of_host():
        raise UnsupportedPlatformError(
            "this processor lacks AVX2, or another feature of x86-64-v3",
            hint="Tilewright runs on x86-64 Linux with AVX2; it requires the features "
            f"{', '.join(FEATURE_SETS['avx2'])}",
        )


def require_runnable(target: Target) -> None:
    """Check that this machine can run code for a target.

    Raises
    ------
    UnsupportedPlatformError
        If the target is another processor family, or has features that this machine lacks.
    """
    check_host()
    if target.arch not in ("", "x86_64"):
        raise UnsupportedPlatformError(
            f"code for {target.arch} does not run on this x86-64 machine",
            hint=f"export the module, and load it on a machine of architecture {target.arch}",
        )
    have, levels = host_features(), levels_of_host()
    missing = [f for f in target.features if f not in levels and f not in have]
    if missing:
        raise UnsupportedPlatformError(
            f"this processor has no {', '.join(map(repr, missing))}",
            hint=f"feature sets are {', '.join(map(repr, LEVELS))}; this processor has "
            + ", ".join(sorted(have)),
        )


def with_level(target: Target) -> Target:
    """Return a target with the host's best feature set if it names none.

    Schedules depend on the feature set, so it must be explicit before scheduling.

    Examples
    --------
    >>> with_level(Target("cpu", features=("avx2",))).features
    ('avx2',)
    >>> with_level(Target("cpu")).features[0] == levels_of_host()[-1]
    True
    """
    if target.is_gpu or target.features or target.arch not in ("", "x86_64"):
        return target
    check_host()
    level, have = levels_of_host()[-1], host_features()
    more = (f for f in TENSOR_FEATURES if level == "avx512" and f in have)
    return replace(target, features=(level, *more))


def has_nvidia_gpu() -> bool:
    """Return whether the driver of an NVIDIA GPU is loaded."""
    return NVIDIA_DEVICE.exists()


def available_threads() -> int:
    """Return the number of cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def machine_facts() -> dict[str, str]:
    """Return processor, cores, clock governor, cache, memory, load and system versions.

    A fact that the system does not report is ``"unknown"``.

    Examples
    --------
    >>> sorted(machine_facts())[:3]
    ['cores', 'governor', 'last_level_cache']
    """
    return {
        "processor": _processor(),
        "cores": f"{available_threads()} of {os.cpu_count()}",
        "governor": _line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "last_level_cache": _last_level_cache(),
        "memory": _memory(),
        "load": f"{os.getloadavg()[0]:.2f}",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def _line(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").split("\n", 1)[0].strip() or UNKNOWN
    except OSError:
        return UNKNOWN


def _cpuinfo() -> dict[str, str]:
    """Return the fields of the first processor; empty where the system does not list them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n", 1)[0].splitlines()
    except OSError:
        return {}
    fields = (line.split(":", 1) for line in lines if ":" in line)
    return {key.strip(): value.strip() for key, value in fields}


def _processor() -> str:
    fields = _cpuinfo()
    if "model name" not in fields:
        return platform.processor() or UNKNOWN
    kind = f"family {fields.get('cpu family', '?')}, model {fields.get('model', '?')}"
    return f"{fields['model name']} ({kind})"


def _last_level_cache() -> str:
    folder = Path("/sys/devices/system/cpu/cpu0/cache")
    levels = sorted(folder.glob("index*/level"), key=lambda p: _line(str(p)))
    return _line(str(levels[-1].with_name("size"))) if levels else UNKNOWN


_LARGE: Final = 64 << 20
"""The assumed bytes of a last-level cache of unknown size: larger than most."""

_UNITS: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def last_level_bytes() -> int:
    """Return the size of the last-level cache in bytes; 64 MiB if the system does not report it.

    Examples
    --------
    >>> last_level_bytes() >= 1 << 16
    True
    """
    return _size(_last_level_cache()) or _LARGE


def second_level_bytes() -> int:
    """Return the size of a core's second-level cache in bytes; 0 if it is not reported.

    Examples
    --------
    >>> second_level_bytes() < last_level_bytes() or second_level_bytes() >= 1 << 16
    True
    """
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/level"):
        if _line(str(path)) == "2":
            return _size(_line(str(path.with_name("size"))))
    return 0


def _size(text: str) -> int:
    """Return the bytes of a size such as ``48K``; 0 for other text."""
    number, unit = text[:-1], text[-1:]
    return int(number) * _UNITS[unit] if number.isdigit() and unit in _UNITS else 0


def _memory() -> str:
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return f"{pages * size / 2**30:.1f} GiB"
