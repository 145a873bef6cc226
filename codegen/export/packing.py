"""The plan by which other weights are packed for an exported library with replaceable weights.

The file ``NAME.packing`` contains the names and types of the tensors of a checkpoint, the values
that were compiled into the code, and the machine code that transforms weights. The command
``tilewright weights pack`` runs it, so packed weights are bit-identical to those of an export.
"""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, cast

from ...ir.dtype import dtype
from ...ir.module import Constant, Module
from ...ir.packing import storage_of
from ...ir.structural_hash import content_digest
from ...ir.thread import runtime_table
from ..artifact import Artifact
from ..compiler import BuildOptions, compile_artifact
from ..constant_dependencies import ConstantDependencies
from .errors import ExportError
from .replaceable import masked_header
from .weights import Weights

SUFFIX: Final = ".packing"
"""The suffix of the file of a plan."""
SCHEMA: Final = 1
_FOLDED: Final = "folded"
"""The source of constants that ``fold_constants`` has computed."""
_VIEW: Final = "view of "
"""The beginning of the source of constants that are views of others."""


@dataclass(frozen=True, slots=True)
class TensorType:
    """The dtype and the shape of a tensor."""

    dtype: str
    shape: tuple[int, ...]

    @classmethod
    def of(cls, constant: Constant) -> TensorType:
        """Return the type of a constant."""
        return cls(constant.dtype.name, tuple(map(int, constant.shape)))

    def __str__(self) -> str:
        """Return the type as in annotations."""
        return f"{self.dtype} {list(self.shape)}"


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps from the tensors of a checkpoint to the file of a library.

    Parameters
    ----------
    sources : Mapping of str to TensorType
        The tensors of a checkpoint.
    flat : frozenset of str
        The tensors of which only the number of elements matters: a schedule has kept views of them.
    fixed : Mapping of str to str
        The sha256 of the elements of tensors that were compiled into the code.
    file : Mapping of str to TensorType
        The tensors of the file.
    packed : bool
        Whether the file has packed weights.
    header : str
        The sha256 of the header of the file, with zeros as the sha256 of tensors and blocks.
    block_bytes : int
        The size of a block of the file with its own sha256, or 0 if the library knows none.
    artifact : Artifact or None
        The machine code that transforms weights, and constants that were compiled.
    """

    sources: Mapping[str, TensorType]
    flat: frozenset[str]
    fixed: Mapping[str, str]
    file: Mapping[str, TensorType]
    packed: bool
    header: str
    block_bytes: int
    artifact: Artifact


def compile_recorded(
    module: Module, target: Any, options: BuildOptions
) -> tuple[Artifact, frozenset[str]]:
    """Compile a module, and return the names of the constants that the code depends on."""
    digested = {k: replace(c, digest=content_digest(c)) for k, c in module.constants.items()}
    recorder = ConstantDependencies(module.with_constants(digested))
    read: set[str] = set()

    # The artifact is stored after the last report, which loads constants that are views of others.
    def report(fraction: float, message: str) -> None:
        read.update(recorder.names)
        if options.progress is not None:
            options.progress(fraction, message)

    artifact, _ = compile_artifact(recorder.module, target, replace(options, progress=report))
    return artifact, frozenset(read)


def view_source(name: str, known: Collection[str]) -> str:
    """Return the constant of which a constant is a view with another shape, or its own name.

    Examples
    --------
    >>> view_source("bias@1x40", {"bias"}), view_source("folded.12", {"bias"})
    ('bias', 'folded.12')
    """
    source = name
    while source not in known and "@" in source:
        source = source.rpartition("@")[0]
    return source if source in known else name


def views_of(names: Iterable[str], sources: Mapping[str, Constant]) -> dict[str, Constant]:
    """Return the constants that are views of sources, by name."""
    roots = {name: view_source(name, sources.keys()) for name in names}
    return {name: _viewed(sources[root], name) for name, root in roots.items() if root != name}


def _viewed(source: Constant, name: str) -> Constant:
    """Return a view of a constant, whose shape is the end of its name."""
    dims = name.rpartition("@")[2].split("x")
    shape = tuple(int(dim) for dim in dims if dim)
    return Constant(shape, source.dtype, lambda: source.load().reshape(shape))


def elements_digest(constant: Constant) -> str:
    """Return the sha256 of the elements of a constant."""
    return hashlib.sha256(storage_of(constant.load(), constant.dtype).data).hexdigest()


def plan_of(
    module: Module,
    artifact: Artifact,
    read: Collection[str],
    written: tuple[Weights, Mapping[str, Constant]],
    *,
    packed: bool,
) -> Plan:
    """Return the plan of an export.

    Parameters
    ----------
    module : Module
        The program.
    artifact : Artifact
        The compiled program.
    read : Collection of str
        The constants whose elements the code depends on.
    written : tuple
        The written weights, and their constants.
    packed : bool
        Whether the weights are packed.

    Raises
    ------
    ExportError
        If the model has no weights, or a step of the schedule has computed with them.
    """
    weights, constants = written
    if not constants:
        raise ExportError("the model has no weights to replace", hint="use weights='auto'")
    prepared = {r.name for f in artifact.functions if f.prepares for r in f.results}
    used = {key for f in artifact.functions for key in f.constants} | constants.keys()
    originals = _originals(module, prepared)
    made = {key for key in used if view_source(key, prepared) in prepared}
    if made - prepared and not packed:
        raise ExportError(
            f"constant {min(made - prepared)!r} is a view of a transformed weight, which only a "
            "machine that can run the library computes",
            hint="export on a machine with the processor of the target",
        )
    roots = {key: view_source(key, originals.keys()) for key in sorted({*used, *read} - made)}
    for root in roots.values():
        if root in originals and originals[root].source == _FOLDED:
            raise ExportError(
                f"constant {root!r} was computed from weights by a step of the schedule, so other "
                "weights would not change it",
                hint="export the program without the step fold_constants; the compiler applies it",
            )
    fixed = {roots[key] for key in read}
    for key, root in roots.items():
        view = artifact.constants.get(key) or module.constants.get(key)
        if key != root and not _is_view(view, originals[root]):
            fixed.add(root)
    sources = sorted(fixed | ({*roots.values()} & originals.keys()))
    kept = {key: c for key, c in artifact.constants.items() if roots.get(key) == key}
    unknown = [key for key in kept if not key.startswith(f"{_FOLDED}.")]
    if unknown:
        raise ExportError(
            f"the compiler has computed constant {unknown[0]!r} in a way that cannot be repeated",
            hint="please report this defect, with the program",
        )
    kept |= {key: originals[key] for key in sorted(fixed)}
    prepares = tuple(f for f in artifact.functions if f.prepares) if packed else ()
    objects: dict[str, bytes] = dict(artifact.objects) if prepares else {}
    code = replace(
        artifact, functions=prepares, objects=MappingProxyType(objects), texts={},
        constants=kept, facts=(), limits={}, temporaries={},
    )  # fmt: skip
    return Plan(
        {k: TensorType.of(originals[k]) for k in sources},
        frozenset(k for k in sources if k not in module.constants),
        {k: elements_digest(originals[k]) for k in sorted(fixed)},
        {k: TensorType.of(c) for k, c in sorted(constants.items())},
        packed,
        header_digest(weights.header),
        weights.block_bytes,
        code,
    )


def _originals(module: Module, prepared: Collection[str]) -> dict[str, Constant]:
    """Return the constants that are not computed from others.

    A schedule may have removed a constant of which it has kept a view; it then stands for it.
    """
    found: dict[str, Constant] = {}
    for name, constant in module.constants.items():
        source, key = constant, name
        while source.source.startswith(_VIEW):
            key = source.source.removeprefix(_VIEW)
            if key not in module.constants:
                break
            source = module.constants[key]
        if name not in prepared:
            found.setdefault(key, source)
    return found


def _is_view(view: Constant | None, source: Constant) -> bool:
    return view is None or (
        math.prod(view.shape) == math.prod(source.shape)
        and view.dtype == source.dtype
        and elements_digest(view) == elements_digest(source)
    )


def header_digest(header: bytes) -> str:
    """Return the sha256 of a header without the sha256 of its tensors and blocks."""
    return hashlib.sha256(masked_header(header)).hexdigest()


def write_plan(path: Path, plan: Plan) -> None:
    """Write a plan to a file; equal plans have equal bytes."""
    facts = {
        "schema": SCHEMA,
        "table": runtime_table.CURRENT,
        "sources": {k: [t.dtype, list(t.shape)] for k, t in plan.sources.items()},
        "flat": sorted(plan.flat),
        "fixed": dict(plan.fixed),
        "file": {k: [t.dtype, list(t.shape)] for k, t in plan.file.items()},
        "packed": plan.packed,
        "header": plan.header,
        "block_bytes": plan.block_bytes,
    }
    text = json.dumps(facts, separators=(",", ":")).encode()
    code = zlib.compress(plan.artifact.to_bytes(), 6)
    path.write_bytes(len(text).to_bytes(8, "little") + text + code)


def read_plan(path: Path) -> Plan:
    """Read the plan of an exported directory.

    Raises
    ------
    ExportError
        If the file is damaged, or of another version of Tilewright.
    """
    try:
        data = path.read_bytes()
        size = int.from_bytes(data[:8], "little")
        facts = cast("dict[str, Any]", json.loads(data[8 : 8 + size]))
        code = zlib.decompress(data[8 + size :])
        versions = facts["schema"], facts["table"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError, zlib.error) as error:
        raise ExportError(
            f"{path} is not a plan for packing weights: {error}", hint="export the model again"
        ) from error
    if versions != (SCHEMA, runtime_table.CURRENT):
        raise ExportError(
            f"{path} has version {versions}, expected {(SCHEMA, runtime_table.CURRENT)}",
            hint="pack with the version of Tilewright of the export, or export the model again",
        )
    return Plan(
        _types(facts["sources"]),
        frozenset(facts["flat"]),
        facts["fixed"],
        _types(facts["file"]),
        facts["packed"],
        facts["header"],
        facts.get("block_bytes", 0),  # earlier libraries know no blocks
        Artifact.from_bytes(code),
    )


def _types(facts: Mapping[str, Any]) -> dict[str, TensorType]:
    return {k: TensorType(dtype(of).name, tuple(shape)) for k, (of, shape) in facts.items()}
