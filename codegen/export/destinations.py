"""Functions of an exported model that write to the caller's memory, and report its size.

``NAME_FUNCTION_into`` writes results to tensors of the caller and may use a workspace of the
caller. ``NAME_FUNCTION_needs`` returns the size of this workspace and the shapes of the results.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from ...ir.dtype import dtype
from ..entry_names import public_name
from ..manifest import FunctionSpec
from .c_messages import c_text
from .errors import ExportError
from .model import Model, passed_params, symbol_of, takes_state, written_results

SUFFIXES: Final = ("into", "needs")
"""The suffixes of the functions that belong to a function."""


def check_suffixes(names: Collection[str]) -> None:
    """Check that no function has the name of the ``_into`` or ``_needs`` of another one.

    Raises
    ------
    ExportError
        If one has.
    """
    for name in names:
        for suffix in SUFFIXES:
            if f"{name}_{suffix}" in names:
                raise ExportError(
                    f"function '{name}_{suffix}' would have the symbol of the function {suffix!r} "
                    f"of function {name!r}",
                    hint=f"rename function '{name}_{suffix}'",
                )


def operand_lines(
    model: Model, number: int, spec: FunctionSpec, *, check: str = "check_tensor"
) -> list[str]:
    """Return the lines of C that check the arguments and write them to the call record.

    The tensors of a state follow them, which is a parameter ``state`` in C.
    """
    lines: list[str] = []
    stateful = takes_state(model, spec)
    for k, p in enumerate(spec.params):
        form, value = "FORM_DLPACK", f"WORD({p.name}_)"
        if stateful and p.access == "state":
            position = model.states.position(p.name)
            value = f"state ? WORD(&state->tensors[{position}]) : 0"
        elif p.form == "integer":
            form, value = "FORM_INTEGER", f"(uint64_t){p.name}_"
        else:
            call = f"{check}(&functions[{number}], {k}, {p.name}_, error)"
            lines.append(f"  if ((code = {call})) return code;")
        lines += [
            f"  call[CALL_OPERANDS / 8 + {2 * k}] = {form};",
            f"  call[CALL_OPERANDS / 8 + {2 * k + 1}] = {value};",
        ]
    return lines


def output_table(number: str, spec: FunctionSpec) -> str:
    """Return the C table of the results of a function that are new tensors."""
    rows: list[str] = []
    for k in written_results(spec):
        result, kind = spec.results[k], dtype(spec.results[k].dtype)
        texts = ", ".join(map(c_text, (result.name, result.annotation, result.dtype)))
        rows.append(f"{{{texts}, {k}, {result.rank}, {kind.dlpack}, {kind.bits}}}")
    return f"static const tw_output outputs_{number}[] = {{{', '.join(rows) or '{0}'}}};"


def _arguments(model: Model, spec: FunctionSpec) -> list[str]:
    """Return the C parameters of the model and of the arguments."""
    return [
        f"{model.name}_model *model",
        *(
            f"int64_t {p.name}_" if p.form == "integer" else f"const tw_tensor *{p.name}_"
            for p in passed_params(model, spec)
        ),
    ]


def _into(model: Model, spec: FunctionSpec) -> str:
    params = _arguments(model, spec)
    params += [f"{model.name}_state *state"] * takes_state(model, spec)
    params += [f"const tw_tensor *out_{k}" for k in written_results(spec)]
    params += ["const tw_call *how", "tw_error *error"]
    return f"int32_t {symbol_of(model, spec)}_into({', '.join(params)})"


def _needs(model: Model, spec: FunctionSpec) -> str:
    params = _arguments(model, spec)
    if takes_state(model, spec):
        params += [f"int64_t size_{symbol}" for symbol in model.states.symbols]
    params += [f"int64_t *shape_{k}" for k in written_results(spec)]
    params += ["tw_needs *needs", "tw_error *error"]
    return f"int32_t {symbol_of(model, spec)}_needs({', '.join(params)})"


def destination_prototypes(model: Model, spec: FunctionSpec) -> Iterator[str]:
    """Yield the declarations of the functions of one function."""
    name = public_name(spec.name)
    yield f"/* {name}, with results in tensors of the caller. */\nTW_EXPORT {_into(model, spec)};"
    ranks = [f"{spec.results[k].rank} dimensions in shape_{k}" for k in written_results(spec)]
    shapes = f": {', '.join(ranks)}" if ranks else ""
    yield (
        f"/* The memory that {name} needs, and the shapes of its results{shapes}. */\n"
        f"TW_EXPORT {_needs(model, spec)};"
    )


def public_destinations(model: Model) -> Iterator[str]:
    """Yield the definitions of the functions of all public functions."""
    for number, spec in enumerate(model.functions):
        if not spec.prepares:
            yield _into_definition(model, number, spec)
            yield _needs_definition(model, number, spec)


def _head(spec: FunctionSpec, number: int, kind: str, given: Iterable[str]) -> list[str]:
    """Return the first lines of a function; ``given`` are the C names of an array of a type."""
    base = f"CALL_OPERANDS / 8 + {2 * len(spec.params)}"
    return [
        f"  uint64_t call[{base} + {len(spec.results) + 1}];",
        "  int32_t code = check_call(model, error);",
        "  if (code) return code;",
        f"  begin_call(model, &functions[{number}], call);",
        f"  {kind}[] = {{{', '.join((*given, '0'))}}};",
    ]


def _into_definition(model: Model, number: int, spec: FunctionSpec) -> str:
    results = written_results(spec)
    lines = _head(spec, number, "const tw_tensor *outputs", (f"out_{k}" for k in results))
    lines += operand_lines(model, number, spec)
    state = "state" if takes_state(model, spec) else "0"
    lines.append(f"  return call_into(model, {number}, call, outputs, {state}, how, error);")
    return f"{_into(model, spec)} {{\n" + "\n".join(lines) + "\n}"


def _needs_definition(model: Model, number: int, spec: FunctionSpec) -> str:
    results = written_results(spec)
    lines = _head(spec, number, "int64_t *shapes", (f"shape_{k}" for k in results))
    state_bytes = "0"
    if takes_state(model, spec):
        sizes = ", ".join(f"size_{symbol}" for symbol in model.states.symbols)
        lines += [
            f"  const int64_t sizes[] = {{{sizes or '0'}}};",
            f"  {model.name}_state memory, *state = &memory;",
            "  int64_t state_bytes = 0;",
            "  if ((code = measure_state(state, sizes, &state_bytes, error))) return code;",
        ]
        state_bytes = "STATE_BYTES(state_bytes)"
    lines += operand_lines(model, number, spec, check="check_shape")
    lines.append(
        f"  return call_needs(model, {number}, call, shapes, {state_bytes}, needs, error);"
    )
    return f"{_needs(model, spec)} {{\n" + "\n".join(lines) + "\n}"
