"""The targets that a session can choose from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec

from ..target.cpus import FAMILIES
from ..target.features import FEATURE_SETS, expanded
from ..target.host import has_nvidia_gpu, host_features, host_platform, with_level
from ..target.target import GPU_ARCHS, Target, provides
from .protocol_runs import TargetOption
from .serialization import ProtocolError


def target_key(target: Target) -> str:
    """Return the key of a target; it does not depend on the number of threads.

    Examples
    --------
    >>> target_key(Target("cpu", features=("avx2",), threads=2))
    'cpu avx2'
    >>> target_key(Target("webgpu", features=("f16",), where="browser"))
    'webgpu browser f16'
    """
    words = filter(None, (target.where, target.arch))
    return " ".join((target.kind, *words, *target.features))


def target_options(current: Target) -> list[TargetOption]:
    """Return the targets of this machine, other machines, and GPUs, with the current one."""
    options = [_option(target, group, label) for target, group, label in _known()]
    if target_key(current) not in {option.key for option in options}:
        options.insert(0, _option(current, "Chosen in the notebook", target_key(current)))
    return options


def target_named(key: str, current: Target) -> Target:
    """Return the target with a key, with the number of threads of the current one.

    Raises
    ------
    ProtocolError
        If no target has the key.
    """
    known = {target_key(target): target for target, _, _ in _known()}
    known[target_key(current)] = current
    if key not in known:
        raise ProtocolError(f"no target {key!r}", hint=f"targets are {', '.join(known)}")
    return replace(known[key], threads=0 if known[key].is_gpu else current.threads)


def missing_here(target: Target) -> str:
    """Return why this machine cannot run code for a target; empty if it can.

    A page reports itself why it cannot run code for browsers.

    Examples
    --------
    >>> missing_here(Target("simt"))
    ''
    >>> missing_here(Target("cpu", arch="riscv64"))
    'this machine has another processor: code can be displayed and exported'
    """
    if target.kind == "simt" or target.in_browser or (target.kind == "cuda" and has_nvidia_gpu()):
        return ""
    if target.kind == "webgpu":
        missing = find_spec("wgpu") is None
        return "the package 'wgpu' is not installed: code can be displayed" if missing else ""
    if target.kind == "cuda":
        return "this machine has no NVIDIA GPU: code can be displayed and exported"
    if target.arch not in ("", host_platform()[0]):
        return "this machine has another processor: code can be displayed and exported"
    lacking = [f for f in expanded(target.features) if f not in host_features()]
    return f"this machine lacks {', '.join(lacking)}" if lacking else ""


def missing_features(target: Target, needs: tuple[str, ...]) -> str:
    """Return the features that an instruction needs and a target lacks; empty if there are none."""
    lacking = [need for need in needs if provides(with_level(target), need) is False]
    name = "this machine" if not target.features and not target.arch else "the target"
    return f"{name} lacks {', '.join(lacking)}" if lacking else ""


def _known() -> Iterator[tuple[Target, str, str]]:
    """Yield each target with its group and label."""
    host = Target("cpu")
    yield host, "This machine", f"cpu: {', '.join(with_level(host).features)}"
    yield Target("webgpu"), "This machine", "webgpu: this machine's GPU"
    yield Target("webgpu", where="browser"), "This browser", "webgpu: this browser's GPU"
    for level in FEATURE_SETS:
        yield Target("cpu", features=(level,)), "x86-64", f"cpu with {level}"
    for arch, family in FAMILIES.items():
        if family.runs_libraries:
            yield Target("cpu", arch=arch), "Other processors", f"cpu: {family.title}"
    for arch in GPU_ARCHS:
        yield Target("simt", arch=arch), "Emulated GPU", f"simt {arch}"
    for arch in GPU_ARCHS:
        yield Target("cuda", arch=arch), "NVIDIA GPU", f"cuda {arch}"


def _option(target: Target, group: str, label: str) -> TargetOption:
    return TargetOption(target_key(target), group, label, missing_here(target))
