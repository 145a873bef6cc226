"""The C tables of the shaders of a model for WebGPU, and the functions that compute launches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...ir.symbolic import Var, var
from ...ir.symbolic.parse import parse_expr
from ...ir.thread import runtime_table
from ...target.webgpu import DISPATCH
from ..artifact import Artifact
from ..manifest import FunctionSpec
from ..rtlib import layout
from ..wgsl import Shader, from_bytes
from .c_messages import c_text
from .c_terms import FUNCTIONS, c_term
from .errors import ExportError

NUMBERS: Final = 1024
"""The bytes of the integers of a launch in the uniform buffer."""

_TYPE: Final = """\
typedef struct {
  const char *name;
  int32_t symbols, pointers, buffers, bindings, folded;
  const int32_t *bound, *written;
  void (*sizes)(const int64_t *, int64_t *);
  const char *const *messages;
  const int32_t *bounds; /* whether a message is that of an access out of bounds */
} tw_shader;"""


@dataclass(frozen=True, slots=True)
class WebShader:
    """A shader of an export, its kernel, and whether the kernel writes each of its bindings."""

    shader: Shader
    kernel: str
    written: tuple[bool, ...]

    @property
    def name(self) -> str:
        """The name of the shader."""
        return self.shader.name


def web_shaders(artifact: Artifact) -> tuple[WebShader, ...]:
    """Return the shaders of an artifact.

    Raises
    ------
    ExportError
        If the integer parameters of a kernel exceed the uniform buffer.
    """
    found: list[WebShader] = []
    for spec in artifact.kernel_specs:
        for shader in from_bytes(artifact.images[spec.name]):
            size = 8 * shader.symbols + 4 * len(shader.bindings) + 12
            if size > NUMBERS:
                raise ExportError(
                    f"kernel {spec.name!r} has {shader.symbols} integer parameters, {size} bytes "
                    f"with the offsets of its buffers; the limit is {NUMBERS} bytes",
                    hint="use fewer symbols in one kernel",
                )
            written = tuple(
                k >= len(spec.access) or spec.access[k] != "in" for k in shader.bindings
            )
            found.append(WebShader(shader, spec.name, written))
    return tuple(found)


def web_defines() -> Iterator[str]:
    """Yield the constants of the launch and device records."""
    for name in ("LAUNCH", "DEVICE"):
        yield f"#define TABLE_{name} {getattr(runtime_table, name)}"
    for name in ("RECORD_HANDLE", "RECORD_GRID", "INSTANCE_KERNELS"):
        yield f"#define {name} {getattr(layout, name)}"
    for name in ("TYPE", "ORDINAL", "HOST_ALLOC", "HOST_FREE", "STREAM_COUNT", "SIZE"):
        yield f"#define DEVICE_{name} {getattr(layout, f'DEVICE_{name}')}"
    yield f"#define WEB_DISPATCH {DISPATCH}\n#define WEB_NUMBERS {NUMBERS}"


def web_tables(shaders: Sequence[WebShader], functions: Sequence[FunctionSpec]) -> Iterator[str]:
    """Yield the C tables of the shaders, and of the kernels of each function."""
    positions = {s.name: k for k, s in enumerate(shaders)}
    yield f"#define TW_WEB 1\n#define WEB_SHADERS {len(shaders)}"
    yield f"#define WEB_SYMBOLS {max((s.shader.symbols for s in shaders), default=0)}"
    yield f"#define WEB_KERNELS {max(len(f.kernels) for f in functions)}"
    yield from web_defines()
    yield _TYPE
    yield FUNCTIONS
    rows: list[str] = []
    for k, shader in enumerate(shaders):
        yield from _shader_tables(k, shader)
        rows.append(_row(k, shader))
    body = ",\n  ".join(rows) or "{0}"
    yield f"static const tw_shader shaders[] = {{\n  {body}\n}};"
    for k, function in enumerate(functions):
        yield _integers(f"web_kernels_{k}", [positions[name] for name in function.kernels])
    names = ", ".join(f"web_kernels_{k}" for k in range(len(functions)))
    yield f"static const int32_t *const web_kernels[] = {{{names}}};"
    yield _integers("web_kernel_counts", [len(f.kernels) for f in functions])


def _integers(name: str, values: Sequence[int]) -> str:
    return f"static const int32_t {name}[] = {{{', '.join(map(str, values)) or '0'}}};"


def _shader_tables(k: int, shader: WebShader) -> Iterator[str]:
    made = shader.shader
    yield _integers(f"bound_{k}", made.bindings)
    yield _integers(f"written_{k}", [int(w) for w in shader.written])
    texts = ", ".join(map(c_text, made.messages))
    yield f"static const char *const shader_messages_{k}[] = {{{texts or '0'}}};"
    yield _integers(f"bounds_{k}", [int("is out of bounds" in text) for text in made.messages])
    symbols = [var(f"s{j}") for j in range(made.symbols)]
    names = {symbol: f"s[{j}]" for j, symbol in enumerate(symbols)}
    known = {symbol.name: symbol for symbol in symbols}
    lines = [f"  bytes[{j}] = {_size(text, known, names)};" for j, text in enumerate(made.sizes)]
    body = "\n".join(("  (void)s, (void)bytes;", *lines))
    yield f"static void sizes_{k}(const int64_t *s, int64_t *bytes) {{\n{body}\n}}"


def _size(text: str, known: dict[str, Var], names: Mapping[Var, str]) -> str:
    return c_term(parse_expr(text, known), names)


def _row(k: int, shader: WebShader) -> str:
    made = shader.shader
    numbers = (made.symbols, made.pointers, made.buffers, len(made.bindings), int(made.folded))
    tables = f"bound_{k}, written_{k}, sizes_{k}, shader_messages_{k}, bounds_{k}"
    return f"{{{c_text(shader.kernel)}, {', '.join(map(str, numbers))}, {tables}}}"
