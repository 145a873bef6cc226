"""One rejecting program for every rule of graph-level functions and modules."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest

from tilewright.ir.graph.nodes import GraphFunc
from tilewright.ir.graph.rules import RULES
from tilewright.ir.module import Module
from tilewright.ir.script import parse
from tilewright.ir.verify import violations

from tests.ir.graph.cases import CASES
from tests.ir.graph.test_operators import Program

TEXT = """\
constant("w", (4,), f32)


n, m = symbols("n m", lower=1)

@prim_func
def kernel(a: Buffer[(n, m), f32], s: State[(n,), f32], y: Out[(n,), f32], shift: Int):
    fact(shift < 8, "the table has eight rows", by="caller")
    for i in range(n):
        y[i] = a[i, 0] + s[i]

@prim_func
def twin(a: Buffer[(n, m), f32], y: Out[(m, n), f32]):
    for i in range(n):
        for j in range(m):
            y[j, i] = a[i, j]

n, k = symbols("n k", lower=1)

@graph_func
def helper(x: Tensor[(n, n), f32]):
    return x

@graph_func
def main(
    x: Tensor[(n, 4), f32],
    state: State[Tensor[(n,), f32]],
    pair: Tuple[Tensor[(n,), f32], Tensor[(4,), f32]],
    unknown: Tensor[None, f32],
    flag: Tensor[(), bool],
    q: Tensor[(n, n), f32],
):
    e: Tensor[(n, 4), f32] = exp(x)
    a: Tensor[(n, 4), f32] = add(e, const("w"))
    b: Tensor[(n,), f32] = call_tir(kernel, a, state, scalars=(3,))
    c: Tensor[(4, n), f32] = call_tir(twin, x)
    d = match_cast(unknown, Tensor[(k, n), f32])
    h: Tensor[(n, n), f32] = call(helper, q)
    i = pair[0]
    both: Tuple[Tensor[(n,), f32], Tensor[(k, n), f32]] = (i, d)
    if flag:
        t: Tensor[(n, 4), f32] = exp(a)
        z: Tensor[(n, 4), f32] = t
    else:
        z = a
    return {"z": z, "d": d}


n = symbols("n", lower=1)

@graph_func(stage="memory")
def planned(x: Tensor[(n, 4), f32], s: State[Tensor[(n,), f32]], y: Out[Tensor[(4, n), f32]]):
    storage = alloc_storage(n * 16)
    v = view(storage, 0, Tensor[(n,), f32])
    if n < 8:
        launch(twin, x, y)
    else:
        launch(kernel, x, s, v, scalars=(2,), versions=(when(n == 9, kernel, scalars=(1,)),))
    launch_library("copy", x, outputs=(y,))
    kill(storage)
    return y
"""
GOOD = parse(TEXT)


def changed(old: str, new: str) -> Module:
    assert TEXT.count(old) == 1, old
    return parse(TEXT.replace(old, new))


def edit(name: str, **changes: object) -> Module:
    """Change fields of a function, which stays under its name."""
    functions = dict(GOOD.functions)
    functions[name] = replace(functions[name], **changes)
    return replace(GOOD, functions=MappingProxyType(functions))


MAIN = GOOD.graph()
B = MAIN.bindings
SAME_UID = replace(B[0], value=replace(B[0].value, uid=B[1].value.uid))
SAME_NAME = replace(B[0], value=replace(B[0].value, name="x"))
BAD_NAME = replace(B[0], value=replace(B[0].value, name="a.b"))

BROKEN: list[tuple[str, str, Module]] = [
    ("G1", "2 values have uid", edit("main", bindings=(SAME_UID, *B[1:]))),
    ("G2", "2 values are named 'x'", edit("main", bindings=(SAME_NAME, *B[1:]))),
    ("G3", "name 'a.b'", edit("main", bindings=(BAD_NAME, *B[1:]))),
    ("G4", "value 'e' is not defined here", edit("main", bindings=B[1:])),
    ("G4", "value 'a' is not defined here", edit("main", bindings=(B[0], *B[2:]))),
    (
        "G5",
        "Kill in the dataflow stage",
        changed("    i = pair[0]", "    kill(x)\n    i = pair[0]"),
    ),
    ("G5", "Call in the memory stage", edit("main", stage="memory")),
    ("G5", "CallTIR in the memory stage", edit("main", stage="memory")),
    (
        "G6",
        "no loop-level function 'gone'; there are kernel, twin",
        changed("(twin, x)", "(gone, x)"),
    ),
    ("G6", "no loop-level function 'helper'", changed("(twin, x)", "(helper, x)")),
    ("G6", "no graph-level function 'twin'", changed("call(helper, q)", "call(twin, q)")),
    (
        "G7",
        "1 operands, not 2, 0 integers, not 1",
        changed("(kernel, a, state, scalars=(3,))", "(kernel, a)"),
    ),
    ("G7", "the call of 'helper' has 2 operands, not 1", changed("(helper, q)", "(helper, q, q)")),
    ("G7", "1 operands, not 2", changed("launch(twin, x, y)", "launch(twin, x)")),
    ("G7", "0 integers, not 1", changed("kernel, scalars=(1,))", "kernel)")),
    ("G8", "parameter 'a' of 'twin': rank 1 is not rank 2", changed("(twin, x)", "(twin, state)")),
    (
        "G8",
        "parameter 's' of 'kernel': axis 0: 4 is not n",
        changed("a, state, scalars=(3,)", 'a, const("w"), scalars=(3,)'),
    ),
    (
        "G8",
        "parameter 'y' of 'twin': axis 0: n is not 4",
        changed("c: Tensor[(4, n), f32]", "c: Tensor[(n, 4), f32]"),
    ),
    ("G8", "parameter 'x' of 'helper': axis 1: 4 is not n", changed("(helper, q)", "(helper, x)")),
    (
        "G8",
        "parameter 'a' of 'twin': the argument is no tensor",
        changed("(twin, x)", "(twin, (n, 4))"),
    ),
    (
        "G8",
        "f64 is not f32",
        parse(
            TEXT.replace("x: Tensor[(n, 4), f32],\n    state", "x: Tensor[(n, 4), f64],\n    state")
        ),
    ),
    ("G9", "axis 1: 4 is not 5", changed("e: Tensor[(n, 4), f32]", "e: Tensor[(n, 5), f32]")),
    ("G9", "f32 is not i32", changed("e: Tensor[(n, 4), f32]", "e: Tensor[(n, 4), i32]")),
    ("G9", "Tensor is not Tuple", changed("e: Tensor[(n, 4), f32]", "e: Tuple[()]")),
    ("G9", "value 'x' is no tuple", changed("i = pair[0]", "i: Object = x[0]")),
    ("G9", "field 7 of a tuple of 2", changed("i = pair[0]", "i: Tensor[(n,), f32] = pair[7]")),
    (
        "G9",
        "2 fields are not 1",
        changed("both: Tuple[Tensor[(n,), f32], Tensor[(k, n), f32]]", "both: Tuple[Object]"),
    ),
    ("G9", "rank 1 is not rank 2", changed("z = a", "z = state")),
    ("G10", "no operator 'banana'", changed("exp(x)", "banana(x)")),
    ("G10", "axis", changed("exp(x)", "softmax(x, axis=5)")),
    (
        "G11",
        "an operand mentions 'm'",
        parse(
            TEXT.replace('n, k = symbols("n k"', 'n, k, m = symbols("n k m"').replace(
                "(twin, x)", "(twin, (m, 4))"
            )
        ),
    ),
    ("G11", "the annotation mentions 'k'", changed("b: Tensor[(n,), f32]", "b: Tensor[(k,), f32]")),
    ("G12", "1 names for 2 results", edit("main", result_names=("one",))),
    ("G12", "2 results are named 'a'", edit("main", result_names=("a", "a"))),
    ("G13", "the module has no constant 'w'", replace(GOOD, constants=MappingProxyType({}))),
    (
        "G13",
        "constant 'w' is f32 of shape (4,), the reference says f16 of (4)",
        changed('const("w")', 'const("w", Tensor[(4,), f16])'),
    ),
    (
        "G14",
        "the last case has a guard",
        changed("    else:\n        launch(kernel", "    elif n < 10:\n        launch(kernel"),
    ),
    ("G15", "constant 'w' is written", changed("outputs=(y,)", 'outputs=(const("w"),)')),
    ("G15", "parameter 'x' is passed in, and written", changed("outputs=(y,)", "outputs=(x,)")),
    (
        "G15",
        "parameter 'q' is passed in, and written",
        parse(
            TEXT.replace("q: Tensor[(n, n)", "q: Tensor[(n,)").replace(
                "a, state, scalars", "a, q, scalars"
            )
        ),
    ),
    (
        "G16",
        "is expected of the caller (the table has eight rows)",
        changed("scalars=(3,)", "scalars=(n,)"),
    ),
    (
        "G17",
        "function 'kernel' stands under the name 'other'",
        replace(
            GOOD, functions=MappingProxyType({**GOOD.functions, "other": GOOD.functions["kernel"]})
        ),
    ),
    (
        "G18",
        "function 'helper' calls itself",
        changed(
            "x: Tensor[(n, n), f32]):\n    return x",
            "x: Tensor[(n, n), f32]):\n    y: Tensor[(n, n), f32] = call(helper, x)\n    return y",
        ),
    ),
]


@pytest.mark.parametrize(
    ("rule", "words", "module"), BROKEN, ids=[f"{b[0]} {b[1]}" for b in BROKEN]
)
def test_what_breaks_a_rule_is_found(rule: str, words: str, module: Module) -> None:
    found = [v for v in violations(module) if v.rule.number == rule]
    assert any(words in v.message for v in found), [str(v) for v in violations(module)]


def test_every_rule_has_a_rejecting_program() -> None:
    assert {b[0] for b in BROKEN} == {r.number for r in RULES}
    assert [r.number for r in RULES] == [f"G{k + 1}" for k in range(len(RULES))]


def test_the_program_that_was_broken_is_good() -> None:
    assert [str(v) for v in violations(GOOD)] == []


def test_a_guard_discharges_what_a_callee_expects() -> None:
    versions = "versions=(when(n < 8, kernel, scalars=(n,)),)"
    module = changed(
        "(kernel, a, state, scalars=(3,))", f"(kernel, a, state, scalars=(3,), {versions})"
    )
    assert violations(module) == ()


def test_prepared_constants_need_no_entry() -> None:
    text = """\
@graph_func(prepare_for="main")
def prepare():
    w: Tensor[(4,), f32] = full((4,), 1.0, dtype="f32")
    return {"packed": w}


@graph_func
def main(x: Tensor[(4,), f32]):
    y: Tensor[(4,), f32] = add(x, const("packed", Tensor[(4,), f32]))
    return y
"""
    assert violations(parse(text)) == ()
    without = parse(text).without("prepare")
    assert [v.rule.number for v in violations(without)] == ["G13"]


def test_place_and_uid_of_a_violation() -> None:
    module = changed("t: Tensor[(n, 4), f32] = exp(a)", "t: Tensor[(n, 4), f32] = banana(a)")
    (violation,) = violations(module)
    assert violation.place == "function 'main', binding 'z', binding 't'"
    assert violation.function == "main"
    assert violation.uid is not None


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_operator_is_accepted(case) -> None:
    program = Program(case)
    func: GraphFunc = program.builder.finish([program.value])
    assert {v.rule.number for v in violations(func)} <= {"G11"}
