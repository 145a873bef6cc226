"""Error messages of exported libraries: C functions and loader tables generated from templates."""

from __future__ import annotations

import json
from collections.abc import Iterator
from string import Formatter
from typing import Final

from ..messages import IN_FUNCTION, IN_KERNEL, IN_PARAMETER, IN_RESULT, Message

_LOCATIONS: Final = {
    "in_function": IN_FUNCTION,
    "in_kernel": IN_KERNEL,
    "in_parameter": IN_PARAMETER,
    "in_result": IN_RESULT,
}
IN_C: Final = (
    Message.DTYPE, Message.RANK, Message.DEVICE, Message.STRIDES, Message.ALIGNMENT,
    Message.READ_ONLY, Message.UNSUPPORTED, Message.DIMENSION, Message.ELEMENT, Message.INTEGER,
    Message.UNKNOWN_RANK, Message.STRIDE, Message.ALIAS, Message.NULL_TENSOR, Message.INVALID_RANK,
    Message.NULL_SHAPE, Message.NEGATIVE_DIMENSION, Message.TOO_MANY_ELEMENTS, Message.NULL_DATA,
    Message.NULL_RESULT, Message.BOUND, Message.FACT, Message.CHECK, Message.DIVISOR,
    Message.NEGATIVE_SIZE, Message.OVERFLOW, Message.MEMORY, Message.BOUNDS, Message.RANGE,
    Message.RANGE_BELOW, Message.RANGE_UNSIGNED, Message.KERNEL, Message.UNKNOWN, Message.CANCELED,
    Message.GRID, Message.DEVICE_OPERATION,
    Message.NULL_MODEL, Message.NULL_OUTPUT, Message.NULL_RUNTIME,
    Message.ALLOC_ALIGNMENT, Message.RUNTIME_SIZE, Message.RUNTIME_FIELDS,
    Message.NULL_ALLOCATOR, Message.RUNTIME_VERSION, Message.RUNTIME_FLAGS, Message.THREADS,
    Message.PROCESSOR, Message.NULL_WEIGHTS, Message.WEIGHTS_ALIGNMENT, Message.WEIGHTS_SIZE,
    Message.WEIGHTS_HEADER, Message.WEIGHTS_DIGEST, Message.MODEL_MEMORY, Message.LIMIT,
    Message.ARENA_LIMIT, Message.WORKSPACE, Message.WEIGHTS_ROOT, Message.WEIGHTS_BLOCK,
)  # fmt: skip
"""The messages that libraries write themselves."""
OF_WEBGPU: Final = (Message.LAUNCH, Message.BINDING_LIMIT)
"""The messages that models for WebGPU also write."""
OF_UPDATES: Final = (
    Message.WEIGHTS_MISSING, Message.WEIGHTS_TYPE, Message.WEIGHTS_LAYOUT, Message.WEIGHTS_EXTRA,
    Message.WEIGHTS_END, Message.WEIGHTS_FORMAT, Message.WEIGHTS_BUSY, Message.WEIGHTS_VERSIONS,
)  # fmt: skip
"""The messages that libraries with replaceable weights also write."""
OF_LEVELS: Final = (Message.LEVEL, Message.LEVEL_PROCESSOR)
"""The messages that libraries with levels also write."""
OF_STATES: Final = (
    Message.NULL_STATE, Message.OTHER_STATE, Message.BUSY_STATE, Message.FAILED_STATE,
    Message.STATE_SIZE,
)  # fmt: skip
"""The messages that libraries with state also write."""
OF_DESTINATIONS: Final = (
    Message.OUTPUT_SHAPE, Message.OUTPUT_ALIAS, Message.WORKSPACE_ALIGNMENT,
    Message.NULL_WORKSPACE, Message.WORKSPACE_ALIAS, Message.WORKSPACE_SIZE,
    Message.STRUCTURE_SIZE, Message.STRUCTURE_FIELDS, Message.NULL_NEEDS,
)  # fmt: skip
"""The messages of calls with outputs or a workspace of the caller."""
IN_PYTHON: Final = (
    Message.ARGUMENT_COUNT, Message.UNKNOWN_ARGUMENT, Message.DUPLICATE_ARGUMENT,
    Message.MISSING_ARGUMENT, Message.ARGUMENT_TYPE, Message.INTEGER_RANGE, Message.DTYPE,
    Message.READ_ONLY, Message.LIBRARY_VERSION, Message.THREADS, Message.OUTPUT_COUNT,
)  # fmt: skip
"""The messages that the Python loader raises before it calls the library."""
IN_JAVASCRIPT: Final = (
    Message.ARGUMENT_COUNT, Message.ARGUMENT_TYPE, Message.INTEGER_RANGE, Message.DTYPE,
    Message.ALIAS, Message.NEGATIVE_DIMENSION, Message.INVALID_DIMENSION, Message.DATA_LENGTH,
    Message.LIBRARY_VERSION, Message.CLOSED, Message.ALLOCATION, Message.OTHER_STATE,
)  # fmt: skip
"""The messages that the JavaScript loader raises before it calls the module."""
ON_PAGES: Final = (
    Message.UNKNOWN_ARGUMENT, Message.MISSING_ARGUMENT, Message.ARGUMENT_TYPE,
    Message.INTEGER_RANGE, Message.DTYPE, Message.ALIAS, Message.NEGATIVE_DIMENSION,
    Message.INVALID_DIMENSION, Message.DATA_LENGTH, Message.CLOSED, Message.ALLOCATION,
    Message.OTHER_STATE,
)  # fmt: skip
"""The messages that the loader of a model for WebGPU raises, whose arguments have names."""
_NUMBERS: Final = frozenset(
    {"expected", "actual", "bytes", "limit", "dim", "index", "code", "first", "second"}
)
_OF_TENSOR: Final = frozenset({"shape", "strides", "actual_dtype", "actual_device", "result_shape"})
_OF_FAILURE: Final = frozenset({"term", "values"})


def c_text(text: str) -> str:
    """Return a string as a C literal."""
    return json.dumps(text.encode("ascii", "backslashreplace").decode())


def c_functions(
    *,
    state: bool = False,
    destinations: bool = False,
    web: bool = False,
    updates: bool = False,
    levels: bool = False,
) -> Iterator[str]:
    """Yield a C function per location and message.

    Those of states are only for models with state, those of ``destinations`` only for libraries
    whose callers provide outputs, those of ``web`` only for models on the GPU of a page, those of
    ``updates`` only for libraries with replaceable weights, and those of ``levels`` only for
    libraries with levels.

    ``put_in_function(w, ...)`` writes a location. ``fail_rank(w, ...)`` writes a message and its
    code, which it returns. The fields of the template are the parameters, in order.
    """
    for name, template in _LOCATIONS.items():
        if name == "in_result" and not destinations:
            continue
        head, lines = _function(template)
        body = "\n".join(f"  put{line};" for line in lines).replace("&w", "w")
        yield f"static void put_{name}(tw_writer *w, {head}) {{\n{body}\n}}"
    parts = (state, OF_STATES), (destinations, OF_DESTINATIONS), (web, OF_WEBGPU)
    parts = *parts, (updates, OF_UPDATES), (levels, OF_LEVELS)
    for message in (*IN_C, *(m for used, messages in parts if used for m in messages)):
        head, lines = _function(message.template)
        parameters = ", ".join(filter(None, ("tw_writer w", head)))
        body = "\n".join(f"  put{line};" for line in lines)
        yield (
            f"static int32_t fail_{message.name.lower()}({parameters}) {{\n{body}\n"
            f"  return finish(w, TW_ERROR_{message.code.name});\n}}"
        )


def _function(template: str) -> tuple[str, list[str]]:
    """Return the parameters of a template, and the ends of the calls that write it."""
    parameters: dict[str, str] = {}
    lines: list[str] = []
    for literal, field, _, _ in Formatter().parse(template):
        if literal:
            lines.append(f"(&w, {c_text(literal)})")
        if field is not None:
            kind, writer = _field(field)
            parameters[field] = f"{kind}{field}"
            lines.append(f"{writer}(&w, {field})")
    return ", ".join(parameters.values()), lines


def _field(name: str) -> tuple[str, str]:
    """Return the C type of a field and the suffix of the function that writes it."""
    if name in _NUMBERS:
        return "int64_t ", "_number"
    if name == "large":
        return "uint64_t ", "_unsigned"
    if name in _OF_TENSOR:
        return "const tw_tensor *", f"_{name}"
    if name in _OF_FAILURE:
        return "const tw_failure *", f"_{name}"
    return "const char *", ""


def loader_table(messages: tuple[Message, ...]) -> str:
    """Return the locations and messages of a loader by name, as JSON: codes and templates."""
    table = {"in_function": [0, IN_FUNCTION], "in_parameter": [0, IN_PARAMETER]}
    if Message.OUTPUT_COUNT in messages:
        table["in_result"] = [0, IN_RESULT]
    table |= {m.name.lower(): [int(m.code), m.template] for m in messages}
    return json.dumps(table, indent=1)
