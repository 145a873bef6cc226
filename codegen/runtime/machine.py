"""The facts of this machine that a measurement depends on, recorded with it."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from .build import versions
from .table import available_threads

UNKNOWN = "unknown"


def machine_facts() -> dict[str, str]:
    """Tell processor, cores, clock, caches, memory, load and versions, as far as they show.

    What the system does not tell is said to be unknown, never guessed.

    Examples
    --------
    >>> sorted(machine_facts())[:3]
    ['compiler', 'cores', 'governor']
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
        "compiler": versions(),
    }


def _line(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").split("\n", 1)[0].strip() or UNKNOWN
    except OSError:
        return UNKNOWN


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or UNKNOWN
    found = dict(line.split(":", 1) for line in lines if ":" in line)
    words = {key.strip(): value.strip() for key, value in found.items()}
    if "model name" not in words:
        return platform.processor() or UNKNOWN
    kind = f"family {words.get('cpu family', '?')}, model {words.get('model', '?')}"
    return f"{words['model name']} ({kind})"


def _last_level_cache() -> str:
    folder = Path("/sys/devices/system/cpu/cpu0/cache")
    levels = sorted(folder.glob("index*/level"), key=lambda p: _line(str(p)))
    return _line(str(levels[-1].with_name("size"))) if levels else UNKNOWN


_LARGE = 64 << 20
"""Bytes of a last-level cache that does not tell its size: larger than most."""

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def last_level_bytes() -> int:
    """Tell the size of the last-level cache in bytes; a large one's where the system hides it.

    Examples
    --------
    >>> last_level_bytes() >= 1 << 16
    True
    """
    text = _last_level_cache()
    number, unit = text[:-1], text[-1:]
    return int(number) * _UNITS[unit] if number.isdigit() and unit in _UNITS else _LARGE


def _memory() -> str:
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return f"{pages * size / 2**30:.1f} GiB"
