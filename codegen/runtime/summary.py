"""Summaries of executables: functions, kernels, constants, and sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ...display import Table
from ...ir.module import Constant
from ...ir.sizes import storage_bytes
from ..artifact import Artifact
from ..entry_names import public_name
from .explanation import VERSION_NOTE
from .memory_plan import bytes_text


def summary(artifact: Artifact, constants: Mapping[str, Constant]) -> tuple[Table, Table]:
    """Return the functions and the kernels of an executable as tables.

    Parameters
    ----------
    artifact : Artifact
        The compiled program.
    constants : Mapping of str to Constant
        The constants of the program, which are not loaded.
    """
    return _functions(artifact, constants), _kernels(artifact)


def _functions(artifact: Artifact, constants: Mapping[str, Constant]) -> Table:
    specs = {public_name(s.name): s for s in reversed(artifact.functions) if not s.prepares}
    rows = tuple(
        (spec.signature(name), spec.launch_count, len(spec.constants))
        for name, spec in reversed(specs.items())
    )
    used = {key for spec in artifact.functions for key in spec.constants} & constants.keys()
    size = sum(storage_bytes(math.prod(c.shape), c.dtype) for c in (constants[key] for key in used))
    prepared = sum(len(s.results) for s in artifact.functions if s.prepares)
    notes = [f"constants: {len(used)} of {bytes_text(size)}"] if used else ["constants: none"]
    if prepared:
        notes.append(f"constants computed at load time from others: {prepared}")
    threads = f", {artifact.threads} threads" if not artifact.target.is_gpu else ""
    title = f"executable for {artifact.target}{threads}"
    return Table(("function", "launches", "constants"), rows, title, tuple(notes))


def _kernels(artifact: Artifact) -> Table:
    guards = {k.kernel: f"if {k.guard}" for k in artifact.facts if k.guard}
    sizes = {
        name: len(part) for name, part in (*artifact.objects.items(), *artifact.images.items())
    }
    rows = tuple((name, guards.get(name), sizes.get(name)) for name in artifact.kernels)
    total = bytes_text(sum(sizes.values()))
    notes = (f"machine code: {total}, with {bytes_text(sizes.get('', 0))} of the host flow",)
    if guards:
        notes += (VERSION_NOTE,)
    return Table(("kernel", "version", "code (bytes)"), rows, notes=notes)
