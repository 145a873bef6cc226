"""``tilewright.export``: a program as files that run without Python."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ...ir.module import Constant, Module
from ...ir.target import IMPLIED, Target, as_target
from ...schedules import Schedule, State
from ..artifact import Artifact
from ..compiler import BuildOptions, Progress, make, module_of, own_target
from ..cpu import with_level
from ..lower.wrap import CALL, INTO, public_name
from ..manifest import FunctionSpec, to_json
from ..runtime.build import versions
from ..runtime.support import support_object
from .errors import ExportDirectoryError, ExportError
from .link import NATIVE, arch_of, archive, compile_shim, join, link_shared, write_objects
from .tables import Model, header_text, model_source, symbol_of
from .weights import write_weights

KINDS: Final = ("shared", "static", "object", "ptx", "cubin", "wasm")
LIBRARIES: Final = {"shared": "lib{}.so", "static": "lib{}.a", "object": "{}.o"}
"""What the library of each kind is called."""
SCHEMA: Final = 1
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written: the directory, and its files by name with their sizes in bytes."""

    directory: Path
    files: Mapping[str, int]

    def __str__(self) -> str:
        """List the files."""
        lines = [f"{size:>12,}  {name}" for name, size in self.files.items()]
        return "\n".join((str(self.directory), *lines))


def export(
    program: Module | Schedule | State,
    directory: str | os.PathLike[str],
    *,
    target: str | Target | None = None,
    kind: str = "shared",
    name: str = "model",
    progress: Progress | None = None,
) -> Exported:
    """Write a program as files that run without Python.

    Parameters
    ----------
    program : Module, Schedule or State
        What to export; default steps are added where it is not scheduled yet.
    directory : str or path
        A directory that does not exist; it appears complete or not at all.
    target : str or Target, optional
        The machine; this one's processor if not given.
    kind : str
        ``"shared"``: a library, a loader for plain Python, a C header, weights and a manifest;
        ``"static"``: the same with a static library; ``"object"``: with one object file.
    name : str
        Begins every file's and every C function's name.
    progress : callable, optional
        Told how far it is, from 0 to 1, and what it does.

    Returns
    -------
    Exported
        The files.

    Raises
    ------
    ExportDirectoryError
        If the directory exists, or cannot be written; nothing is left behind.
    ExportError
        If the program or the target cannot be exported as this kind.
    """
    _check(kind, name)
    made = Path(directory)
    chosen = as_target(target if target is not None else own_target(program))
    folder = _beside(made)
    try:
        _write(module_of(program), folder, chosen, (kind, name), progress)
        folder.replace(made)
    except OSError as error:
        raise ExportDirectoryError(f"cannot write {made}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    files = {p.name: p.stat().st_size for p in sorted(made.iterdir())}
    return Exported(made, MappingProxyType(files))


def _check(kind: str, name: str) -> None:
    if kind not in KINDS:
        raise ExportError(f"no kind {kind!r}", hint=f"kinds are {', '.join(map(repr, KINDS))}")
    if not _NAME.fullmatch(name):
        raise ExportError(
            f"{name!r} is no name in C", hint="letters, digits and underscores, a letter first"
        )


def _beside(made: Path) -> Path:
    """Make the folder that becomes the directory when everything is in it."""
    if made.exists() or made.is_symlink():
        raise ExportDirectoryError(f"{made} exists", hint="remove it, or export to another place")
    try:
        made.parent.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f".{made.name}.", dir=made.parent))
    except OSError as error:
        raise ExportDirectoryError(
            f"cannot write into {made.parent}: {error.strerror}", hint="choose another place"
        ) from error


def _write(
    module: Module,
    folder: Path,
    target: Target,
    form: tuple[str, str],
    progress: Progress | None,
) -> None:
    (kind, name), ready = form, with_level(target)
    artifact, _ = make(module, ready, BuildOptions(progress=progress))
    functions = _functions(artifact)
    constants = _constants(module, artifact, functions)
    weights = write_weights(folder / f"{name}.safetensors", constants)
    model = Model(name, functions, weights, _features(ready))
    (folder / f"{name}.h").write_text(header_text(model), encoding="utf-8")
    shutil.copy(NATIVE / "tilewright.h", folder / "tilewright.h")
    library = folder / LIBRARIES[kind].format(name)
    if kind == "shared":
        loader = (NATIVE / "loader.py").read_text(encoding="utf-8").replace("@NAME@", name)
        (folder / f"{name}.py").write_text(loader, encoding="utf-8")
    with tempfile.TemporaryDirectory() as work:
        parts = {**artifact.objects, "support": support_object(ready)}
        objects = write_objects(parts, Path(work))
        shim = compile_shim(model_source(model), folder, ready)
        match kind:
            case "shared":
                link_shared([shim, *objects], library, ready, name)
            case "static":
                archive([shim, *objects], library)
            case _:
                join([shim, *objects], library)
        shim.unlink()
    _write_manifest(folder, model, ready, kind)


def _functions(artifact: Artifact) -> tuple[FunctionSpec, ...]:
    """Choose what is exported: of a kernel that nobody calls, the form that gives results."""
    specs = {f.name: f for f in artifact.functions}
    chosen = [
        f for n, f in specs.items()
        if not (n.endswith(INTO) and public_name(n) + CALL in specs)
    ]  # fmt: skip
    for f in chosen:
        if f.libraries:
            raise ExportError(
                f"function {f.name!r} calls {', '.join(f.libraries)} of a library",
                hint="leave dispatch_to_library out",
            )
    return tuple(chosen)


def _constants(
    module: Module, artifact: Artifact, functions: tuple[FunctionSpec, ...]
) -> dict[str, Constant]:
    prepared = {r.name for f in functions if f.prepares for r in f.results}
    used = {key for f in functions for key in f.constants} - prepared
    known = {**module.constants, **artifact.constants}
    return {key: known[key] for key in sorted(used)}


def _features(target: Target) -> tuple[str, ...]:
    if arch_of(target) != "x86_64":
        return ()
    found = dict.fromkeys(n for f in target.features for n in IMPLIED.get(f, (f,)))
    return tuple(found)


def _write_manifest(folder: Path, model: Model, target: Target, kind: str) -> None:
    files = {
        path.name: {
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "bytes": path.stat().st_size,
        }
        for path in sorted(folder.iterdir())
    }
    functions = [
        {
            "name": public_name(spec.name),
            "symbol": symbol_of(model, spec),
            "params": [to_json(p) for p in spec.params],
            "results": [to_json(r) for r in spec.results],
        }
        for spec in model.public
    ]
    manifest = {
        "schema": SCHEMA,
        "name": model.name,
        "kind": kind,
        "library": LIBRARIES[kind].format(model.name),
        "weights": f"{model.name}.safetensors",
        "arch": arch_of(target),
        "target": str(target),
        "features": list(model.features),
        "functions": functions,
        "made_by": versions(),
        "files": files,
    }
    text = json.dumps(manifest, indent=2) + "\n"
    (folder / f"{model.name}.json").write_text(text, encoding="utf-8")
