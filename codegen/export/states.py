"""States of exported models: the parameters that keep their values between calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, cast

from ...errors import Json
from ...ir.dtype import dtype
from ...ir.symbolic import Expr, Var, as_expr, free_vars, parse_expr, var
from ...ir.symbolic.terms import Add, Const, Mul
from ..entry_names import public_name
from ..manifest import FunctionSpec, ParamSpec, to_json
from .c_messages import c_text
from .errors import ExportError

RESERVED: Final = frozenset({
    "state", "new_state", "newState", "state_create", "state_reset", "state_tensor",
    "state_destroy",
})  # fmt: skip
"""The names of functions that a model with state defines."""


@dataclass(frozen=True, slots=True)
class States:
    """The state parameters of all functions by name, and the symbols of their shapes.

    Parameters
    ----------
    params : tuple of ParamSpec
        The parameters; functions share those of one name.
    dims : tuple of tuple of Expr
        The shape of each parameter.
    symbols : tuple of str
        The symbols of the shapes, in order of first occurrence.
    """

    params: tuple[ParamSpec, ...] = ()
    dims: tuple[tuple[Expr, ...], ...] = ()
    symbols: tuple[str, ...] = ()

    def position(self, name: str) -> int:
        """Return the position of a parameter."""
        return [p.name for p in self.params].index(name)

    def facts(self) -> Json:
        """Return the parameters and symbols for the manifest."""
        return {
            "symbols": list(self.symbols),
            "params": [to_json(p) for p in self.params],
        }


def states_of(functions: Sequence[FunctionSpec]) -> States:
    """Return the states of functions.

    Raises
    ------
    ExportError
        If parameters of one name differ in dtype or shape, or a shape cannot be computed in C.
    """
    found: dict[str, tuple[FunctionSpec, ParamSpec]] = {}
    for spec in functions:
        for param in spec.states:
            other, known = found.setdefault(param.name, (spec, param))
            if (known.dtype, known.shape) != (param.dtype, param.shape):
                names = f"{public_name(other.name)!r} and {public_name(spec.name)!r}"
                raise ExportError(
                    f"state {param.name!r} of functions {names} has annotations "
                    f"{known.annotation} and {param.annotation}",
                    hint="give different states different names",
                )
    symbols: dict[str, Var] = {}
    dims = tuple(_dims(spec, param, symbols) for spec, param in found.values())
    return States(tuple(p for _, p in found.values()), dims, tuple(symbols))


def _dims(spec: FunctionSpec, param: ParamSpec, used: dict[str, Var]) -> tuple[Expr, ...]:
    """Return the shape of a parameter; symbols of one name are one symbol."""
    known = {s: used.get(s) or var(s) for s in spec.symbols}
    dims = tuple(as_expr(cast("Expr", parse_expr(text, known))) for text in param.shape)
    for dim in dims:
        if not _is_polynomial(dim):
            raise ExportError(
                f"state {param.name!r} ({param.annotation}) has dimension {dim}, which is not a "
                "sum of products of symbols",
                hint="declare a symbol for this dimension",
            )
        for symbol in sorted(free_vars(dim), key=lambda v: v.serial):
            used.setdefault(symbol.name, symbol)
    return dims


def _is_polynomial(dim: Expr) -> bool:
    match dim:
        case Const() | Var():
            return True
        case Mul(factors=factors):
            return all(isinstance(f, Var) for f in factors)
        case Add(terms=terms):
            return all(_is_polynomial(t) for t, _ in terms)
        case _:
            return False


def _c_dim(dim: Expr, symbols: Sequence[str]) -> str:
    """Return a dimension as a C expression over the sizes; products saturate."""
    match dim:
        case Var(name=name):
            return f"sizes[{symbols.index(name)}]"
        case Mul(factors=(first, *rest)):
            found = _c_dim(first, symbols)
            for factor in rest:
                found = f"product({found}, {_c_dim(factor, symbols)})"
            return found
        case Add(terms=terms, constant=constant):
            parts = [_c_term(term, factor, symbols) for term, factor in terms]
            return " + ".join((*parts, f"INT64_C({constant})"))
        case Const(value=value):
            return f"INT64_C({value})"
        case _:
            raise ExportError(f"dimension {dim} is not a sum of products of symbols")


def _c_term(term: Expr, factor: int, symbols: Sequence[str]) -> str:
    product = f"product({_c_dim(term, symbols)}, INT64_C({abs(factor)}))"
    return f"-{product}" if factor < 0 else product


def state_tables(states: States, constants: Sequence[str]) -> Iterator[str]:
    """Yield the C tables of the parameters, and the function that computes their shapes."""
    rows: list[str] = []
    lines: list[str] = []
    for k, (param, dims) in enumerate(zip(states.params, states.dims, strict=True)):
        kind = dtype(param.dtype)
        initial = constants.index(param.initial) if param.initial else -1
        names = f"{c_text(param.name)}, {c_text(param.annotation)}"
        rows.append(f"{{{names}, {len(dims)}, {kind.dlpack}, {kind.bits}, {initial}}}")
        lines += [
            f"  shapes[{k}][{axis}] = {_c_dim(dim, states.symbols)};"
            for axis, dim in enumerate(dims)
        ]
    rank = max(1, *(len(dims) for dims in states.dims))
    yield f"#define STATES {len(rows)}\n#define STATE_RANK {rank}"
    yield f"#define STATE_SYMBOLS {len(states.symbols)}"
    yield (
        "typedef struct {\n  const char *name, *annotation;\n"
        "  int32_t rank, code, bits, initial;\n} tw_state_param;"
    )
    yield "static const tw_state_param state_params[] = {\n  " + ",\n  ".join(rows) + "\n};"
    symbols = ", ".join(c_text(s) for s in states.symbols)
    yield f"static const char *const state_symbols[] = {{{symbols or '0'}}};"
    yield (
        "static int64_t product(int64_t a, int64_t b) {\n"
        "  const int64_t limit = INT64_C(1) << 60;\n"
        "  return a && b > limit / a ? limit : a * b;\n}"
    )
    yield (
        "static void state_shapes(const int64_t *sizes, int64_t (*shapes)[STATE_RANK]) {\n"
        "  (void)sizes;\n  (void)shapes;\n" + "\n".join(lines) + "\n}"
    )


def _sizes(states: States) -> str:
    return "".join(f"int64_t {s}_, " for s in states.symbols)


def state_prototypes(name: str, states: States) -> Iterator[str]:
    """Yield the declarations of the functions of states."""
    lines = [f" * {p.name}: {p.annotation}" for p in states.params]
    head = " * The values of the state parameters between calls:"
    text = "/*" + "\n".join((head, *lines))[2:] + " */"
    yield f"{text}\ntypedef struct {name}_state {name}_state;"
    yield (
        "/* Create a state with the initial values. A call has exclusive access to its state: it\n"
        " * fails with TW_ERROR_STATE if another call uses the state. */\n"
        f"TW_EXPORT int32_t {name}_state_create({name}_model *model, {_sizes(states)}"
        f"{name}_state **state,\n    tw_error *error);"
    )
    yield (
        "/* Set the initial values again. */\n"
        f"TW_EXPORT int32_t {name}_state_reset({name}_state *state, tw_error *error);"
    )
    yield (
        "/* Return the tensor of a parameter, whose elements may be read and written between\n"
        " * calls; null if no parameter has this name. */\n"
        f"TW_EXPORT const tw_tensor *{name}_state_tensor({name}_state *state, const char *name);"
    )
    yield (
        "/* Free a state. No call may be using it. */\n"
        f"TW_EXPORT void {name}_state_destroy({name}_state *state);"
    )


def state_functions(name: str, states: States) -> Iterator[str]:
    """Yield the definitions of the functions of states."""
    sizes = ", ".join(f"{s}_" for s in states.symbols)
    yield (
        f"int32_t {name}_state_create({name}_model *model, {_sizes(states)}{name}_state **state, "
        "tw_error *error) {\n"
        f"  const int64_t sizes[STATE_SYMBOLS + 1] = {{{sizes or '0'}}};\n"
        "  return create_state(model, sizes, state, error);\n}"
    )
    yield (
        f"int32_t {name}_state_reset({name}_state *state, tw_error *error) {{\n"
        "  return reset_state(state, error);\n}"
    )
    yield (
        f"const tw_tensor *{name}_state_tensor({name}_state *state, const char *name) {{\n"
        "  return tensor_of_state(state, name);\n}"
    )
    yield (
        f"void {name}_state_destroy({name}_state *state) {{\n  if (state) destroy_state(state);\n}}"
    )
