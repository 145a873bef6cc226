"""Well-formedness rules of graph-level functions and modules: one rejected program per rule."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest

from tilewright import compile
from tilewright.ir.graph.nodes import GraphFunc
from tilewright.ir.graph.rules import RULES
from tilewright.ir.interpreter import run_graph
from tilewright.ir.module import Module
from tilewright.ir.verify import violations

from tests.ir.graph.cases import CASES
from tests.ir.graph.test_operators import Program
from tests.ir.script.texts import unverified as parse

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
    b: Tuple[Tensor[(n,), f32], Tensor[(n,), f32]] = call_tir(
        kernel, a, state, scalars=(3,), updates=(1,)
    )
    s1 = b[1]
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
    return {"z": z, "d": d}, updates(state=s1)


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
    """Change fields of a function but keep its key in the module."""
    functions = dict(GOOD.functions)
    functions[name] = replace(functions[name], **changes)
    return replace(GOOD, functions=MappingProxyType(functions))


MAIN = GOOD.graph()
B = MAIN.bindings
SAME_UID = replace(B[0], value=replace(B[0].value, uid=B[1].value.uid))
SAME_NAME = replace(B[0], value=replace(B[0].value, name="x"))
BAD_NAME = replace(B[0], value=replace(B[0].value, name="a.b"))


def loop(old: str, new: str | None = None) -> Module:
    """Return a module with a loop, of which one part is replaced."""
    text = """\
k = symbols("k", lower=0)

@graph_func
def main(x: Tensor[(4,), f32], wide: Tensor[(5,), f32], c: Tensor[(), bool]):
    @loop(k)
    def y(h: Tensor[(4,), f32] = x):
        while c:
            a = relu(h)
            return a
    return y
"""
    if old == "while x":
        return parse(text.replace("while c", old))
    if old == "while c":
        body = text.replace("        while c:\n", "").replace("            ", "        ")
        return parse(body)
    return parse(text.replace(old, new or ""))


BROKEN: list[tuple[str, str, Module]] = [
    (
        "G24",
        "a view on 'default' of 'storage', which is on 'cpu:1'",
        changed("alloc_storage(n * 16)", 'alloc_storage(n * 16, device="cpu:1")'),
    ),
    ("G1", "2 values have uid", edit("main", bindings=(SAME_UID, *B[1:]))),
    ("G2", "2 values are named 'x'", edit("main", bindings=(SAME_NAME, *B[1:]))),
    ("G3", "name 'a.b'", edit("main", bindings=(BAD_NAME, *B[1:]))),
    ("G4", "value 'e' is not defined here", edit("main", bindings=B[1:])),
    ("G4", "value 'a' is not defined here", edit("main", bindings=(B[0], *B[2:]))),
    (
        "G5",
        "Kill is not allowed in the dataflow stage",
        changed("    i = pair[0]", "    kill(x)\n    i = pair[0]"),
    ),
    ("G5", "Call is not allowed in the memory stage", edit("main", stage="memory")),
    ("G5", "CallTIR is not allowed in the memory stage", edit("main", stage="memory")),
    (
        "G6",
        "no loop-level function 'missing'; loop-level functions are kernel, twin",
        changed("(twin, x)", "(missing, x)"),
    ),
    ("G6", "no loop-level function 'helper'", changed("(twin, x)", "(helper, x)")),
    ("G6", "no graph-level function 'twin'", changed("call(helper, q)", "call(twin, q)")),
    (
        "G7",
        "expected 2 operands, got 1; expected 1 output, got 2; expected 1 integer, got 0",
        changed("kernel, a, state, scalars=(3,), updates=(1,)", "kernel, a"),
    ),
    (
        "G7",
        "call of 'helper': expected 1 operand, got 2",
        changed("(helper, q)", "(helper, q, q)"),
    ),
    ("G7", "expected 2 operands, got 1", changed("launch(twin, x, y)", "launch(twin, x)")),
    ("G7", "expected 1 integer, got 0", changed("kernel, scalars=(1,))", "kernel)")),
    (
        "G8",
        "parameter 'a' of 'twin': expected rank 2, got rank 1",
        changed("(twin, x)", "(twin, state)"),
    ),
    (
        "G8",
        "parameter 's' of 'kernel': axis 0: expected n, got 4 (different for n = ",
        changed("a, state, scalars=(3,)", 'a, const("w"), scalars=(3,)'),
    ),
    (
        "G8",
        "parameter 'y' of 'twin': axis 0: expected 4, got n (different for n = ",
        changed("c: Tensor[(4, n), f32]", "c: Tensor[(n, 4), f32]"),
    ),
    (
        "G8",
        "parameter 'x' of 'helper': axis 1: expected n, got 4",
        changed("(helper, q)", "(helper, x)"),
    ),
    (
        "G8",
        "parameter 'a' of 'twin': expected a tensor",
        changed("(twin, x)", "(twin, (n, 4))"),
    ),
    (
        "G8",
        "expected dtype f32, got f64",
        parse(
            TEXT.replace("x: Tensor[(n, 4), f32],\n    state", "x: Tensor[(n, 4), f64],\n    state")
        ),
    ),
    (
        "G9",
        "axis 1: expected 5, got 4",
        changed("e: Tensor[(n, 4), f32]", "e: Tensor[(n, 5), f32]"),
    ),
    (
        "G9",
        "expected dtype i32, got f32",
        changed("e: Tensor[(n, 4), f32]", "e: Tensor[(n, 4), i32]"),
    ),
    ("G9", "expected Tuple, got Tensor", changed("e: Tensor[(n, 4), f32]", "e: Tuple[()]")),
    ("G9", "value 'x' is not a tuple", changed("i = pair[0]", "i: Object = x[0]")),
    (
        "G9",
        "field 7 is out of range for a tuple of 2 fields",
        changed("i = pair[0]", "i: Tensor[(n,), f32] = pair[7]"),
    ),
    (
        "G9",
        "number of tuple fields: expected 1, got 2",
        changed("both: Tuple[Tensor[(n,), f32], Tensor[(k, n), f32]]", "both: Tuple[Object]"),
    ),
    ("G9", "expected rank 2, got rank 1", changed("z = a", "z = state")),
    ("G10", "no operator 'banana'", changed("exp(x)", "banana(x)")),
    ("G10", "axis", changed("exp(x)", "softmax(x, axis=5)")),
    (
        "G11",
        "an operand uses symbol 'm'",
        parse(
            TEXT.replace('n, k = symbols("n k"', 'n, k, m = symbols("n k m"').replace(
                "(twin, x)", "(twin, (m, 4))"
            )
        ),
    ),
    (
        "G11",
        "the annotation uses symbol 'k'",
        changed("b: Tuple[Tensor[(n,)", "b: Tuple[Tensor[(k,)"),
    ),
    ("G12", "expected one name per result (2), got 1", edit("main", result_names=("one",))),
    ("G12", "2 results are named 'a'", edit("main", result_names=("a", "a"))),
    ("G13", "the module has no constant 'w'", replace(GOOD, constants=MappingProxyType({}))),
    (
        "G13",
        "constant 'w' has dtype f32 and shape (4,), but the reference has dtype f16 and shape (4,)",
        changed('const("w")', 'const("w", Tensor[(4,), f16])'),
    ),
    (
        "G14",
        "the guard of the last case must be the constant True",
        changed("    else:\n        launch(kernel", "    elif n < 10:\n        launch(kernel"),
    ),
    ("G15", "constant 'w' is written", changed("outputs=(y,)", 'outputs=(const("w"),)')),
    (
        "G15",
        "parameter 'x' has access mode 'in' but is written",
        changed("outputs=(y,)", "outputs=(x,)"),
    ),
    (
        "G15",
        "parameter 'x' has access mode 'in' but is written",
        changed("launch(twin, x, y)", "launch(twin, y, x)"),
    ),
    (
        "G16",
        "(the table has eight rows), which is false for n = ",
        changed("scalars=(3,)", "scalars=(n,)"),
    ),
    (
        "G17",
        "function 'kernel' is stored under the key 'other'",
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
    (
        "G19",
        "'kernel' writes its parameter 's', but the call does not update operand 1: expected ",
        changed("scalars=(3,), updates=(1,)", "scalars=(3,)"),
    ),
    (
        "G19",
        "does not write its parameter 'a': expected updates=(1,), got updates=(0, 1)",
        changed("updates=(1,)", "updates=(0, 1)"),
    ),
    (
        "G19",
        "the call updates operand 0, but 'twin' does not write its parameter 'a'",
        changed("call_tir(twin, x)", "call_tir(twin, x, updates=(0,))"),
    ),
    (
        "G19",
        "the call updates operand 0, but 'helper' does not write its parameter 'x'",
        changed("call(helper, q)", "call(helper, q, updates=(0,))"),
    ),
    (
        "G19",
        "'helper' writes its parameter 'x', but the call does not update operand 0",
        changed("def helper(x: Tensor[(n, n), f32])", "def helper(x: InOut[Tensor[(n, n), f32]])"),
    ),
    (
        "G20",
        "parameter 'x' has access mode 'in' but a last value",
        changed("updates(state=s1)", "updates(x=x)"),
    ),
    (
        "G20",
        "last value of parameter 'state': expected rank 1, got rank 2",
        changed("updates(state=s1)", "updates(state=e)"),
    ),
    (
        "G20",
        "last value of parameter 'state': expected a tensor",
        changed("updates(state=s1)", "updates(state=1.0)"),
    ),
    ("G20", "parameter 'state' has two last values", edit("main", updates=MAIN.updates * 2)),
    (
        "G20",
        "'e' is not a parameter",
        edit("main", updates=(replace(MAIN.updates[0], param=B[0].value),)),
    ),
    (
        "G20",
        "'s' has a last value, but launches of the memory stage write it",
        changed("    return y\n", "    return y, updates(s=s)\n"),
    ),
    (
        "G20",
        "initial value of parameter 'state': axis 0: expected n, got 4",
        changed("state: State[Tensor[(n,), f32]]", 'state: State[Tensor[(n,), f32], const("w")]'),
    ),
    ("G21", "expected a condition Tensor[(), bool], got x: Tensor[(4,), f32]", loop("while x")),
    ("G22", "neither a count nor a condition", loop("while c", "")),
    ("G23", "'h' is annotated Tensor[(4,), f32], but its initial value is", loop("= x", "= wide")),
    ("G25", "4 is an argument of the call", changed("call_tir(twin, x)", "call_tir(twin, 4)")),
    (
        "G20",
        "parameter 'state' has access mode 'inout' but an initial value",
        edit(
            "main",
            params=tuple(
                replace(p, access="inout", initial=B[1].right.args[1]) if k == 1 else p
                for k, p in enumerate(MAIN.params)
            ),
        ),
    ),
]


@pytest.mark.parametrize(
    ("rule", "message", "module"), BROKEN, ids=[f"{b[0]} {b[1]}" for b in BROKEN]
)
def test_a_violation_is_reported(rule: str, message: str, module: Module) -> None:
    found = [v for v in violations(module) if v.rule.number == rule]
    assert any(message in v.message for v in found), [str(v) for v in violations(module)]


def test_every_rule_has_a_rejected_program() -> None:
    assert {b[0] for b in BROKEN} == {r.number for r in RULES}
    assert [r.number for r in RULES] == [f"G{k + 1}" for k in range(len(RULES))]


def test_the_original_program_is_well_formed() -> None:
    assert [str(v) for v in violations(GOOD)] == []


def test_a_guard_discharges_a_fact_of_the_callee() -> None:
    versions = "versions=(when(n < 8, kernel, scalars=(n,)),)"
    module = changed("scalars=(3,), updates", f"scalars=(3,), {versions}, updates")
    assert violations(module) == ()


def test_prepared_constants_need_no_module_entry() -> None:
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


def test_location_and_uid_of_a_violation() -> None:
    module = changed("t: Tensor[(n, 4), f32] = exp(a)", "t: Tensor[(n, 4), f32] = banana(a)")
    (violation,) = violations(module)
    assert violation.location == "function 'main', binding 'z', binding 't'"
    assert violation.function == "main"
    assert violation.uid is not None


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("return a, NUMBER", "0.0 is a result of the function"),
        ("b: Tuple[Tensor[(), f32], Tensor[(), f32]] = (NUMBER, x)\nc = b[0]\nreturn c",
         "0.0 is a field of the tuple"),
        ("b = match_cast(NUMBER, Tensor[(), f32])\nreturn b", "0.0 is the operand of match_cast"),
        ("b: Tensor[(), f32] = call(half, NUMBER)\nreturn b", "0.0 is an argument of the call"),
        ("if p:\n    b: Tensor[(), f32] = NUMBER\nelse:\n    b = x\nreturn b",
         "0.0 is the result of the branch"),
        ("@loop(k, count=2)\ndef b(c: Tensor[(), f32] = NUMBER):\n    return a\nreturn b",
         "0.0 is an initial value of the loop"),
        ("@loop(k, count=2)\ndef b(c: Tensor[(), f32] = x):\n    return NUMBER\nreturn b",
         "0.0 is a result of the iteration"),
        ("@loop(k, count=2)\ndef b(c: Tensor[(), f32] = x):\n    while FLAG: return c\nreturn b",
         "True is the condition"),
    ],
)  # fmt: skip
def test_a_literal_has_no_storage_and_the_fix_gives_it_one(lines: str, message: str) -> None:
    def program(number: str, flag: str) -> Module:
        body = lines.replace("NUMBER", number).replace("FLAG", flag)
        head = 'k = symbols("k", lower=0)\n' + HALF
        return parse(head + "\n".join(f"    {line}" for line in body.split("\n")) + "\n")

    (violation,) = violations(program("0.0", "True"))
    assert (violation.rule.number, violation.message) == ("G25", message)
    value, dtype = ("0.0", "f32") if message.startswith("0.0") else ("True", "bool")
    assert violation.fix == f'write a tensor: number = full((), {value}, dtype="{dtype}")'
    module = program("number", "flag")
    assert violations(module) == ()
    x, p = np.float32(3), np.array(False)
    found = compile(module)(x, p)
    results = found if isinstance(found, tuple) else (found,)
    for a, b in zip(run_graph(module, [x, p]), results, strict=True):
        np.testing.assert_array_equal(a, b)


HALF = """\
@graph_func
def half(x: Tensor[(), f32]):
    y = multiply(x, 0.5)
    return y

@graph_func
def main(x: Tensor[(), f32], p: Tensor[(), bool]):
    number = full((), 0.0, dtype="f32")
    flag = full((), True, dtype="bool")
    a = add(x, 1.0)
"""


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_operator_is_accepted(case) -> None:
    program = Program(case)
    func: GraphFunc = program.builder.finish([program.value])
    assert {v.rule.number for v in violations(func)} <= {"G11"}
