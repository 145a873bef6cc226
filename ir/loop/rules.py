"""The well-formedness rules of loop-level functions."""

from __future__ import annotations

from typing import Final

from ..violations import Rule

UIDS: Final = Rule(
    "L1",
    "unique uids",
    "the uids of loops, blocks and buffers are unique",
    "give every loop, block and buffer its own uid, from UidSource",
)
NAMES: Final = Rule(
    "L2",
    "unique names",
    "the names of all loops, of all blocks and of all buffers are unique, and so are the names of "
    "the variables in scope",
    "rename one of them",
)
VALID_NAMES: Final = Rule(
    "L3",
    "valid names",
    "every name survives a round trip through the text format",
    "use letters, digits and underscores, beginning with a letter",
)
SCOPE: Final = Rule(
    "L4",
    "variables in scope",
    "every variable is a symbol of a parameter or is bound by an enclosing loop, block or let",
    "use a symbol of a parameter, or move the expression into the loop that binds the variable",
)
ISOLATION: Final = Rule(
    "L5",
    "block isolation",
    "the body and init of a block use symbols, its iteration variables and variables bound inside "
    "the block, but no variables of enclosing loops",
    "pass the loop variable through an iteration variable: v = spatial(extent, i)",
)
DECLARED: Final = Rule(
    "L6",
    "declared buffers",
    "every accessed buffer is a parameter or a temporary of the function",
    "add the buffer to the parameters, or allocate it in the function",
)
RANK: Final = Rule(
    "L7",
    "rank of accesses",
    "an access has one index per dimension",
    "write one index per dimension",
)
DTYPES: Final = Rule(
    "L8",
    "dtypes agree",
    "the operands of an element expression have the dtypes it requires",
    "cast one of the operands",
)
REGIONS: Final = Rule(
    "L9",
    "regions cover accesses",
    "the read and write regions of a block contain all elements that its body accesses",
    "omit reads(...) and writes(...), or extend them to all accessed elements",
)
REDUCTION: Final = Rule(
    "L10",
    "reduction",
    "the write indices and the init of a reduction block contain no reduction variables; the init "
    "writes the same buffers as the body, or there is none and the body reads the buffers it "
    "writes",
    "index the output with spatial variables, and write the same buffers in init and body",
)
SYMBOLS: Final = Rule(
    "L11",
    "symbols are bound",
    "every symbol is an integer parameter, or by itself a dimension of a parameter",
    "add an integer parameter with the name of the symbol, n: Int, and pass it in calls: "
    "call_tir(f, x, scalars=(n,))",
)
BOUND_ONCE: Final = Rule(
    "L12",
    "bound once",
    "a variable is bound by at most one loop, block or let",
    "create a new variable for each loop and block",
)
BUFFERS: Final = Rule(
    "L13",
    "buffer attributes",
    "strides and layout have the rank of the buffer, and its alignment is a power of two",
    "write one stride and one layout input per dimension, and a power of two as alignment",
)
ACCESS: Final = Rule(
    "L14",
    "access modes",
    "parameters with access mode `in` are not written",
    "declare the parameter with Out[...], InOut[...] or State[...]",
)
LOOPS: Final = Rule(
    "L15",
    "loop kinds",
    "a loop has a thread tag if and only if it is thread-bound",
    'write for i in thread(n, "threadIdx.x"), or a loop of another kind without a thread axis',
)

BINDS: Final = Rule(
    "L25",
    "values with names",
    "a bound value is inside a block, and is used inside the same block in the scope of its bind",
    "bind the value in the block that uses it, before its first use",
)

REDUCERS: Final = Rule(
    "L26",
    "reducers",
    "a block with a reducer stores one element per result, at the same spatial iteration "
    "variables, each the result of the reducer for these elements and new values; an init stores "
    "the same elements; in a scan, the values of the previous iteration of its one ordered "
    "iteration variable replace these elements",
    "write m[i], p[i] = argmax(x[i, k], k), with one element per result of the reducer, or "
    "y[i, j] = scan(add, x[i, j]) for all partial results",
)

TENSORIZED: Final = Rule(
    "L16",
    "tensorized blocks",
    "a tensorized block names its intrinsic and contains a perfect nest around a single block with "
    "a single store and no init",
    "remove the annotation 'intrinsic', or apply tensorize again",
)

BOUNDS: Final = Rule(
    "L17",
    "legal indices",
    "no access is outside of its buffer, no divisor is 0, no clamped range is empty, and no "
    "variable is outside of its declared range, for all arguments for which it is evaluated",
    "change the index; write x[n - 1] for the last of n elements, and guard an access that some "
    "iterations skip: if i + 1 < n:; omit the bounds of a variable that exceeds them",
)
WRITTEN: Final = Rule(
    "L18",
    "written buffers",
    "every parameter with access mode `out` is written, and so is every temporary that is read",
    "write the buffer, or declare the parameter with Buffer[...] or InOut[...]",
)

STORES: Final = Rule(
    "L19",
    "stores in blocks",
    "every store is in a block, so that the analyses of dependences see it",
    "write the store in a block with an iteration variable for each loop: v = spatial(i)",
)

PROVED: Final = Rule(
    "L20",
    "proved integers",
    "an integer loaded from memory whose range is proved names the discharge of the proof, and "
    "the range follows from it",
    'write checked(...), which checks the range at run time; proved(..., by="dtype") for a range '
    'that contains all values of the dtype; or proved(..., by="p") after checked(...) as p',
)

INDEPENDENT: Final = Rule(
    "L21",
    "independent bindings",
    "in a function without steps, no iteration variable is determined by other iteration variables "
    "of its block",
    "bind one of the variables only, and use it in the indices: y[v, 2 * v]",
)

INIT: Final = Rule(
    "L22",
    "separable init",
    "the init of a reduction runs before the reduction, once for every iteration of its spatial "
    "variables: the extent of a spatial loop that depends on a reduction loop, or on an integer "
    "loaded inside of it, has a largest value that is known before the reduction",
    "bind the loop directly to an iteration variable, v = spatial(extent, i), whose extent is the "
    "number of results; or write the init as a separate loop nest before the reduction",
)

RACES: Final = Rule(
    "L23",
    "independent iterations",
    "the iterations of a parallel, vectorized or thread-bound loop are independent: no two of them "
    "write the same element of a buffer that outlives the iteration, none reads an element that "
    "another one writes, and the loop binds neither an ordered iteration variable nor a reduction "
    "that its kind cannot combine",
    "write range(n), which runs the iterations in order, and apply parallel, vectorize or bind to "
    "a loop whose iterations are independent",
)

ALLOCATIONS: Final = Rule(
    "L24",
    "scopes of allocations",
    "every temporary is allocated once, and its allocation is the last statement of its sequence",
    "move the statements that follow the allocation into its body",
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
    BOUNDS,
    WRITTEN,
    STORES,
    PROVED,
    INDEPENDENT,
    INIT,
    RACES,
    ALLOCATIONS,
    BINDS,
    REDUCERS,
)
