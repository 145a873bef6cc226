"""The rules of well-formed graph-level functions and modules."""

from __future__ import annotations

from typing import Final

from ..violations import Rule

UIDS: Final = Rule("G1", "unique uids", "parameters and bindings have different uids")
NAMES: Final = Rule(
    "G2", "unique names", "values have different names; only that of an effect, `_`, may repeat"
)
WRITABLE: Final = Rule("G3", "writable names", "every name reads back as itself")
DEFINED: Final = Rule(
    "G4", "defined before use", "a value is a parameter or bound above, in this branch or around it"
)
STAGE: Final = Rule(
    "G5",
    "stage",
    "the dataflow stage has no memory operations, the memory stage no operators and no calls that "
    "make tensors",
)
CALLEE: Final = Rule(
    "G6", "callees exist", "a call means a function of the module, of the right level"
)
ARGUMENTS: Final = Rule(
    "G7", "arguments fit", "a call has as many operands, outputs and integers as its callee takes"
)
SHAPES: Final = Rule(
    "G8",
    "shapes unify",
    "dtypes and ranks of arguments are the callee's, and no dimension can differ from it",
)
ANNOTATION: Final = Rule(
    "G9", "annotations agree", "the annotation of a value fits its right-hand side"
)
OPERATORS: Final = Rule("G10", "operators apply", "an operator exists and accepts its operands")
SYMBOLS: Final = Rule(
    "G11",
    "symbols are introduced",
    "a symbol is a whole dimension or integer of a parameter, or of an earlier match_cast",
)
RESULTS: Final = Rule(
    "G12", "results", "names of results are as many as the results, all different"
)
CONSTANTS: Final = Rule(
    "G13", "constants exist", "a reference has the shape and dtype of a constant of the module"
)
VERSIONS: Final = Rule("G14", "versions are complete", "the last case of a switch is always true")
WRITES: Final = Rule("G15", "access modes", "constants and parameters passed `in` are not written")
FACTS: Final = Rule(
    "G16", "facts of callees", "what a callee expects of its caller is proved at the call"
)
MODULE: Final = Rule("G17", "functions by name", "a function stands under its own name")
RECURSION: Final = Rule("G18", "no recursion", "no graph-level function calls itself")

RULES: Final = (
    UIDS,
    NAMES,
    WRITABLE,
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
)
EFFECT: Final = "_"
"""The name of a value that nothing uses: that of an effect. It may repeat."""
