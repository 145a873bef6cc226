"""Compilation targets."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from ..errors import TilewrightError
from .features import expanded

Kind: TypeAlias = Literal["cpu", "cuda", "simt"]

KINDS: Final = ("cpu", "cuda", "simt")
CPU_ARCHS: Final = ("x86_64", "aarch64", "riscv64", "wasm32")
GPU_ARCHS: Final = (
    "sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a",
    "sm_100", "sm_100a", "sm_103", "sm_103a", "sm_120", "sm_120a", "sm_121", "sm_121a",
)  # fmt: skip
DEFAULT_GPU_ARCH: Final = "sm_80"


class UnknownTargetError(TilewrightError):
    """An unknown target or architecture, or an invalid number of threads."""

    title = "Unknown target"


@dataclass(frozen=True, slots=True)
class Target:
    """A machine to compile for.

    Parameters
    ----------
    kind : str
        ``"cpu"``; ``"cuda"`` for an NVIDIA GPU; ``"simt"`` to emulate a GPU on the CPU with
        checks.
    arch : str
        Architecture. For ``"cpu"`` one of ``x86_64``, ``aarch64``, ``riscv64``, ``wasm32``; empty
        means the host's. For a GPU for example ``sm_90a``; empty means ``sm_80``.
    features : tuple of str
        Instruction-set features, such as ``("avx2", "fma")``. Empty means all features of the
        host, or the baseline of the architecture if it is not the host's.
    threads : int
        Maximum number of threads of a parallel loop; 0 means one per core.

    Raises
    ------
    UnknownTargetError
        If the kind or the architecture is unknown, or ``threads`` is not a non-negative integer.

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
        """Check the kind, the architecture, and the number of threads."""
        if self.kind not in KINDS:
            raise UnknownTargetError(
                f"unknown target {self.kind!r}", hint=f"targets are {', '.join(map(repr, KINDS))}"
            )
        if self.is_gpu and not self.arch:
            object.__setattr__(self, "arch", DEFAULT_GPU_ARCH)
        known = GPU_ARCHS if self.is_gpu else ("", *CPU_ARCHS)
        if self.arch not in known:
            raise UnknownTargetError(
                f"unknown architecture {self.arch!r} of target {self.kind!r}",
                hint=f"architectures are {', '.join(repr(a) for a in known if a)}",
            )
        if type(self.threads) is not int:
            raise UnknownTargetError(
                f"expected an integer number of threads, got threads={self.threads!r}",
                hint="0 means one thread per core",
            )
        if self.threads < 0:
            raise UnknownTargetError(
                f"expected a non-negative number of threads, got threads={self.threads}",
                hint="0 means one thread per core",
            )
        object.__setattr__(self, "features", tuple(self.features))

    @property
    def is_gpu(self) -> bool:
        """True for GPU targets, including ``simt``, which emulates a GPU."""
        return self.kind in ("cuda", "simt")

    @property
    def capability(self) -> int:
        """The compute capability of a GPU (80 for ``sm_80``); 0 for a CPU."""
        digits = self.arch.removeprefix("sm_").rstrip("a")
        return int(digits) if self.is_gpu else 0

    def __str__(self) -> str:
        """Return the expression that constructs the target."""
        parts = [repr(self.kind)]
        if self.arch:
            parts.append(f"arch={self.arch!r}")
        if self.features:
            parts.append(f"features={self.features!r}")
        if self.threads:
            parts.append(f"threads={self.threads}")
        return f"Target({', '.join(parts)})"


def provides(target: Target, need: str) -> bool | None:
    """Return whether a target has a feature; None if only the machine itself can determine it.

    Parameters
    ----------
    target : Target
        The target.
    need : str
        A CPU feature (``"avx512vnni"``), a CPU architecture (``"aarch64"``), or the minimum compute
        capability of a GPU (``"sm_80"``; with a trailing ``a`` exactly this architecture).

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
    return need in (*target.features, *expanded(target.features))


def as_target(target: str | Target | None) -> Target:
    """Convert a target, the name of a target kind, or None (the host CPU) to a target."""
    if isinstance(target, Target):
        return target
    return Target(target or "cpu")
