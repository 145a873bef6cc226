"""The rules of well-formed loop-level functions."""

from __future__ import annotations

from typing import Final

from ..violations import Rule

UIDS: Final = Rule("L1", "unique uids", "loops, blocks and buffers have different uids")
NAMES: Final = Rule(
    "L2",
    "unique names",
    "loops, blocks and buffers have different names among their like, and no two variables in "
    "scope have one name",
)
WRITABLE: Final = Rule("L3", "writable names", "every name reads back as itself")
SCOPE: Final = Rule(
    "L4", "variables in scope", "every variable is a symbol of the parameters or bound around it"
)
ISOLATION: Final = Rule(
    "L5",
    "block isolation",
    "body and init of a block mention its iteration variables, the loops inside it and symbols, "
    "never a loop around it",
)
DECLARED: Final = Rule(
    "L6", "declared buffers", "every buffer accessed is a parameter or a temporary"
)
RANK: Final = Rule("L7", "rank of accesses", "an access has one index for every dimension")
DTYPES: Final = Rule("L8", "dtypes agree", "the parts of an element have dtypes that fit")
REGIONS: Final = Rule(
    "L9", "regions cover accesses", "what a block reads and writes lies in its regions"
)
REDUCTION: Final = Rule(
    "L10",
    "reduction",
    "a reduction block writes what its reduction variables do not index; it has an init of the "
    "same buffers, or it updates what it reads",
)
SYMBOLS: Final = Rule(
    "L11",
    "symbols are bound",
    "every symbol is a whole dimension of a parameter, or an integer parameter",
)
BOUND_ONCE: Final = Rule("L12", "bound once", "a variable is bound by one loop, block or let")
BUFFERS: Final = Rule(
    "L13",
    "buffer attributes",
    "strides and layout have the buffer's rank, alignment is a power of two",
)
ACCESS: Final = Rule("L14", "access modes", "a parameter passed `in` is not written")
LOOPS: Final = Rule("L15", "loop kinds", "a loop has a thread tag exactly if it is thread-bound")

TENSORIZED: Final = Rule(
    "L16",
    "tensorized blocks",
    "a block that an instruction does the work of names it, and holds loops around one block of "
    "one store, without initialisations",
)

RULES: Final = (
    UIDS,
    NAMES,
    WRITABLE,
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
