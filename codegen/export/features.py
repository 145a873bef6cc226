"""Which instruction sets a library looks for in the processor when a model is opened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...ir.target import IMPLIED, Target
from .errors import ExportError
from .link import arch_of

CHECKED: Final[Mapping[str, tuple[str, ...]]] = {
    "x86_64": (
        "avx2", "avx512bf16", "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl",
        "avx512vnni", "bmi2", "f16c", "fma", "lzcnt", "movbe",
    ),
    "aarch64": ("bf16", "dotprod", "fullfp16", "i8mm", "lse", "sve", "sve2"),
    "riscv64": ("v", "zba", "zbb", "zbs", "zfh", "zvfh"),
}  # fmt: skip
"""What ``native/processor.c`` knows to look for."""


def needed_features(target: Target) -> tuple[str, ...]:
    """List what the processor has to have, beyond the least of its family.

    WebAssembly's engine checks a module itself.

    Raises
    ------
    ExportError
        If the library could not tell whether a processor has a feature.

    Examples
    --------
    >>> needed_features(Target("cpu", arch="aarch64", features=("dotprod",)))
    ('dotprod',)
    """
    known = CHECKED.get(arch_of(target))
    if known is None:
        return ()
    found = tuple(dict.fromkeys(n for f in target.features for n in IMPLIED.get(f, (f,))))
    strange = [f for f in found if f not in known]
    if strange:
        raise ExportError(
            f"a library cannot look for {', '.join(map(repr, strange))} in a processor",
            hint=f"leave it out; a library can look for {', '.join(known)}",
        )
    return found
