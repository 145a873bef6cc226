"""The sha256 per block of a file of weights: the C tables by which a library names the damage."""

from __future__ import annotations

import json
from collections.abc import Iterator

from .replaceable import tensor_entries
from .weights import Weights


def block_tables(weights: Weights) -> Iterator[str]:
    """Yield the C tables of the blocks of a file, and of the tensors in them."""
    count = len(weights.blocks) // 64
    yield f"#define BLOCK_BYTES INT64_C({weights.block_bytes})\n#define BLOCKS {count}"
    yield f"#define LIST_AT {weights.list_range[0]}\n#define BLOCKS_AT {weights.blocks_at}"
    rows: list[str] = []
    at = weights.blocks_at
    for tensor in tensor_entries(weights):
        key = json.dumps(tensor.name)
        at = weights.header.index(f"{key}:{{".encode(), at)
        rows.append(f"{{INT64_C({tensor.begin}), INT64_C({tensor.end}), {at + 1}, {len(key) - 2}}}")
    yield "/* The bytes of a tensor in the file, and its name in the header. */"
    yield "typedef struct {\n  int64_t begin, end;\n  int32_t name, length;\n} tw_span;"
    yield f"#define SPANS {len(rows)}"
    yield "static const tw_span spans[] = {\n  " + ",\n  ".join(rows or ["{0, 0, 0, 0}"]) + "\n};"
