"""Compilation targets."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, cast

from ..calls import checked_calls
from ..errors import TilewrightError
from ..nearest import listed, nearest
from .cpus import FAMILIES
from .features import expanded
from .webgpu import FEATURE_NAMES

Kind: TypeAlias = Literal["cpu", "cuda", "simt", "webgpu"]

KINDS: Final = ("cpu", "cuda", "simt", "webgpu")
CPU_ARCHS: Final = ("x86_64", *FAMILIES)
GPU_ARCHS: Final = (
    "sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a",
    "sm_100", "sm_100a", "sm_103", "sm_103a", "sm_120", "sm_120a", "sm_121", "sm_121a",
)  # fmt: skip
DEFAULT_GPU_ARCH: Final = "sm_80"
PANEL_BITS: Final = (256, 512, 1024)
"""The sizes of rows of panels: two vector registers of the processors."""
BROWSER: Final = "browser"
LOCATIONS: Final = ("", BROWSER)
"""Where kernels run: on this machine, or in the page that displays a workbench."""


class UnknownTargetError(TilewrightError):
    """An unknown target or architecture, or an invalid number of threads."""

    title = "Unknown target"


@checked_calls
@dataclass(frozen=True, slots=True)
class Target:
    """A machine to compile for.

    Parameters
    ----------
    kind : str
        ``"cpu"``; ``"cuda"`` for an NVIDIA GPU; ``"simt"`` to emulate a GPU on the CPU with
        checks; ``"webgpu"`` for any GPU that has a WebGPU driver.
    arch : str
        Architecture. For ``"cpu"`` one of ``x86_64``, ``aarch64``, ``riscv64``, ``wasm32``; empty
        means the host's. For CUDA for example ``sm_90a``; empty means ``sm_80``.
    features : tuple of str
        Instruction-set features, such as ``("avx2", "fma")``. Empty means all features of the
        host, or the baseline of the architecture if it is not the host's. For WebGPU the features
        that an adapter must have, of ``f16``, ``subgroups``, ``packed_dot``, ``timestamps``.
    threads : int
        Maximum number of threads of a parallel loop; 0 means one per core.
    where : str
        Where the kernels run: empty for this machine, or ``"browser"`` for the GPU of the page
        that displays a workbench, of target ``"webgpu"`` only.
    panel_bits : int
        The least number of bits of a row of a panel of packed weights, of target ``"cpu"`` only.
        Kernels for processors with other vector registers can then read the same packed weights;
        0 means two registers.

    Raises
    ------
    UnknownTargetError
        If the kind, the architecture, or the location is unknown, or ``threads`` or
        ``panel_bits`` is not a legal integer.

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
    where: str = field(default="", kw_only=True)
    panel_bits: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        """Check the kind, the architecture, and the number of threads."""
        if self.kind not in KINDS:
            raise _unknown_kind(self.kind)
        if self.is_cuda and not self.arch:
            object.__setattr__(self, "arch", DEFAULT_GPU_ARCH)
        if self.kind == "webgpu" and self.arch:
            raise UnknownTargetError(
                f"target 'webgpu' has no architecture, got arch={self.arch!r}",
                where="argument 'arch' of Target",
                hint="omit it: a WebGPU driver compiles kernels for its own GPU",
            )
        known = GPU_ARCHS if self.is_cuda else ("", *CPU_ARCHS)
        if self.arch not in known:
            names = [name for name in known if name]
            raise UnknownTargetError(
                f"unknown architecture {self.arch!r} of target {self.kind!r}",
                where="argument 'arch' of Target",
                hint=f"architectures are {listed(str(self.arch), names, limit=len(names))}"
                + ('; write Target("cuda", arch=...) for a GPU' if self.arch in GPU_ARCHS else ""),
            )
        self._check_threads()
        self._check_panel_bits()
        self._check_features()
        self._check_location()
        object.__setattr__(self, "features", tuple(self.features))

    def _check_threads(self) -> None:
        if type(self.threads) is not int:
            raise UnknownTargetError(
                f"expected an integer number of threads, got threads={self.threads!r}",
                where="argument 'threads' of Target",
                hint="0 means one thread per core",
            )
        if self.threads < 0:
            raise UnknownTargetError(
                f"expected a non-negative number of threads, got threads={self.threads}",
                where="argument 'threads' of Target",
                hint="0 means one thread per core",
            )

    def _check_panel_bits(self) -> None:
        bits, sizes = self.panel_bits, (0, *PANEL_BITS)
        if type(bits) is not int or bits not in sizes or (bits and self.kind != "cpu"):
            raise UnknownTargetError(
                f"expected a size of panels, got panel_bits={bits!r} of target {self.kind!r}",
                where="argument 'panel_bits' of Target",
                hint=f"sizes are {', '.join(map(str, sizes))}, of target 'cpu' only",
            )

    def _check_features(self) -> None:
        features = cast("object", self.features)
        items = cast("tuple[object, ...]", features) if isinstance(features, tuple | list) else ()
        if not isinstance(features, tuple | list) or not all(isinstance(f, str) for f in items):
            usage = (
                f"features=({features!r},)" if isinstance(features, str) else 'features=("avx2",)'
            )
            raise UnknownTargetError(
                f"expected a tuple of names of features, got {features!r}",
                where="argument 'features' of Target",
                hint=f"write {usage}",
            )
        unknown = [f for f in items if f not in FEATURE_NAMES]
        if self.kind == "webgpu" and unknown:
            raise UnknownTargetError(
                f"WebGPU has no feature {', '.join(map(repr, unknown))}",
                where="argument 'features' of Target",
                hint=f"features are {listed(str(unknown[0]), FEATURE_NAMES)}",
            )
        if self.is_cuda and items:
            raise UnknownTargetError(
                f"target {self.kind!r} has no features, got {', '.join(map(repr, items))}",
                where="argument 'features' of Target",
                hint=f'omit it: Target("{self.kind}", arch="{self.arch}"); the features of a GPU '
                "follow from its architecture",
            )

    def _check_location(self) -> None:
        if self.where not in LOCATIONS:
            raise UnknownTargetError(
                f"unknown location {self.where!r}",
                where="argument 'where' of Target",
                hint=f'write where="{BROWSER}", or omit it: kernels run on this machine',
            )
        if self.where and self.kind != "webgpu":
            raise UnknownTargetError(
                f"kernels of target {self.kind!r} do not run in a browser",
                where="argument 'where' of Target",
                hint=f'write Target("webgpu", where="{BROWSER}")',
            )

    @property
    def in_browser(self) -> bool:
        """True if a page runs the kernels."""
        return self.where == BROWSER

    @property
    def is_gpu(self) -> bool:
        """True for GPU targets, including ``simt``, which emulates a GPU."""
        return self.kind != "cpu"

    @property
    def is_cuda(self) -> bool:
        """True for CUDA, and for ``simt``, which emulates it."""
        return self.kind in ("cuda", "simt")

    @property
    def name(self) -> str:
        """The architecture, or the kind of a target without one."""
        return self.arch or self.kind

    @property
    def capability(self) -> int:
        """The compute capability of a CUDA GPU (80 for ``sm_80``); 0 for other targets."""
        digits = self.arch.removeprefix("sm_").rstrip("a")
        return int(digits) if self.is_cuda else 0

    def __str__(self) -> str:
        """Return the expression that constructs the target."""
        parts = [repr(self.kind)]
        if self.arch:
            parts.append(f"arch={self.arch!r}")
        if self.features:
            parts.append(f"features={self.features!r}")
        if self.threads:
            parts.append(f"threads={self.threads}")
        if self.where:
            parts.append(f"where={self.where!r}")
        if self.panel_bits:
            parts.append(f"panel_bits={self.panel_bits}")
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
        return target.is_cuda and target.capability >= int(need.removeprefix("sm_"))
    if target.is_gpu:
        return target.kind == "webgpu" and need in target.features
    if need in CPU_ARCHS:
        return (target.arch or platform.machine()) == need
    if not target.features and target.arch in ("", "x86_64"):
        return None
    return need in (*target.features, *expanded(target.features))


def as_target(target: str | Target | None) -> Target:
    """Convert a target, the name of a target kind, or None (the host CPU) to a target."""
    if isinstance(target, Target):
        return target
    return Target("cpu" if target is None else target)


_OTHER_NAMES: Final = {
    "arm": 'Target("cpu", arch="aarch64")',
    "c": '"cpu"',
    "gpu": '"cuda"',
    "host": '"cpu"',
    "llvm": '"cpu"',
    "nvidia": '"cuda"',
    "nvptx": '"cuda"',
    "x86": '"cpu"',
    "wgpu": '"webgpu"',
    "x86_64": 'Target("cpu", arch="x86_64")',
}
"""Names of targets in other compilers, and the targets here."""


def _unknown_kind(kind: object) -> UnknownTargetError:
    """Return the error about a target kind that does not exist."""
    kinds = ", ".join(map(repr, KINDS))
    hint = f"targets are {kinds}"
    if isinstance(kind, str):
        first = kind.split(maxsplit=1)[0] if kind.strip() else ""
        same = _OTHER_NAMES.get(first) or (repr(first) if first in KINDS else "")
        near = nearest(first, KINDS)
        same = same or (repr(near[0]) if near else "")
        hint = f"write {same}; targets are {kinds}" if same else hint
        if first != kind.strip():
            hint += '; options are arguments: Target("cpu", arch="x86_64", features=("avx2",))'
    return UnknownTargetError(
        f"unknown target {kind!r}", where="argument 'kind' of Target", hint=hint
    )
