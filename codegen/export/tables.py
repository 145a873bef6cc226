"""The generated C file and header of a model: tables, messages, and public functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from ...ir.dtype import dtype
from ...ir.thread import runtime_table
from ..entry_names import entry_symbol, public_name
from ..lower.host.to_thread import CODE_CHECK
from ..manifest import CheckSite, FunctionSpec, ParamSpec
from ..rtlib import layout
from ..rtlib.results import HEADER
from .blocks import block_tables
from .c_messages import c_functions, c_text
from .destinations import destination_prototypes, operand_lines, output_table, public_destinations
from .levels import level_functions, level_prototypes
from .model import Model, passed_params, symbol_of, takes_state, written_results
from .replaceable import schema_tables, update_functions, update_prototypes
from .states import state_functions, state_prototypes, state_tables
from .web_tables import web_tables

_SITES: Final = (
    "argument", "dimension", "stride", "bound", "fact", "alias", "check", "negative", "overflow",
    "memory", "divisor", "library", "device", "grid", "launch",
    "stopped", "output",
)  # fmt: skip

_TYPES = """
typedef struct {
  const char *name, *annotation, *dtype, *access;
  int32_t rank, bytes, integer, binds;
} tw_param;
typedef struct {
  const char *name, *annotation, *dtype;
  int32_t position, rank, code, bits;
} tw_output;
typedef struct {
  int32_t kind, param, dim, other;
  const char *text;
  const char *names[5];
} tw_site;
typedef struct { const char *kernel, *binding; } tw_launch;
typedef struct { int64_t offset; int32_t prepared; } tw_constant;
typedef struct {
  const char *name;
  int32_t (*entry)(uint64_t *instance, uint64_t *call);
  const tw_param *params;
  int32_t param_count, result_count;
  const tw_site *sites;
  const int32_t *constants;
  int32_t constant_count, prepares;
  const tw_launch *launches;
  int64_t launch_count, slot;
  int64_t first_written, last_written; /* the checks after which state may be written */
  const tw_output *outputs; /* the results that are new tensors */
  int32_t output_count, late, stateful;
} tw_function;
"""


_TABLE: Final = re.compile(
    r"static const (?P<type>[\w *]+?)(?P<name>\w+)\[\] = (?P<elements>.*);", re.DOTALL
)
_EQUAL_TEXT: Final = """\
static int equal_text(const char *a, const char *b) {
  while (*a && *a == *b) a++, b++;
  return *a == *b;
}"""


def assumptions(spec: FunctionSpec) -> tuple[str, ...]:
    """Return the facts that a function checks on entry."""
    return tuple(dict.fromkeys(site.text for site in spec.sites if site.kind == "fact"))


def model_source(model: Model, *, wasm: bool = False, pool: bool = False) -> str:
    """Return the C file of a model.

    Parameters
    ----------
    model : Model
        The model.
    wasm : bool
        Whether to add the allocator and the start function of a WebAssembly module.
    pool : bool
        Whether to export the thread pool, for loaders in other languages.
    """
    extra = () if wasm else public_destinations(model)
    updates = update_functions(model.name) if model.replaceable else ()
    levels = level_functions(model.name) if model.levels else ()
    source = inner_source(model, wasm=wasm, pool=pool)
    return "\n".join((source, *_public(model), *extra, *updates, *levels)) + "\n"


def inner_source(model: Model, *, wasm: bool = False, pool: bool = False) -> str:
    """Return the C file of a model without the definitions of the public functions."""
    parts = [
        f'#include "{model.name}.h"',
        f"#define TW_NAME {model.name}",
        f"#define TW_MODEL {model.name}_model",
        *((f"#define TW_STATE {model.name}_state",) if model.states.params else ()),
        *_defines(model),
        _TYPES,
        *(() if model.shaders is None else web_tables(model.shaders, model.functions)),
        *_tables(model),
        *(schema_tables(model) if model.replaceable else ()),
        _EQUAL_TEXT,
        '#include "processor.c"',
        '#include "sha256.c"',
        '#include "messages.c"',
        *c_functions(
            state=bool(model.states.params),
            destinations=not wasm,
            web=model.shaders is not None,
            updates=model.replaceable,
            levels=bool(model.levels),
        ),
        *(() if wasm else ("#define DESTINATIONS",)),
        *(('#include "versions.c"', '#include "schema.c"') if model.replaceable else ()),
        *(('#include "levels.c"',) if model.levels else ()),
        *(('#include "blocks.c"',) if model.shaders is None else ()),
        '#include "shim.c"',
        '#include "open.c"',
        *(('#include "update.c"',) if model.replaceable else ()),
        '#include "memory.c"',
        *_state_parts(model),
        *(() if wasm else ('#include "destinations.c"',)),
        *(('#include "wasm.c"',) if wasm else ()),
        *(('#include "web.c"',) if model.shaders is not None else ()),
        *(('#include "pool.c"', '#include "python.c"') if pool else ()),
    ]
    return "\n".join(parts)


def _state_parts(model: Model) -> Iterator[str]:
    if model.states.params:
        yield from state_tables(model.states, list(_constant_sources(model)))
        yield '#include "state.c"'
        yield from state_functions(model.name, model.states)


def _defines(model: Model) -> Iterator[str]:
    names = ("VERSION", "ALLOC", "FREE", "PARALLEL", "ERROR", "THREADS", "LIBRARY", "PROFILE")
    for name in (*names, "RELEASE", "USER", "COPY", "MEMORY", "SIZE"):
        yield f"#define TABLE_{name} {getattr(runtime_table, name)}"
    yield f"#define TABLE_CURRENT {runtime_table.CURRENT}"
    names = ("TABLE", "SITE", "NUMBERS", "CODE", "TEXT", "A", "B", "OPERANDS", "MODE", "WORKSPACE")
    for name in (*names, "WORKSPACE_BYTES", "NEEDED"):
        yield f"#define CALL_{name} {getattr(layout, f'CALL_{name}')}"
    for name in ("DTYPE", "RANK", "DEVICE", "STRIDES", "ALIGNMENT", "READ_ONLY"):
        yield f"#define PROBLEM_{name} {getattr(layout, f'PROBLEM_{name}')}"
    yield f"#define CODE_CHECK {CODE_CHECK}"
    yield f"#define CODE_BOUNDS {runtime_table.CODE_BOUNDS}"
    yield f"#define CODE_PARALLEL {runtime_table.CODE_PARALLEL}"
    yield f"#define CODE_RANGE {runtime_table.CODE_RANGE}"
    yield f"#define CODE_RANGE_UNSIGNED {runtime_table.CODE_RANGE_UNSIGNED}"
    yield f"#define INSTANCE_CONSTANTS {layout.INSTANCE_CONSTANTS}"
    yield f"#define INSTANCE_SLOTS {layout.INSTANCE_SLOTS}"
    yield f"#define SLOT_COUNT {layout.SLOT_COUNT}\n#define SLOT_BUSY {layout.SLOT_BUSY}"
    yield f"#define FORM_DLPACK {layout.FORM_DLPACK}"
    yield f"#define FORM_INTEGER {layout.FORM_INTEGER}"
    for name in ("EXACT", "QUERY", "GIVEN", "LIMITED", "SHORT", "MEMORY_LIMIT", "MEMORY_USED"):
        yield f"#define {name} {getattr(layout, name)}"
    rank = max((r.rank for f in model.functions for r in f.results), default=0)
    yield f"#define RESULT_HEAD {HEADER}\n#define MOST_RANK {max(rank, 1)}"
    yield f"#define MOST_PARAMS {max(len(f.params) for f in model.functions)}"
    for k, kind in enumerate(_SITES):
        yield f"#define SITE_{kind.upper()} {k}"
    prepared = (sum(len(f.results) for f in fs if f.prepares) for fs in model.variants)
    yield f"#define FUNCTIONS {max(map(len, model.variants))}"
    yield f"#define PREPARED {max(prepared)}"
    yield f"#define CONSTANTS {len(model.weights.offsets)}"
    yield f"#define MOST_RESULTS {max(len(f.results) for fs in model.variants for f in fs)}"
    yield f"#define MOST_THREADS {model.threads}"
    yield f"#define WEIGHTS_SIZE INT64_C({model.weights.size})"
    yield f"#define HEADER_SIZE {len(model.weights.header)}"


def _tables(model: Model) -> Iterator[str]:
    header = model.weights.header
    rows = (header[k : k + 24] for k in range(0, len(header), 24))
    body = ",\n".join("  " + ",".join(map(str, row)) for row in rows)
    yield f"static const unsigned char weights_header[HEADER_SIZE + 1] = {{\n{body}\n}};"
    digest = ", ".join(map(str, model.weights.digest))
    yield f"static const unsigned char weights_digest[32] = {{{digest}}};"
    if model.shaders is None:
        yield from block_tables(model.weights)
    sources = _constant_sources(model)
    entries = ", ".join(f"{{INT64_C({o}), {p}}}" for o, p in sources.values())
    yield f"static const tw_constant constants[] = {{{entries or '{0, -1}'}}};"
    if model.levels:
        yield from _once(_level_tables(model, list(sources)))
    else:
        yield _features_table("needed_features", model.features)
        yield from _function_tables(model, model.functions, list(sources))
        yield _order_table("order", model.functions)


def _once(parts: Iterable[str]) -> Iterator[str]:
    """Yield definitions of tables; one with the elements of an earlier one is a macro for it."""
    first: dict[tuple[str, str], str] = {}
    for part in parts:
        found = _TABLE.fullmatch(part)
        if found is None:
            yield part
            continue
        name, key = found["name"], (found["type"], found["elements"])
        same = first.setdefault(key, name)
        yield part if same == name else f"#define {name} {same}"


def _features_table(name: str, features: Sequence[str]) -> str:
    texts = "".join(f"{c_text(f)}, " for f in features)
    return f"static const char *const {name}[] = {{{texts}0}};"


def _order_table(name: str, functions: Sequence[FunctionSpec]) -> str:
    return f"static const int32_t {name}[] = {{{', '.join(map(str, in_order(functions)))}}};"


def _level_tables(model: Model, names: Sequence[str]) -> Iterator[str]:
    """Yield the tables of each level; those without a level are those of the first one."""
    rows: list[str] = []
    for k, level in enumerate(model.levels):
        yield _features_table(f"features_{k}", level.features)
        yield from _function_tables(model, level.functions, names, (f"_{k}", level.symbols))
        yield _order_table(f"order_{k}", level.functions)
        tables = f"features_{k}, functions_{k}, order_{k}, {len(level.functions)}"
        rows.append(f"{{{c_text(level.name)}, {tables}}}")
    listed = c_text(", ".join(level.name for level in model.levels))
    yield f"#define LEVELS {len(rows)}\n#define LEVEL_NAMES {listed}\n#define functions functions_0"
    yield (
        "typedef struct {\n  const char *name;\n  const char *const *features;\n"
        "  const tw_function *table;\n  const int32_t *order;\n  int32_t count;\n} tw_level;"
    )
    yield "static const tw_level levels[] = {\n  " + ",\n  ".join(rows) + "\n};"


def _constant_sources(model: Model) -> Mapping[str, tuple[int, int]]:
    """Return per constant: offset in the file and -1, or 0 and the index of a prepared result."""
    sources = {name: (offset, -1) for name, offset in model.weights.offsets.items()}
    for functions in model.variants:
        results = (r for f in functions if f.prepares for r in f.results)
        sources |= {result.name: (0, position) for position, result in enumerate(results)}
    return sources


def in_order(functions: Sequence[FunctionSpec]) -> list[int]:
    """Return the order in which functions run or are bound: constants before their users."""
    makers = {r.name: k for k, f in enumerate(functions) if f.prepares for r in f.results}
    done: dict[int, None] = {}

    def visit(k: int) -> None:
        if k not in done:
            for name in functions[k].constants:
                if name in makers:
                    visit(makers[name])
            done[k] = None

    for k in range(len(functions)):
        visit(k)
    return list(done)


def _function_tables(
    model: Model,
    functions: Sequence[FunctionSpec],
    names: Sequence[str],
    level: tuple[str, Mapping[str, str]] = ("", MappingProxyType({})),
) -> Iterator[str]:
    """Yield the tables of functions; ``level`` are the end of their names, and its symbols."""
    records: list[str] = []
    prepared, (mark, symbols) = 0, level
    for number, f in enumerate(functions):
        k, symbol = f"{number}{mark}", entry_symbol(f.name)
        entry = symbols.get(symbol, symbol)
        yield f"extern int32_t {entry}(uint64_t *, uint64_t *);"
        params = ", ".join(_param(p) for p in f.params)
        yield f"static const tw_param params_{k}[] = {{{params or '{0}'}}};"
        sites = ",\n  ".join(_site(s) for s in f.sites)
        yield f"static const tw_site sites_{k}[] = {{\n  {sites or '{0}'}\n}};"
        used = ", ".join(str(names.index(c)) for c in f.constants)
        yield f"static const int32_t constants_{k}[] = {{{used or '0'}}};"
        first = prepared if f.prepares else -1
        prepared += len(f.results) if f.prepares else 0
        launches = ", ".join(f"{{{c_text(x.kernel)}, {c_text(x.binding)}}}" for x in f.launches)
        yield f"static const tw_launch launches_{k}[] = {{{launches or '{0}'}}};"
        yield output_table(k, f)
        records.append(
            f"{{{c_text(public_name(f.name))}, {entry}, params_{k}, "
            f"{len(f.params)}, {len(f.results)}, sites_{k}, constants_{k}, {len(f.constants)}, "
            f"{first}, launches_{k}, {len(f.launches)}, {f.slot}, {_written_checks(f)}, "
            f"outputs_{k}, {len(written_results(f))}, {f.late}, {int(takes_state(model, f))}}}"
        )
    head = f"static const tw_function functions{mark}[] = {{\n  "
    yield head + ",\n  ".join(records) + "\n};"


def _written_checks(spec: FunctionSpec) -> str:
    first, last = spec.body or (0, len(spec.sites))
    return f"{first}, {last}"


def _param(param: ParamSpec) -> str:
    integer = int(param.form == "integer")
    texts = (param.name, param.annotation, param.dtype, param.access)
    width = dtype(param.dtype).alignment
    numbers = f"{param.rank}, {width}, {integer}, {int(param.binds)}"
    return f"{{{', '.join(map(c_text, texts))}, {numbers}}}"


def _site(site: CheckSite) -> str:
    names = "".join(f"{c_text(n)}, " for n in site.names[:4])
    numbers = (_SITES.index(site.kind), site.param, site.dim, site.other)
    return f"{{{', '.join(map(str, numbers))}, {c_text(site.text)}, {{{names}0}}}}"


def prototypes(model: Model, *, wasm: bool = False) -> Iterator[str]:
    """Yield the declarations of the public functions, with a comment on their parameters."""
    for spec in model.public:
        passed = passed_params(model, spec)
        lines = [f" * {p.name}: {p.annotation}, {p.access}" for p in passed]
        if takes_state(model, spec):
            lines.append(f" * state: {', '.join(p.name for p in spec.states)}")
        lines += [
            f" * result {k}: {spec.results[k].name}: {spec.results[k].annotation}"
            for k in written_results(spec)
        ]
        lines += [f" * {r}" for r in spec.ranges]
        lines += [f" * the program assumes {fact}" for fact in assumptions(spec)]
        text = "\n".join(lines)[3:] or "No parameters and no results."
        yield "/* " + text.replace("*/", "* /") + " */\n" + _prototype(model, spec) + ";"
        if not wasm:
            yield from destination_prototypes(model, spec)


def _prototype(model: Model, spec: FunctionSpec) -> str:
    params = [f"{model.name}_model *model"]
    params += [
        f"int64_t {p.name}_" if p.form == "integer" else f"const tw_tensor *{p.name}_"
        for p in passed_params(model, spec)
    ]
    params += [f"{model.name}_state *state"] * takes_state(model, spec)
    params += [f"tw_result **result_{k}" for k in written_results(spec)]
    params.append("tw_error *error")
    return f"TW_EXPORT int32_t {symbol_of(model, spec)}({', '.join(params)})"


def _public(model: Model) -> Iterator[str]:
    name = model.name
    yield (
        f"int32_t {name}_abi_version(void) {{ return TW_ABI_VERSION; }}\n"
        f"int32_t {name}_open(const tw_runtime *runtime, const void *weights, int64_t bytes, "
        f"{name}_model **out, tw_error *error) {{\n"
        f"  return open_model(runtime, weights, bytes, out, error);\n}}\n"
        f"void {name}_close({name}_model *model) {{\n  if (model) destroy(model);\n}}\n"
        f"void {name}_trim({name}_model *model, int64_t keep) {{\n"
        "  if (model) trim(model, keep);\n}\n"
        f"int64_t {name}_live_models(void) {{\n"
        "  return __atomic_load_n(&live_models, __ATOMIC_ACQUIRE);\n}\n"
        f"int64_t {name}_live_results(const {name}_model *model) {{\n"
        "  return model ? live_results(model) : 0;\n}"
    )
    for number, spec in enumerate(model.functions):
        if not spec.prepares:
            yield _definition(model, number, spec)


def _definition(model: Model, number: int, spec: FunctionSpec) -> str:
    results = written_results(spec)
    base = f"CALL_OPERANDS / 8 + {2 * len(spec.params)}"
    lines = [
        f"  uint64_t call[{base} + {len(spec.results) + 1}];",
        "  int32_t code = check_call(model, error);",
        "  if (code) return code;",
        f"  begin_call(model, &functions[{number}], call);",
    ]
    for k in results:
        lines.append(f"  if (!result_{k}) return fail_null_result(begin(error), {k});")
        lines.append(f"  *result_{k} = 0;")
    lines += operand_lines(model, number, spec)
    stateful = takes_state(model, spec)
    start = f"with_state(model, {number}, state" if stateful else f"function(model, {number}"
    lines.append(f"  code = call_{start}, call, error);")
    lines.append("  if (code) return code;")
    lines += [f"  *result_{k} = ADDRESS(call[{base} + {k}]);" for k in results]
    head = _prototype(model, spec).removeprefix("TW_EXPORT ")
    return f"{head} {{\n" + "\n".join(lines) + "\n  return TW_OK;\n}"


def _described(name: str) -> str:
    return f"""\
/* Return the description of the library as JSON: functions, types, ranges, weights, versions. */
TW_EXPORT const char *{name}_describe(void);"""


def header_text(model: Model, *, wasm: bool = False) -> str:
    """Return the public header of a model."""
    name, guard = model.name, f"TILEWRIGHT_{model.name.upper()}_H"
    states = state_prototypes(name, model.states) if model.states.params else ()
    updates = update_prototypes(name) if model.replaceable else ()
    described = () if wasm else (_described(name),)
    levels = level_prototypes(name) if model.levels else ()
    parts = (*described, *levels, *updates, *states, *prototypes(model, wasm=wasm))
    declared = "\n\n".join(parts)
    return f"""\
/* Model {name}, compiled by Tilewright. Every function returns TW_OK or an error code, and writes
 * to error unless it is null. Several threads may call one model concurrently. */
#ifndef {guard}
#define {guard}

#include "tilewright.h"

/* May be defined before this header is included. */
#ifndef TW_EXPORT
#if defined(__GNUC__) || defined(__clang__)
#define TW_EXPORT __attribute__((visibility("default")))
#else
#define TW_EXPORT
#endif
#endif

#ifdef __cplusplus
extern "C" {{
#endif

typedef struct {name}_model {name}_model;

/* The size of {name}.safetensors in bytes. */
#define {name}_WEIGHTS_SIZE INT64_C({model.weights.size})

/* The maximum number of threads of a runtime. */
#define {name}_MOST_THREADS {model.threads}

TW_EXPORT int32_t {name}_abi_version(void);

/* Open a model. weights are the bytes of {name}.safetensors, aligned to 16 bytes. They must outlive
 * the model. */
TW_EXPORT int32_t {name}_open(const tw_runtime *runtime, const void *weights, int64_t bytes,
                              {name}_model **model, tw_error *error);

/* Free a model. No call may be running. Results remain valid. */
TW_EXPORT void {name}_close({name}_model *model);

/* Free memory that the model keeps for later calls and that no running call uses, until at most
 * keep bytes of workspaces remain; 0 frees all of it. */
TW_EXPORT void {name}_trim({name}_model *model, int64_t keep);

/* Return the number of results and states of an open model that are not yet released. */
TW_EXPORT int64_t {name}_live_results(const {name}_model *model);

/* Return the number of models that are open, or of which results or states are not yet released.
 * The library must not be unloaded before it is 0. */
TW_EXPORT int64_t {name}_live_models(void);

{declared}

#ifdef __cplusplus
}}
#endif
#endif
"""
