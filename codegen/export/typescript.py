"""TypeScript types of a model for WebGPU, with symbolic shapes in comments."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from ...ir.dtype import DTYPES
from ..entry_names import public_name
from ..manifest import FunctionSpec, ParamSpec
from .model import Model
from .tables import assumptions

_ARRAYS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "f32": "Float32Array", "f64": "Float64Array", "i8": "Int8Array", "i16": "Int16Array",
        "i32": "Int32Array", "i64": "BigInt64Array", "u8": "Uint8Array", "u16": "Uint16Array",
        "u32": "Uint32Array", "u64": "BigUint64Array", "bool": "Uint8Array",
    }
)  # fmt: skip
"""The typed arrays of dtypes; others are represented by their bits."""

_BYTE: Final = 8

_COMMON: Final = """\
/** Elements in row-major order, with their shape. */
export interface HostArray<A> {
  data: A;
  shape: number[];
}

/** A tensor on the device. */
export declare class DeviceTensor<A> {
  private constructor();
  readonly dtype: string;
  readonly shape: readonly number[];
  /** Copy the elements from the device. */
  read(): Promise<A>;
  /** Free the memory on the device. */
  free(): void;
}

/** An argument: an array that is copied to the device, or a tensor on the device. */
export type Input<A> = HostArray<A> | DeviceTensor<A>;

/** An invalid file or call, or an error of a kernel. */
export declare class ModelError extends Error {
  readonly code: number;
}

/** WebGPU is not available. */
export declare class DeviceUnavailableError extends ModelError {
  readonly reason:
    | "no-browser"
    | "insecure-context"
    | "no-webgpu"
    | "disabled"
    | "no-adapter"
    | "missing-feature"
    | "no-device";
}

/** The device was lost while a call used it, or the object belongs to a lost device. */
export declare class DeviceLostError extends ModelError {}

/** The browser rejects a shader. */
export declare class ShaderError extends ModelError {
  readonly kernel: string;
}

/** The progress of `load`: compiled kernels, or bytes of the weights. */
export interface Progress {
  stage: "kernels" | "weights";
  loaded: number;
  total: number;
}

export interface LoadOptions {
  onProgress?: (progress: Progress) => void;
  /** Do not verify the sha256 of the weights. */
  trust?: boolean;
  /** Cancels the download. */
  signal?: AbortSignal;
  /** A GPUDevice to use instead of a new one. */
  device?: object;
}
"""

_STATE: Final = """\
/** The values of the state parameters between calls, on the device. */
export interface State {
%s
  /** Set the initial values of the model. */
  reset(): void;
  /** Free the memory of the state. */
  free(): void;
}
"""


def typescript(model: Model) -> str:
    """Return the types of a model."""
    parts = [f"/** Model {model.name}, compiled by Tilewright. */\n", _COMMON]
    if model.states.params:
        parts.append(_STATE % "\n".join(_state_methods(model)))
        values = "\n".join(_state_values(model))
        parts.append(f"export interface StateValues {{\n{values}\n}}\n")
    parts += map(_inputs, model.public)
    parts.append(_model(model))
    parts.append(
        "/** Open the model. `url` is the directory of its files; default: that of this module. */"
        "\nexport declare function load(url?: string | URL, options?: LoadOptions): "
        "Promise<Model>;\n"
    )
    return "\n".join(parts)


def _array(name: str) -> str:
    """Return the typed array of the elements of a dtype."""
    dtype = DTYPES[name]
    if dtype.is_complex:
        return _ARRAYS[dtype.part.name]
    return _ARRAYS.get(name) or ("Uint8Array" if dtype.bits <= _BYTE else "Uint16Array")


def _comment(lines: Sequence[str], indent: str = "") -> str:
    safe = [line.replace("*/", "* /") for line in lines]
    if len(safe) == 1:
        return f"{indent}/** {safe[0]} */"
    body = "\n".join(f"{indent} * {line}" for line in safe)
    return f"{indent}/**\n{body}\n{indent} */"


def _annotation(param: ParamSpec) -> str:
    written = {"out": ", written", "inout": ", read and written"}.get(param.access, "")
    bits = "" if param.dtype in _ARRAYS or param.form == "integer" else ", as bits"
    return f"{param.annotation}{bits}{written}"


def _interface(spec: FunctionSpec) -> str:
    name = public_name(spec.name)
    return f"{name[:1].upper()}{name[1:]}Inputs"


def _inputs(spec: FunctionSpec) -> str:
    lines = [_comment([f"The arguments of {public_name(spec.name)}."])]
    lines.append(f"export interface {_interface(spec)} {{")
    for param in spec.inputs:
        kind = "number | bigint" if param.form == "integer" else f"Input<{_array(param.dtype)}>"
        lines.append(_comment([_annotation(param)], "  "))
        lines.append(f"  {json.dumps(param.name)}: {kind};")
    return "\n".join([*lines, "}", ""])


def _result(spec: FunctionSpec) -> str:
    """Return the type of the results: new tensors, and the arguments that are written."""
    kinds: list[str] = []
    for result in spec.results:
        form = "DeviceTensor" if result.param < 0 else "Input"
        kinds.append(f"{form}<{_array(result.dtype)}>")
    if len(kinds) == 1:
        return kinds[0]
    return f"[{', '.join(kinds)}]"


def _model(model: Model) -> str:
    lines = ["export interface Model {"]
    names = [public_name(f.name) for f in model.public]
    first = names[0] if len(names) == 1 else "main" if "main" in names else ""
    for spec in model.public:
        name = public_name(spec.name)
        comment = _comment(list(_facts(spec)), "  ")
        state = ", state?: State" if spec.states else ""
        optional = "" if spec.inputs else "?"
        signature = f"(inputs{optional}: {_interface(spec)}{state}): Promise<{_result(spec)}>;"
        lines += [comment, f"  {json.dumps(name)}{signature}"]
        if name == first:
            lines += [_comment([f"Call {name}."], "  "), f"  run{signature}"]
    lines += [
        "  /** The GPUDevice. */",
        "  readonly device: object;",
        "  /** Copy an array to the device. */",
        *_uploads(),
    ]
    if model.states.params:
        optional = "" if model.states.symbols else "?"
        lines += [
            "  /** Create a state with the initial values, except for given ones. */",
            f"  newState(values{optional}: StateValues): State;",
            "  /** The state of calls without one. */",
            "  readonly state: State;",
        ]
    lines += ["  /** Free the memory of the model on the device. */", "  close(): void;", "}", ""]
    return "\n".join(lines)


def _uploads() -> Iterator[str]:
    """Yield the overloads of ``upload``, one per type of array."""
    kinds: dict[str, list[str]] = {}
    for name in DTYPES:
        kinds.setdefault(_array(name), []).append(json.dumps(name))
    for array, names in kinds.items():
        yield (
            f"  upload(dtype: {' | '.join(names)}, value: HostArray<{array}>): "
            f"DeviceTensor<{array}>;"
        )


def _facts(spec: FunctionSpec) -> Iterator[str]:
    """Yield the description of a function: its results, symbols, and assumptions."""
    yield f"{public_name(spec.name)}({', '.join(p.name for p in spec.inputs)})"
    for result in spec.results:
        yield f"Result {result.name}: {result.annotation}"
    if spec.states:
        yield f"State: {', '.join(f'{p.name}: {p.annotation}' for p in spec.states)}"
    yield from map(str, spec.ranges)
    yield from (f"The program assumes {fact}" for fact in assumptions(spec))


def _state_methods(model: Model) -> Iterator[str]:
    for param in model.states.params:
        array, name = _array(param.dtype), json.dumps(param.name)
        yield _comment([_annotation(param)], "  ")
        yield f"  get(name: {name}): Promise<HostArray<{array}>>;"
        yield f"  set(name: {name}, value: HostArray<{array}> | number | bigint): void;"


def _state_values(model: Model) -> Iterator[str]:
    for symbol in model.states.symbols:
        yield f"  {json.dumps(symbol)}?: number | bigint;"
    for param in model.states.params:
        yield _comment([_annotation(param)], "  ")
        yield f"  {json.dumps(param.name)}?: HostArray<{_array(param.dtype)}> | number | bigint;"
