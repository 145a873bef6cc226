"""What a program is compiled for."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from .errors import TilewrightError

Kind: TypeAlias = Literal["cpu", "cuda", "simt"]

KINDS: Final = ("cpu", "cuda", "simt")
CPU_ARCHS: Final = ("x86_64", "aarch64", "riscv64", "wasm32")
GPU_ARCHS: Final = (
    "sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a",
    "sm_100", "sm_100a", "sm_103", "sm_103a", "sm_120", "sm_120a", "sm_121", "sm_121a",
)  # fmt: skip
DEFAULT_GPU_ARCH: Final = "sm_80"

IMPLIED: Final = {
    "avx2": ("avx2", "bmi2", "f16c", "fma", "lzcnt", "movbe"),
    "avx512": (
        "avx2", "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl", "bmi2", "f16c", "fma",
        "lzcnt", "movbe",
    ),
}  # fmt: skip
"""Feature sets with a name, and what each holds."""


class UnknownTargetError(TilewrightError):
    """A target that does not exist; the message lists those that do."""

    title = "Unknown target"


@dataclass(frozen=True, slots=True)
class Target:
    """A machine to compile for.

    Parameters
    ----------
    kind : str
        ``"cpu"``; ``"cuda"`` for an NVIDIA GPU; ``"simt"`` to run a GPU's program on the CPU,
        checked.
    arch : str
        Processor family. On ``"cpu"`` one of ``x86_64``, ``aarch64``, ``riscv64``, ``wasm32``,
        where empty means the one this process runs on; on a GPU such as ``sm_90a``, where empty
        means ``sm_80``.
    features : tuple of str
        Instruction-set features, such as ``("avx2", "fma")``; empty means all of the host's, or
        the least that the family has where it is not the host's.
    threads : int
        Threads a parallel loop may use; 0 means one per core of the machine.

    Raises
    ------
    UnknownTargetError
        If there is no such kind or processor family.

    Examples
    --------
    >>> Target("cpu", threads=1).threads
    1
    >>> Target("cuda", arch="sm_90a").capability
    90
    """

    kind: str = "cpu"
    arch: str = field(default="", kw_only=True)
    features: tuple[str, ...] = field(default=(), kw_only=True)
    threads: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        """Check that the target exists."""
        if self.kind not in KINDS:
            raise UnknownTargetError(
                f"no target {self.kind!r}", hint=f"targets are {', '.join(map(repr, KINDS))}"
            )
        if self.is_gpu and not self.arch:
            object.__setattr__(self, "arch", DEFAULT_GPU_ARCH)
        known = GPU_ARCHS if self.is_gpu else ("", *CPU_ARCHS)
        if self.arch not in known:
            raise UnknownTargetError(
                f"target {self.kind!r} has no arch {self.arch!r}",
                hint=f"it has {', '.join(repr(a) for a in known if a)}",
            )
        if type(self.threads) is not int:
            raise UnknownTargetError(
                f"threads={self.threads!r} is no integer", hint="0 means one thread per core"
            )
        if self.threads < 0:
            raise UnknownTargetError(
                f"threads={self.threads} is negative", hint="0 means one thread per core"
            )
        object.__setattr__(self, "features", tuple(self.features))

    @property
    def is_gpu(self) -> bool:
        """Whether kernels run in a grid of threads (``simt`` emulates one)."""
        return self.kind in ("cuda", "simt")

    @property
    def capability(self) -> int:
        """The compute capability of a GPU (80 for sm_80); 0 for a CPU."""
        digits = self.arch.removeprefix("sm_").rstrip("a")
        return int(digits) if self.is_gpu else 0

    def __str__(self) -> str:
        """Print the way it is written."""
        parts = [repr(self.kind)]
        if self.arch:
            parts.append(f"arch={self.arch!r}")
        if self.features:
            parts.append(f"features={self.features!r}")
        if self.threads:
            parts.append(f"threads={self.threads}")
        return f"Target({', '.join(parts)})"


def provides(target: Target, need: str) -> bool | None:
    """Tell whether a target has a feature; None where only the machine itself can tell.

    Parameters
    ----------
    target : Target
        The machine.
    need : str
        A feature of processors (``"avx512vnni"``), a family (``"aarch64"``), or the least
        capability of a GPU (``"sm_80"``; with a trailing ``a`` exactly that one).

    Examples
    --------
    >>> provides(Target("cpu", features=("avx512",)), "avx512f")
    True
    >>> provides(Target("cpu", features=("avx512",)), "avx512vnni")
    False
    >>> provides(Target("cpu"), "avx512vnni") is None
    True
    >>> provides(Target("cuda", arch="sm_90a"), "sm_80")
    True
    """
    if need.startswith("sm_"):
        if need.endswith("a"):
            return target.arch == need
        return target.is_gpu and target.capability >= int(need.removeprefix("sm_"))
    if target.is_gpu:
        return False
    if need in CPU_ARCHS:
        return (target.arch or platform.machine()) == need
    if not target.features and target.arch in ("", "x86_64"):
        return None
    return any(need in (f, *IMPLIED.get(f, ())) for f in target.features)


def as_target(target: str | Target | None) -> Target:
    """Accept a target, the name of its kind, or nothing (the host's processor)."""
    if isinstance(target, Target):
        return target
    return Target(target or "cpu")
