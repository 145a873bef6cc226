"""Levels: the code of a program for several kinds of processors in one library.

A library takes the last level that the processor can execute when a model is opened. The kernels
of all levels read the same packed weights: panels are as wide as those of the widest registers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from ...errors import Json
from ...ir.module import Constant
from ...ir.packing import storage_of
from ...nearest import did_you_mean
from ...target.cpus import cpu_of
from ...target.host import with_level
from ...target.target import Target
from ..artifact import Artifact
from ..manifest import FunctionSpec
from .errors import ExportError
from .features import needed_features
from .link import arch_of
from .symbols import level_objects

NATIVE_LEVEL: Final = "native"
"""The level of the machine that exports; other machines export other code for it."""
LEVELS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = MappingProxyType({
    "x86-64-v2": ("x86_64", ("sse4.2",)),
    "x86-64-v3": ("x86_64", ("avx2",)),
    "x86-64-v4": ("x86_64", ("avx512",)),
    "armv8-a": ("aarch64", ()),
    "armv8.2-a": ("aarch64", ("dotprod", "fullfp16", "lse")),
    "armv8.6-a": ("aarch64", ("bf16", "dotprod", "fullfp16", "i8mm", "lse")),
    "armv9-a": (
        "aarch64", ("bf16", "dotprod", "fullfp16", "i8mm", "lse", "sve", "sve2"),
    ),
})  # fmt: skip
"""The architecture and the features of each level, by ascending level of an architecture."""
KINDS: Final = ("shared", "static", "object")
"""The kinds of exports that can have levels."""
RESERVED: Final = frozenset({"variant", "level_name"})
"""The names of functions that a model with levels defines."""


@dataclass(frozen=True, slots=True)
class Level:
    """The code of one kind of processor.

    Parameters
    ----------
    name : str
        The name.
    features : tuple of str
        The processor features that its code requires.
    functions : tuple of FunctionSpec
        The functions, the public ones first; these are the same in all levels.
    symbols : Mapping of str to str
        The names of the symbols of the code in the library. Levels with equal code share it.
    """

    name: str
    features: tuple[str, ...]
    functions: tuple[FunctionSpec, ...]
    symbols: Mapping[str, str]


def level_targets(levels: Sequence[str], target: Target, kind: str) -> dict[str, Target]:
    """Return the target of each level by name, in ascending order; none without levels.

    Parameters
    ----------
    levels : sequence of str
        The names of the levels.
    target : Target
        The target that the caller has passed, without features.
    kind : str
        The kind of the export.

    Raises
    ------
    ExportError
        If a level is unknown, or the levels do not fit each other, the target, or the kind.

    Examples
    --------
    >>> made = level_targets(["x86-64-v4", "x86-64-v2"], Target("cpu"), "shared")
    >>> print(made["x86-64-v2"])
    Target('cpu', arch='x86_64', features=('sse4.2',), panel_bits=1024)
    """
    if not levels:
        return {}
    if kind not in KINDS:
        raise ExportError(
            f"an export of kind {kind!r} has no levels",
            hint=f"kinds with levels are {', '.join(map(repr, KINDS))}",
        )
    _check_names(levels)
    found = {name: _target(name, target) for name in _ascending(levels)}
    for name, one in found.items():
        if target.kind != "cpu" or target.features or target.arch not in ("", one.arch):
            raise ExportError(
                f"level {name!r} does not fit {target}",
                hint="omit the features of the target: the levels determine them",
            )
    archs = {arch_of(one): name for name, one in found.items()}
    if len(archs) > 1:
        first, second = list(archs.items())[:2]
        raise ExportError(
            f"level {first[1]!r} is of {first[0]}, level {second[1]!r} of {second[0]}",
            hint="export one library for each processor family",
        )
    widest = max(2 * cpu_of(one.arch, one.features).vector_bits for one in found.values())
    return {name: replace(one, panel_bits=widest) for name, one in found.items()}


def _check_names(levels: Sequence[str]) -> None:
    known = (*LEVELS, NATIVE_LEVEL)
    unknown = next((name for name in levels if name not in known), None)
    if unknown is not None:
        near = did_you_mean(str(unknown), known)
        raise ExportError(
            f"unknown level {unknown!r}",
            hint=f"{near + ' ' if near else ''}levels are {', '.join(map(repr, known))}",
        )
    twice = next((name for name in levels if list(levels).count(name) > 1), None)
    if twice is not None:
        raise ExportError(f"level {twice!r} is listed twice", hint="list it once")


def _ascending(levels: Sequence[str]) -> list[str]:
    order = (*LEVELS, NATIVE_LEVEL)
    return sorted(levels, key=order.index)


def _target(name: str, target: Target) -> Target:
    if name == NATIVE_LEVEL:
        return replace(with_level(Target("cpu")), arch="x86_64", threads=target.threads)
    arch, features = LEVELS[name]
    return Target("cpu", arch=arch, features=features, threads=target.threads)


@dataclass(frozen=True, slots=True)
class Compiled:
    """The compiled program of a level, its functions, and the constants by name."""

    name: str
    artifact: Artifact
    functions: tuple[FunctionSpec, ...]
    constants: Mapping[str, Constant]


def _prefix(level: str) -> str:
    """Return the beginning of the symbols of a level, which no symbol of a program has.

    Examples
    --------
    >>> _prefix("x86-64-v3")
    'x86_64_v3$'
    """
    return re.sub(r"\W", "_", level) + "$"


def merged_levels(
    compiled: Sequence[Compiled],
) -> tuple[tuple[Level, ...], dict[str, Constant], dict[str, bytes]]:
    """Return the levels, their constants with common names, and their objects.

    Constants of one name are one constant if their elements are equal. Otherwise, the name begins
    with that of the level, as do the names of weights that a level prepares at open.
    """
    constants: dict[str, Constant] = {}
    levels: list[Level] = []
    objects, symbols = level_objects({_prefix(c.name): c.artifact.objects for c in compiled})
    for one in compiled:
        prepared = {r.name for f in one.functions if f.prepares for r in f.results}
        used = {c for f in one.functions for c in f.constants} - prepared
        used |= {p.initial for f in one.functions for p in f.states if p.initial}
        names = {name: f"{one.name}:{name}" for name in prepared}
        for name in sorted(used):
            constant = one.constants[name]
            same = name not in constants or _equal(constants[name], constant)
            names[name] = name if same else f"{one.name}:{name}"
            constants.setdefault(names[name], constant)
        functions = tuple(_with_names(f, names) for f in _public_first(one.functions))
        features = needed_features(one.artifact.target)
        levels.append(Level(one.name, features, functions, symbols[_prefix(one.name)]))
    return tuple(levels), constants, objects


def level_facts(levels: Sequence[Level]) -> dict[str, Json]:
    """Return the description of levels; empty without levels."""
    facts: list[Json] = [{"name": level.name, "features": list(level.features)} for level in levels]
    return {"levels": facts} if levels else {}


def _equal(first: Constant, second: Constant) -> bool:
    if first is second:
        return True
    if (first.dtype, first.shape) != (second.dtype, second.shape):
        return False
    one, other = (storage_of(c.load(), c.dtype) for c in (first, second))
    return one.tobytes() == other.tobytes()


def _public_first(functions: Sequence[FunctionSpec]) -> list[FunctionSpec]:
    return sorted(functions, key=lambda f: (bool(f.prepares), f.name))


def _with_names(function: FunctionSpec, names: Mapping[str, str]) -> FunctionSpec:
    """Return a function with other names of its constants."""
    return replace(
        function,
        constants=tuple(names[c] for c in function.constants),
        results=tuple(
            replace(r, name=names[r.name]) if function.prepares else r for r in function.results
        ),
        params=tuple(
            replace(p, initial=names[p.initial]) if p.initial else p for p in function.params
        ),
    )


def level_prototypes(name: str) -> Iterator[str]:
    """Yield the declarations of the functions of a model with levels."""
    yield f"""\
/* Return the level whose code a model runs, such as x86-64-v3: the last one that the processor can
 * execute, or the level of the runtime. */
TW_EXPORT const char *{name}_variant(const {name}_model *model);"""
    yield f"""\
/* Return the name of level k, in ascending order from 0, or null after the last. Unless missing is
 * null, set it to the first processor feature that the level requires and this processor lacks, or
 * to null if this processor can execute the level. */
TW_EXPORT const char *{name}_level_name(int32_t k, const char **missing);"""


def level_functions(name: str) -> Iterator[str]:
    """Yield the definitions of the functions of a model with levels."""
    yield (
        f"const char *{name}_variant(const {name}_model *model) {{\n"
        "  return model ? model->level->name : 0;\n}\n"
        f"const char *{name}_level_name(int32_t k, const char **missing) {{\n"
        "  return level_name(k, missing);\n}"
    )
