"""The well-formedness rules of graph-level functions and modules."""

from __future__ import annotations

from typing import Final

from ..violations import Rule

UIDS: Final = Rule(
    "G1",
    "unique uids",
    "the uids of parameters and bindings are unique",
    "give every parameter and binding its own uid, from UidSource",
)
NAMES: Final = Rule(
    "G2",
    "unique names",
    "the names of values are unique, except `_`, the name of an effect",
    "rename one of them",
)
VALID_NAMES: Final = Rule(
    "G3",
    "valid names",
    "every name survives a round trip through the text format",
    "use letters, digits and underscores, beginning with a letter",
)
DEFINED: Final = Rule(
    "G4",
    "defined before use",
    "every operand is a parameter or the value of an earlier binding of the same or an enclosing "
    "scope",
    "define the value with a binding above its first use",
)
STAGE: Final = Rule(
    "G5",
    "stage",
    "the dataflow stage contains no memory operations; the memory stage contains no operators and "
    "no calls that allocate their results",
    "use operators in the dataflow stage, and launch, alloc_storage and view in the memory stage",
)
CALLEE: Final = Rule(
    "G6",
    "callees exist",
    "the callee of a call is a function of the module and of the right level",
    "add the function to the module, or call a function of the module",
)
ARGUMENTS: Final = Rule(
    "G7",
    "argument counts",
    "a call passes as many operands, outputs and integers as its callee declares",
    "pass the operands, outputs and integers that the callee declares",
)
SHAPES: Final = Rule(
    "G8",
    "shapes unify",
    "the dtype and rank of an argument equal those of its parameter, and no dimension is proved "
    "different",
    "pass a tensor with the shape and dtype of the parameter",
)
ANNOTATION: Final = Rule(
    "G9",
    "annotations agree",
    "the annotation of a value matches its right-hand side",
    "write the annotation of the right-hand side, or omit it, so that it is inferred",
)
OPERATORS: Final = Rule(
    "G10",
    "valid operators",
    "every operator is registered and accepts its operands",
    "change the operator, its operands or its attributes",
)
SYMBOLS: Final = Rule(
    "G11",
    "symbols are defined",
    "every symbol is by itself a dimension or an integer of a parameter or of an earlier "
    "match_cast, or the only unknown n of a dimension a * n + b of a parameter",
    "add a parameter with the symbol as a dimension, or a match_cast",
)
RESULTS: Final = Rule(
    "G12",
    "result names",
    "a function has either no result names or one unique name per result",
    "write one unique name per result",
)
CONSTANTS: Final = Rule(
    "G13",
    "constants exist",
    "a constant reference names a constant of the module with the same dtype and shape, or with as "
    "many elements in the memory stage",
    "add the constant to the module, with the shape and dtype of the reference",
)
VERSIONS: Final = Rule(
    "G14",
    "versions are complete",
    "the guard of the last case of a version switch is the constant True",
    "end the versions with a case without guard",
)
WRITES: Final = Rule(
    "G15",
    "access modes",
    "constants and parameters with access mode `in` are not written",
    "declare the parameter with InOut[...] or State[...]",
)
FACTS: Final = Rule(
    "G16",
    "facts of callees",
    "the facts that a callee requires of its caller are proved at the call",
    "add the fact to the calling function, or a check before the call",
)
MODULE: Final = Rule(
    "G17",
    "functions by name",
    "the key of a function in its module is its name",
    "store the function under its own name: module.with_functions(function)",
)
RECURSION: Final = Rule(
    "G18",
    "no recursion",
    "no graph-level function calls itself, directly or indirectly",
    "replace the recursive call; loops are written in loop-level functions",
)
UPDATES: Final = Rule(
    "G19",
    "updates of calls",
    "a call updates exactly the arguments of the inout and state parameters of its callee",
    "pass the positions of these arguments and use the new values: "
    "c2: Tensor[(8,), f32] = call_tir(update, cache, x, updates=(0,))",
)
LAST_VALUES: Final = Rule(
    "G20",
    "last values",
    "the last values of a function in the dataflow stage are values of different out, inout or "
    "state parameters, with the dtype and shape of the parameter, as are initial values",
    "declare the parameter with State[...] or InOut[...], and return a value of its type: "
    "return y, updates(cache=c2)",
)
CONDITIONS: Final = Rule(
    "G21",
    "conditions",
    "the condition of an `if` or of a loop is a bool tensor of shape `()`",
    "compare elements, such as less(i, n), and reshape the result to ()",
)
LOOPS: Final = Rule(
    "G22",
    "loops",
    "a loop has a count or a condition, and an index that no enclosing scope defines; a loop with "
    "stacked inputs has a count",
    "write @loop(k, count=n), or while c: in the body",
)
CARRIED: Final = Rule(
    "G23",
    "carried values",
    "the initial, the next, and the last value of a carried value have its annotation, for some "
    "values of the symbols that vary between iterations; slices of stacked tensors have one shape",
    "write a new symbol for each dimension that varies between iterations",
)

DEVICES: Final = Rule(
    "G24",
    "devices",
    "the operands and results of an operator, a kernel, or a library function are on one device, "
    "and a view is on the device of its storage",
    'copy the tensor to the device first: t = alloc_storage(bytes, device="cpu:1"), '
    'y = view(t, 0, Tensor((n,), f32, device="cpu:1")), copy(x, y)',
)
LITERALS: Final = Rule(
    "G25",
    "literals",
    "a number or a truth value without storage is an operand of operators only: it is not a "
    "condition, an argument of a function, a carried value, a field of a tuple, or a result",
    'write a tensor: zero = full((), 0, dtype="i64")',
)

RULES: Final = (
    UIDS,
    NAMES,
    VALID_NAMES,
    DEFINED,
    STAGE,
    CALLEE,
    ARGUMENTS,
    SHAPES,
    ANNOTATION,
    OPERATORS,
    SYMBOLS,
    RESULTS,
    CONSTANTS,
    VERSIONS,
    WRITES,
    FACTS,
    MODULE,
    RECURSION,
    UPDATES,
    LAST_VALUES,
    CONDITIONS,
    LOOPS,
    CARRIED,
    DEVICES,
    LITERALS,
)
EFFECT: Final = "_"
"""The name of the unused value of an effect; it need not be unique."""
