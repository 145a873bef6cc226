"""Replaceable weights of exported models: the C tables of their schema, and public functions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from ...errors import Json
from .c_messages import c_text
from .errors import ExportError
from .model import Model
from .weights import FILLER, Weights

RESERVED: Final = frozenset({"update", "weights_in_use"})
"""The names of functions that a model with replaceable weights defines."""
KINDS: Final = ("shared", "static", "object")
"""The kinds of exports whose weights can be replaced."""


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """The entry of a tensor in a header, as text in parts, and its offsets in the file."""

    name: str
    type: str
    offsets: str
    begin: int
    end: int


def check_replaceable(kind: str, levels: Sequence[str] = ()) -> None:
    """Check that the weights of a kind of exports can be replaced.

    Raises
    ------
    ExportError
        If they cannot.
    """
    if kind not in KINDS:
        raise ExportError(
            f"the weights of kind {kind!r} cannot be replaced",
            hint=f"kinds with replaceable weights are {', '.join(map(repr, KINDS))}",
        )
    if levels:
        raise ExportError(
            f"the weights of a library with {len(levels)} levels cannot be replaced",
            hint="omit the levels, or export with weights='auto' or weights='plain'",
        )


def tensor_entries(weights: Weights) -> list[TensorEntry]:
    """Return the entries of the tensors of a file, without fillers, in the order of the file."""
    entries = cast("dict[str, dict[str, Json]]", json.loads(weights.header[8:]))
    found: list[TensorEntry] = []
    for name, entry in entries.items():
        if name == "__metadata__" or name.startswith(FILLER):
            continue
        begin, end = cast("list[int]", entry["data_offsets"])
        kind = json.dumps(
            {"dtype": entry["dtype"], "shape": entry["shape"]}, separators=(",", ":")
        )[1:-1]
        offsets = f',"data_offsets":[{begin},{end}]}}'
        size = len(weights.header)
        found.append(TensorEntry(name, kind, offsets, size + begin, size + end))
    return found


def schema_tables(model: Model) -> Iterator[str]:
    """Yield the C tables that the check of other weights reads."""
    weights = model.weights
    digest_at = weights.header.index(weights.digest.hex().encode())
    yield f"#define REPLACEABLE\n#define DIGEST_AT {digest_at}"
    first, end = weights.list_range
    yield f"#define LIST_SIZE {end - first}\n#define PLAIN_HEADER_SIZE {weights.plain_size}"
    entries = tensor_entries(weights)
    yield f"#define TENSORS {len(entries)}"
    members = "  const char *name, *key, *type, *offsets;\n  int64_t end;\n"
    yield f"typedef struct {{\n{members}}} tw_weight;"
    rows = (
        f"{{{', '.join(map(c_text, (t.name, f'{json.dumps(t.name)}:{{', t.type, t.offsets)))}, "
        f"INT64_C({t.end})}}"
        for t in entries
    )
    yield "static const tw_weight tensors[] = {\n  " + ",\n  ".join(rows) + "\n};"


def update_prototypes(name: str) -> Iterator[str]:
    """Yield the declarations of the functions that replace weights."""
    yield f"""\
/* Replace the weights of later calls; several threads may be calling the model. Running calls
 * finish with the weights with which they began, and a state keeps them until it is reset. The
 * weights are a file that "tilewright weights pack" has made for {name}. Its header contains the
 * sha256 of its tensors, which must be the 32 bytes of expected_root unless that is null. The
 * tensors are verified unless the runtime trusts weights. After an error, the weights are those
 * before. Only one thread at a time may update. */
TW_EXPORT int32_t {name}_update({name}_model *model, const void *weights, int64_t bytes,
                              const unsigned char *expected_root, tw_error *error);"""
    yield f"""\
/* Return 1 if weights at this address are those of later calls, of a running call, or of a state,
 * and 0 if their memory may be freed. */
TW_EXPORT int32_t {name}_weights_in_use({name}_model *model, const void *weights);"""


def update_functions(name: str) -> Iterator[str]:
    """Yield the definitions of the functions that replace weights."""
    yield (
        f"int32_t {name}_update({name}_model *model, const void *weights, int64_t bytes,\n"
        "                   const unsigned char *expected_root, tw_error *error) {\n"
        "  return update_model(model, weights, bytes, expected_root, error);\n}\n"
        f"int32_t {name}_weights_in_use({name}_model *model, const void *weights) {{\n"
        "  return model ? reads_weights(&model->versions, weights) : 0;\n}"
    )


def masked_header(header: bytes) -> bytes:
    """Return a header with zeros as each sha256, so that files of one schema have equal headers."""
    entries = cast("Mapping[str, Mapping[str, str]]", json.loads(header[8:]))
    for key in ("sha256", "blocks"):
        digests = entries.get("__metadata__", {}).get(key, "")
        text = f'"{key}":"%s"'
        header = header.replace(
            (text % digests).encode(), (text % ("0" * len(digests))).encode(), 1
        )
    return header
