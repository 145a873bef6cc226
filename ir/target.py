"""What a program is compiled for."""

from __future__ import annotations

from dataclasses import dataclass, field

from .errors import TilewrightError

KINDS = ("cpu",)


class UnknownTargetError(TilewrightError):
    """A target that does not exist; the message lists those that do."""

    title = "Unknown target"


@dataclass(frozen=True, slots=True)
class Target:
    """A machine to compile for.

    Parameters
    ----------
    kind : str
        ``"cpu"``.
    arch : str
        Processor family; empty means the one this process runs on.
    features : tuple of str
        Instruction-set features, such as ``("avx2", "fma")``; empty means all of the host's.
    threads : int
        Threads a parallel loop may use; 0 means one per core of the machine.

    Raises
    ------
    UnknownTargetError
        If there is no such kind.

    Examples
    --------
    >>> Target("cpu", threads=1).threads
    1
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
        if type(self.threads) is not int:
            raise UnknownTargetError(
                f"threads={self.threads!r} is no integer", hint="0 means one thread per core"
            )
        if self.threads < 0:
            raise UnknownTargetError(
                f"threads={self.threads} is negative", hint="0 means one thread per core"
            )
        object.__setattr__(self, "features", tuple(self.features))

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


def as_target(target: str | Target | None) -> Target:
    """Accept a target, the name of its kind, or nothing (the host's processor)."""
    if isinstance(target, Target):
        return target
    return Target(target or "cpu")
