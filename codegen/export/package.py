"""Export of a program as a directory of files: ``tilewright.export``."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ...calls import checked_call
from ...errors import Json
from ...ir.dtype import DTYPES
from ...ir.module import Constant, Module
from ...progress import ProgressOption, Report, part_of, progress_of
from ...schedules import Schedule, State
from ...schedules.targets import program_target
from ...target.host import with_level
from ...target.target import Target
from ..artifact import Artifact
from ..build.rtlib_object import rtlib_object_code
from ..compiler import BuildOptions, compile_artifact
from ..entry_names import CALL, INTO, public_name
from ..manifest import FunctionSpec
from ..program import module_of
from ..rtlib import layout
from .c_messages import IN_JAVASCRIPT, IN_PYTHON, loader_table
from .describe import (
    checked_metadata,
    custom_section,
    description,
    description_source,
    description_text,
    function_descriptions,
    function_facts,
    program_facts,
    write_manifest,
)
from .destinations import check_suffixes
from .directory import MADE, install, output_path, sync, temporary_folder
from .errors import ExportDirectoryError, ExportError
from .features import needed_features
from .kernels import GPU_KINDS, check_gpu, write_kernels
from .levels import (
    RESERVED as OF_LEVELS,
    Compiled,
    level_facts,
    level_targets,
    merged_levels,
)
from .link import (
    NATIVE,
    arch_of,
    archive,
    compile_shim,
    join,
    link_shared,
    link_wasm,
    linker,
    write_objects,
)
from .model import Model
from .names import check_functions, check_name
from .packed import equal_tensors, packs, prepared_constants
from .packing import SUFFIX, compile_recorded, header_digest, plan_of, views_of, write_plan
from .public_symbols import MODULES, check_symbols, public_symbols
from .replaceable import RESERVED as OF_UPDATES, check_replaceable
from .sbom import write_sbom
from .states import RESERVED, states_of
from .symbols import rename
from .tables import header_text, inner_source, model_source
from .typescript import typescript
from .web import (
    HOST as WEB_HOST,
    MOST_MEMORY,
    RESERVED as OF_PAGES,
    check_web,
    loader_text,
    part_of as loader_part,
    shader_text,
)
from .web_tables import web_shaders
from .weights import write_weights

DEBUG: Final = ("symbols", "none")
KINDS: Final = ("shared", "static", "object", "ptx", "cubin", "wasm", "web")
LIBRARIES: Final = {
    "shared": "lib{}.so", "static": "lib{}.a", "object": "{}.o", "wasm": "{}.wasm",
    "web": "{}.wasm",
}  # fmt: skip
"""The file names of the libraries by kind."""


_SIGNATURES: Final = (
    "from .loader_signatures import _documentation, _results_type, _signature_of  # @SIGNATURES@"
)
_CALLS: Final = "from .loader_calls import _memory, _Owned, _Python, _takes_arrays  # @CALLS@"
_WEIGHTS: Final = "from .loader_weights import ModelError, _Weights, check_files  # @WEIGHTS@"
_LEVELS: Final = "from .loader_levels import _level, _variant  # @LEVELS@"
_POOL: Final = "from .loader_pool import _Pool  # @THREADS@"
MOST_THREADS: Final = 1 << 16
"""The largest number of threads of a library, unless the target has a number of threads."""


@dataclass(frozen=True, slots=True)
class _Form:
    """The options of an export, and the facts about its program that do not depend on them."""

    kind: str
    name: str
    debug: str
    packed: bool
    replaceable: bool
    facts: Mapping[str, Json]
    levels: Mapping[str, Target]


@dataclass(frozen=True, slots=True)
class Exported:
    """An exported directory, with the sizes of its files in bytes by name."""

    directory: Path
    files: Mapping[str, int]

    def __str__(self) -> str:
        """Return a list of the files."""
        lines = [f"{size:>12,}  {name}" for name, size in self.files.items()]
        return "\n".join((str(self.directory), *lines))


@checked_call
def export(
    program: Module | Schedule | State,
    directory: str | os.PathLike[str],
    *,
    target: str | Target | None = None,
    kind: str = "shared",
    name: str = "model",
    force: bool = False,
    debug: str = "symbols",
    weights: str = "auto",
    levels: Sequence[str] = (),
    metadata: Mapping[str, str] | None = None,
    progress: ProgressOption = None,
) -> Exported:
    """Export a program as a directory of files that run without Python.

    Parameters
    ----------
    program : Module, Schedule or State
        The program; unscheduled functions get default schedules.
    directory : str or path
        The output directory, which is created atomically. It must not exist unless ``force`` is
        set.
    target : str or Target, optional
        The target to compile for; by default that of the program, else ``"webgpu"`` for kind
        ``"web"``, else the host CPU.
    kind : str
        ``"shared"``: a shared library, a Python loader, a C header, weights and a manifest.
        ``"static"``, ``"object"``: a static library or one object file instead of the first two.
        ``"wasm"``: a WebAssembly module with SIMD and a JavaScript loader. ``"web"``, for target
        ``"webgpu"``: WGSL shaders, the host flow as a WebAssembly module, and an ES module with
        TypeScript types that runs them in browsers. ``"ptx"``, ``"cubin"``: GPU kernels, and a
        manifest with their launch parameters.
    name : str
        The prefix of all files and C functions.
    force : bool
        Whether to replace an existing directory, which must contain only files of an export. Other
        directories are never replaced.
    debug : str
        ``"symbols"``: a shared library contains the names of kernels and internal functions, which
        debuggers and profilers show. ``"none"``: it does not. It has unwind tables and a build id
        in both cases.
    weights : str
        ``"packed"``: the weights are transformed and packed during the export, the file contains
        the tensors that kernels read, aligned to pages, and processes that map it share its memory.
        This requires that this machine can run the code. ``"plain"``: the file contains the weights
        of the program, and the library packs copies of them when it is opened. ``"auto"``: packed
        if possible; the manifest contains the choice. ``"replaceable"``: the same, and the library
        accepts other weights of the same names, types, and shapes, also while it is running.
    levels : sequence of str
        The kinds of processors of which the library contains code: ``"x86-64-v2"``,
        ``"x86-64-v3"``, ``"x86-64-v4"``, ``"native"`` for this machine, or ``"armv8-a"``,
        ``"armv8.2-a"``, ``"armv8.6-a"``, ``"armv9-a"``. A model that is opened runs the last of
        them that its processor can execute. All levels read the same weights. ``target`` must not
        have features. With ``"native"``, other machines export other files. By default the library
        contains the code for ``target``.
    metadata : Mapping of str to str, optional
        Texts by name, such as ``version`` and ``license``, which the library and the manifest
        contain.
    progress : bool or callable, optional
        Whether to show a progress bar, or a function of a fraction and a message, as in
        :func:`~tilewright.codegen.compile`.

    Returns
    -------
    Exported
        The directory and its files.

    Raises
    ------
    ExportDirectoryError
        If the directory exists or cannot be written; no partial output remains.
    ExportError
        If the program or the target cannot be exported as this kind.
    """
    _check(kind, name, debug)
    module, made = module_of(program), output_path(directory)
    given = "webgpu" if kind == "web" and target is None else target
    resolved = _for_kind(program_target(program, given), kind)
    of_levels = level_targets(levels, resolved, kind)
    packed = kind not in GPU_KINDS and packs(
        weights,
        kind,
        *of_levels.values() or (WEB_HOST if kind == "web" else with_level(resolved),),
    )
    facts = {**program_facts(program, module), "metadata": checked_metadata(metadata)}
    form = _Form(kind, name, debug, packed, weights == "replaceable", facts, of_levels)
    if form.replaceable:
        check_replaceable(kind, levels)
    if kind not in GPU_KINDS:
        linker()  # reported before the program is compiled
    temporary = temporary_folder(made, force=force)
    # A subfolder, because only the owner may read the temporary folder itself.
    folder = temporary / MADE
    write = _write_kernels if kind in GPU_KINDS else _write_levels if of_levels else _write
    try:
        folder.mkdir()
        with progress_of("exporting", progress) as report:
            write(module, folder, resolved, form, report)
        sync(folder)
        install(temporary, made, force=force)
    except OSError as error:
        raise ExportDirectoryError(f"cannot write {made}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    files = {p.name: p.stat().st_size for p in sorted(made.iterdir())}
    return Exported(made, MappingProxyType(files))


def _check(kind: str, name: str, debug: str) -> None:
    if debug not in DEBUG:
        raise ExportError(
            f"unknown value {debug!r} of debug", hint=f"values are {', '.join(map(repr, DEBUG))}"
        )
    if kind not in KINDS:
        raise ExportError(f"unknown kind {kind!r}", hint=f"kinds are {', '.join(map(repr, KINDS))}")
    check_name(name, kind)


def _for_kind(target: Target, kind: str) -> Target:
    """Return the target for a kind, after checking that they fit; kind wasm selects wasm32."""
    if kind == "wasm" and target.kind == "cpu" and target.arch in ("", "wasm32"):
        features = target.features if target.arch else ()
        return replace(target, arch="wasm32", features=features, threads=1)
    check_gpu(kind, target)
    if kind == "web":
        return replace(target, threads=0)
    if (target.arch == "wasm32") != (kind == "wasm"):
        raise ExportError(
            f"{target} cannot be exported as {kind!r}",
            hint="use kind 'wasm' for wasm32; 'shared', 'static' or 'object' for other CPUs",
        )
    return target


def _write_levels(
    module: Module,
    folder: Path,
    _target: Target,
    form: _Form,
    report: Report,
) -> None:
    """Write a library with levels: the programs of all levels, with common weights."""
    compiled: list[Compiled] = []
    every = tuple(form.levels.items())
    for k, (level, own) in enumerate(every):
        part = part_of(report, 0.9 * k / len(every), 0.9 * (k + 1) / len(every))
        options = BuildOptions(progress=part, sized_by_runtime=True)
        artifact, _ = compile_artifact(module, own, options)
        functions = _functions(artifact)
        _check_devices(functions)
        constants = {**module.constants, **artifact.constants}
        if form.packed:
            constants |= prepared_constants(artifact, constants)
            functions = tuple(f for f in functions if not f.prepares)
        compiled.append(Compiled(level, artifact, functions, constants))
    levels, read, objects = merged_levels(compiled)
    public = [f for f in levels[0].functions if not f.prepares]
    names = [public_name(f.name) for f in public]
    check_functions(names, OF_LEVELS)
    states = states_of(public)
    if states.params:
        check_functions(names, RESERVED)
    same = equal_tensors(read, sorted(read)) if form.packed else {}
    path = folder / f"{form.name}.safetensors"
    weights = write_weights(path, read, packed=form.packed, same=same)
    threads = compiled[0].artifact.threads or MOST_THREADS
    model = Model(
        form.name, levels[0].functions, weights, levels[0].features, threads, states, levels=levels
    )
    report(0.9, "linking")
    lowest = compiled[0].artifact.target
    _write_files(folder, model, objects, (lowest, lowest), form)
    report(1.0, "written")


def _write(
    module: Module,
    folder: Path,
    target: Target,
    form: _Form,
    report: Report,
) -> None:
    name, web = form.name, form.kind == "web"
    ready = WEB_HOST if web else with_level(target)
    options = BuildOptions(
        progress=part_of(report, 0.0, 0.9), sized_by_runtime=True, host=ready if web else None
    )
    artifact, depends = _compiled(module, target if web else ready, options, form)
    functions = _functions(artifact)
    _check_devices(functions)
    constants = {**module.constants, **artifact.constants}
    made: dict[str, Constant] = {}
    if form.packed:
        made = prepared_constants(artifact, constants)
        constants |= made
        if form.replaceable:  # the compiler has computed these with the interpreter
            constants |= views_of(constants.keys() - made.keys(), made)
        functions = tuple(f for f in functions if not f.prepares)
    public = [f for f in functions if not f.prepares]
    states = states_of(public)
    if states.params:
        check_functions((public_name(f.name) for f in public), RESERVED)
    if web:
        check_functions((public_name(f.name) for f in public), OF_PAGES)
        check_web(functions)
    read = _constants(constants, functions)
    same = {} if form.replaceable else equal_tensors(read, sorted(made.keys() & read.keys()))
    weights = write_weights(folder / f"{name}.safetensors", read, packed=form.packed, same=same)
    if form.replaceable:
        check_functions((public_name(f.name) for f in public), OF_UPDATES)
        plan = plan_of(module, artifact, depends, (weights, read), packed=form.packed)
        write_plan(folder / f"{name}{SUFFIX}", plan)
    threads = artifact.threads or MOST_THREADS
    shaders = web_shaders(artifact) if web else None
    features = needed_features(ready)
    model = Model(name, functions, weights, features, threads, states, shaders, form.replaceable)
    report(0.9, "linking")
    _write_files(folder, model, artifact.objects, (target if web else ready, ready), form)
    report(1.0, "written")


def _write_files(
    folder: Path,
    model: Model,
    objects: Mapping[str, bytes],
    targets: tuple[Target, Target],
    form: _Form,
) -> None:
    """Write the library, its headers and loaders, and the manifest.

    ``targets`` are that of the kernels, and that of the host flow.
    """
    kind, name, wasm, host = form.kind, form.name, form.kind in MODULES, targets[1]
    (folder / f"{name}.h").write_text(header_text(model, wasm=wasm), encoding="utf-8")
    shutil.copy(NATIVE / "tilewright.h", folder / "tilewright.h")
    library = folder / LIBRARIES[kind].format(name)
    if kind == "shared":
        stateful = bool(model.states.params)
        text = _python(name, stateful=stateful, replaceable=form.replaceable)
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    if kind == "wasm":
        (folder / f"{name}.mjs").write_text(_javascript(model), encoding="utf-8")
    facts = _description(model, targets[0], form)
    text = description_text(facts)
    source = model_source(model, wasm=wasm, pool=kind == "shared")
    if not wasm:
        source += "\n".join(description_source(name, text)) + "\n"
    inner = inner_source(model, wasm=wasm, pool=kind == "shared")
    check_symbols(model, inner, objects if wasm else ())
    shim = compile_shim(source, folder, host, visible=wasm or kind == "shared")
    parts = {**objects, "support": rtlib_object_code(host), "shim": shim.read_bytes()}
    shim.unlink()
    _link(parts, library, host, (form, model))
    if wasm:
        library.write_bytes(library.read_bytes() + custom_section(text))
    if kind == "web":
        _write_page(folder, model, targets[0])
    write_sbom(folder, facts)
    write_manifest(folder, facts)


def _compiled(
    module: Module, target: Target, options: BuildOptions, form: _Form
) -> tuple[Artifact, frozenset[str]]:
    """Return the compiled program, and the weights that its code depends on if that matters."""
    if form.replaceable:
        return compile_recorded(module, target, options)
    return compile_artifact(module, target, options)[0], frozenset()


def _write_page(folder: Path, model: Model, target: Target) -> None:
    """Write the files of a page, and remove those that only C files include."""
    name = model.name
    texts = {
        f"{name}.mjs": loader_text(model, target, function_facts(model), _values()),
        f"{name}.d.mts": typescript(model),
        f"{name}.wgsl": shader_text(model.shaders or ()),
    }
    for file, text in texts.items():
        (folder / file).write_text(text, encoding="utf-8")
    for header in (f"{name}.h", "tilewright.h"):
        (folder / header).unlink()


def _check_devices(functions: Sequence[FunctionSpec]) -> None:
    """Check that all tensors are on the device of the target."""
    for function in functions:
        if function.devices:
            raise ExportError(
                f"function {public_name(function.name)!r} has tensors on "
                f"{', '.join(map(repr, function.devices))}; an export uses one device",
                hint="remove device= from the annotations and allocations of the function",
            )


def _link(
    parts: Mapping[str, bytes], library: Path, target: Target, made: tuple[_Form, Model]
) -> None:
    """Link the library; internal symbols become unique, so that models do not conflict."""
    (form, model), kind = made, made[0].kind
    visible = public_symbols(model, kind)
    own = parts if kind in MODULES else rename(parts, model.name, {"shim": visible})
    with tempfile.TemporaryDirectory() as work:
        objects = write_objects(own, Path(work))
        match kind:
            case "shared":
                link_shared(objects, library, target, visible, form.debug)
            case "static":
                archive(objects, library)
            case "wasm":
                link_wasm(objects, library, visible)
            case "web":
                link_wasm(objects, library, visible, MOST_MEMORY)
            case _:
                join(objects, library)


def _write_kernels(
    module: Module,
    folder: Path,
    target: Target,
    form: _Form,
    report: Report,
) -> None:
    kind, name = form.kind, form.name
    artifact, _ = compile_artifact(module, target, BuildOptions(progress=report))
    kernels = write_kernels(artifact, folder, kind)
    facts: dict[str, Json] = {"kind": kind, "arch": target.arch, "target": str(target)}
    facts = description(name, {**facts, **form.facts, "kernels": kernels})
    write_sbom(folder, facts)
    write_manifest(folder, facts)


def _python(name: str, *, stateful: bool, replaceable: bool) -> str:
    """Return the Python loader of a shared library, with the pool layout of the runtime library."""
    words = {
        word.removeprefix("POOL_"): offset
        for word, offset in vars(layout).items()
        if word.startswith("POOL_")
    }
    text = (NATIVE / "loader.py").read_text(encoding="utf-8")
    text = text.replace(_SIGNATURES, _part("loader_signatures.py"))
    text = text.replace(_CALLS, _part("loader_calls.py"))
    text = text.replace(_POOL, _part("loader_pool.py"))
    text = text.replace(_LEVELS, _part("loader_levels.py"))
    text = text.replace(_WEIGHTS, _part("loader_weights.py"))
    text = text.replace("_needs = None  # @NEEDS@", _part("loader_needs.py"))
    if replaceable:
        text = text.replace("OpenModel = StatefulModel  # @UPDATES@", _part("loader_update.py"))
    if stateful:
        text = text.replace("StatefulModel = Model  # @STATES@", _part("loader_state.py"))
    text = text.replace("{}  # @MESSAGES@", loader_table(IN_PYTHON))
    text = text.replace("{}  # @DTYPES@", json.dumps(_dtype_facts()))
    return text.replace("@NAME@", name).replace("{}  # @POOL@", json.dumps(words))


def _part(name: str) -> str:
    """Return the text of a part of the Python loader that an export contains."""
    return (NATIVE / name).read_text(encoding="utf-8").split("# @BEGIN@\n")[1].strip()


def _dtype_facts() -> Json:
    """Return the name in NumPy or ``ml_dtypes``, the DLPack code, and the bits of each dtype."""
    return {row.name: [row.stored, row.dlpack, row.bits] for row in DTYPES.values()}


def _javascript(model: Model) -> str:
    """Return the JavaScript loader of a WebAssembly module."""
    facts = json.dumps(function_facts(model), indent=1)
    text = (NATIVE / "loader.mjs").read_text(encoding="utf-8").replace("// @VALUES@", _values())
    text = text.replace("@MESSAGES@", loader_table(IN_JAVASCRIPT))
    states = json.dumps(model.states.facts())
    text = text.replace("@FUNCTIONS@", facts).replace("@STATES@", states)
    return text.replace("@NAME@", model.name)


def _values() -> str:
    """Return the part of the JavaScript loaders that converts and checks arguments."""
    return loader_part("values.mjs").replace("@DTYPES@", json.dumps(_dtype_facts()))


def _functions(artifact: Artifact) -> tuple[FunctionSpec, ...]:
    """Return the functions to export; of entry kernels, the variant that returns results."""
    specs = {f.name: f for f in artifact.functions}
    chosen = [
        f for n, f in specs.items()
        if not (n.endswith(INTO) and public_name(n) + CALL in specs)
    ]  # fmt: skip
    for f in chosen:
        if f.libraries:
            raise ExportError(
                f"function {f.name!r} calls library functions: {', '.join(f.libraries)}",
                hint="exported programs cannot call libraries; use operators instead",
            )
    names = [public_name(f.name) for f in chosen if not f.prepares]
    check_functions(names)
    check_suffixes(names)
    return tuple(chosen)


def _constants(
    constants: Mapping[str, Constant], functions: tuple[FunctionSpec, ...]
) -> dict[str, Constant]:
    """Return the constants that the file contains: those that functions read."""
    prepared = {r.name for f in functions if f.prepares for r in f.results}
    used = {key for f in functions for key in f.constants} - prepared
    used |= {p.initial for f in functions for p in f.states if p.initial}
    return {key: constants[key] for key in sorted(used)}


def _description(model: Model, target: Target, form: _Form) -> dict[str, Json]:
    facts: dict[str, Json] = {
        "kind": form.kind,
        "library": LIBRARIES[form.kind].format(model.name),
        "weights_layout": "packed" if form.packed else "plain",
        "weights": f"{model.name}.safetensors",
        "weights_replaceable": form.replaceable,
        "weights_bytes": model.weights.size,
        "weights_schema": header_digest(model.weights.header),
        "arch": arch_of(target),
        "target": ", ".join(form.levels) or str(target),
        "features": list(model.features),
        **level_facts(model.levels),
        "threads": model.threads,
        "functions": function_descriptions(model),
        "states": model.states.facts(),
        **form.facts,
    }
    return description(model.name, facts)
