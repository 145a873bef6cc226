"""The effective target: one machine that satisfies all targets stated for a program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..errors import TilewrightError
from .features import expanded
from .target import Target


class TargetMismatchError(TilewrightError):
    """A function that states another target than the one it is compiled for."""

    title = "Conflicting targets"


def effective_target(given: Target | None, stated: Mapping[str, Target]) -> Target:
    """Return the target that a program is compiled for.

    Parameters
    ----------
    given : Target or None
        The target passed by the caller, or that of the schedule; None if there is none.
    stated : Mapping of str to Target
        The targets of functions by their names.

    Returns
    -------
    Target
        The given target, with the options that it leaves open and functions state; without any
        target, the host CPU. The options of functions are requirements: all of them hold.

    Raises
    ------
    TargetMismatchError
        If a function states another target than the caller or another function.

    Examples
    --------
    >>> given, stated = Target("cpu", threads=2), Target("cpu", features=("avx2",))
    >>> print(effective_target(given, {"f": stated}))
    Target('cpu', features=('avx2',), threads=2)
    """
    chosen, source = given, "the program is compiled for"
    for name, own in stated.items():
        if chosen is None:
            chosen, source = own, f"function {name!r} is for"
            continue
        merged = merged_target(chosen, own)
        if merged is None:
            raise TargetMismatchError(
                f"function {name!r} is for {own}, but {source} {chosen}",
                where=f"function {name!r}",
                hint=f"compile it for {_fitting(chosen, own)}, or remove target= from the function",
                details={"function": name, "stated": str(own), "effective": str(chosen)},
            )
        chosen = merged
    return Target("cpu") if chosen is None else chosen


def merged_target(given: Target, own: Target) -> Target | None:
    """Return the target with the options of both; None if two of them differ.

    ``simt`` emulates ``cuda``, so a function for ``cuda`` fits both.

    Examples
    --------
    >>> merged_target(Target("cpu", arch="aarch64"), Target("cpu", features=("avx2",))) is None
    True
    >>> merged_target(Target("simt"), Target("cuda")).kind
    'simt'
    """
    if given.kind != own.kind and (given.kind, own.kind) != ("simt", "cuda"):
        return None
    if given.is_gpu and given.arch != own.arch:
        return None
    if given.kind == "webgpu":
        names = (*given.features, *own.features)
        where = given.where or own.where
        return replace(given, features=tuple(dict.fromkeys(names)), where=where)
    if not given.is_gpu and "" not in (_family(given), _family(own)) and _differ(given, own):
        return None
    if given.threads and own.threads and given.threads != own.threads:
        return None
    return replace(
        given,
        arch=given.arch or own.arch,
        features=given.features or own.features,
        threads=given.threads or own.threads,
        panel_bits=given.panel_bits or own.panel_bits,
    )


def _family(target: Target) -> str:
    """Return the processor family that a CPU target states; empty if it states none."""
    return target.arch or ("x86_64" if target.features else "")


def _differ(given: Target, own: Target) -> bool:
    """Return whether two CPU targets state different families or features."""
    ours, theirs = ({*expanded(t.features)} for t in (given, own))
    return _family(given) != _family(own) or bool(ours and theirs and ours != theirs)


def _fitting(given: Target, own: Target) -> Target:
    """Return the target of a function, emulated if the caller's target is."""
    return replace(own, kind=given.kind) if (given.kind, own.kind) == ("simt", "cuda") else own
