"""The well-formedness rules of loop-level functions."""

from __future__ import annotations

from typing import Final

from ..violations import Rule

UIDS: Final = Rule("L1", "unique uids", "the uids of loops, blocks and buffers are unique")
NAMES: Final = Rule(
    "L2",
    "unique names",
    "the names of all loops, of all blocks and of all buffers are unique, and so are the names of "
    "the variables in scope",
)
VALID_NAMES: Final = Rule(
    "L3", "valid names", "every name survives a round trip through the text format"
)
SCOPE: Final = Rule(
    "L4",
    "variables in scope",
    "every variable is a symbol of a parameter or is bound by an enclosing loop, block or let",
)
ISOLATION: Final = Rule(
    "L5",
    "block isolation",
    "the body and init of a block use symbols, its iteration variables and variables bound inside "
    "the block, but no variables of enclosing loops",
)
DECLARED: Final = Rule(
    "L6", "declared buffers", "every accessed buffer is a parameter or a temporary of the function"
)
RANK: Final = Rule("L7", "rank of accesses", "an access has one index per dimension")
DTYPES: Final = Rule(
    "L8", "dtypes agree", "the operands of an element expression have the dtypes it requires"
)
REGIONS: Final = Rule(
    "L9",
    "regions cover accesses",
    "the read and write regions of a block contain all elements that its body accesses",
)
REDUCTION: Final = Rule(
    "L10",
    "reduction",
    "the write indices of a reduction block contain no reduction variables; its init writes the "
    "same buffers as its body, or it has no init and its body reads the buffers it writes",
)
SYMBOLS: Final = Rule(
    "L11",
    "symbols are bound",
    "every symbol is an integer parameter, or by itself a dimension of a parameter",
)
BOUND_ONCE: Final = Rule(
    "L12", "bound once", "a variable is bound by at most one loop, block or let"
)
BUFFERS: Final = Rule(
    "L13",
    "buffer attributes",
    "strides and layout have the rank of the buffer, and its alignment is a power of two",
)
ACCESS: Final = Rule("L14", "access modes", "parameters with access mode `in` are not written")
LOOPS: Final = Rule(
    "L15", "loop kinds", "a loop has a thread tag if and only if it is thread-bound"
)

TENSORIZED: Final = Rule(
    "L16",
    "tensorized blocks",
    "a tensorized block names its intrinsic and contains a perfect nest around a single block with "
    "a single store and no init",
)

RULES: Final = (
    UIDS,
    NAMES,
    VALID_NAMES,
    SCOPE,
    ISOLATION,
    DECLARED,
    RANK,
    DTYPES,
    REGIONS,
    REDUCTION,
    SYMBOLS,
    BOUND_ONCE,
    BUFFERS,
    ACCESS,
    LOOPS,
    TENSORIZED,
)
