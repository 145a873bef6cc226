"""Printing and parsing are exact inverses."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, get_args

import pytest
from hypothesis import given, strategies as st

from tilewright.ir.dtype import DTYPES, DType, bool_, c64, f32, i64, u32
from tilewright.ir.graph.operators import LoweredGraph, lower_call
from tilewright.ir.identity import UidSource
from tilewright.ir.loop.element_functions import FUNCTIONS
from tilewright.ir.loop.nodes import (
    Binary,
    Block,
    Buffer,
    BufferParam,
    Cast,
    Compare,
    CompareOp,
    Condition,
    Element,
    For,
    Index,
    Load,
    Number,
    PrimFunc,
    Reinterpret,
    Store,
    Unary,
    Where,
)
from tilewright.ir.loop.typing import own_dtype_problems
from tilewright.ir.loop.visit import transform, walk
from tilewright.ir.module import Module
from tilewright.ir.script import ScriptSyntaxError, UnprintableProgramError, to_text
from tilewright.ir.structural_hash import explain_difference
from tilewright.ir.symbolic import FALSE, TRUE, as_expr, maximum, minimum, var
from tilewright.target.target import Target

from tests.ir.graph.cases import CASES
from tests.ir.graph.test_operators import Program
from tests.ir.script.texts import GRAPHS, LOOPS, parse
from tests.strategies import prim_funcs

if TYPE_CHECKING:
    from tilewright.ir.graph.nodes import GraphFunc


def assert_same(program: Module | PrimFunc | GraphFunc) -> None:
    """Check that printing and parsing preserve text and structure."""
    text = to_text(program)
    again = parse(text)
    found = again if isinstance(program, Module) else again.functions[program.name]
    assert to_text(found) == text
    if not isinstance(program, Module):
        assert explain_difference(program, found) == ""


@pytest.mark.parametrize("text", [LOOPS, GRAPHS], ids=["loops", "graphs"])
def test_every_form_prints_exactly(text: str) -> None:
    module = parse(text)
    assert to_text(module) == text.rstrip("\n")
    for func in module:
        assert explain_difference(func, parse(text).functions[func.name]) == ""


@pytest.mark.parametrize(
    "target",
    [
        Target("webgpu", where="browser"),
        Target("webgpu", features=("f16", "timestamps"), where="browser"),
        Target("webgpu", features=("f16",)),
        Target("cuda", arch="sm_90a"),
        Target("cpu", arch="x86_64", features=("avx2",), threads=2),
    ],
    ids=str,
)
def test_every_option_of_a_target_is_printed_and_parsed(target: Target) -> None:
    text = f"@prim_func(target={target})\ndef f(x: Buffer[(4,), f32]):\n    pass"
    func = parse(text).prims[0]
    assert func.target == target
    assert parse(to_text(func)).prims[0].target == target
    assert_same(func)


@pytest.mark.parametrize(
    ("kind", "problem"),
    [("webgpu", "unknown location 'moon'"), ("cpu", "unknown location 'moon'")],
)
def test_an_unknown_location_of_a_target(kind: str, problem: str) -> None:
    with pytest.raises(ScriptSyntaxError, match=problem):
        parse(f'@prim_func(target=Target("{kind}", where="moon"))\ndef f(): pass')


def test_the_texts_cover_every_node_class() -> None:
    from typing import get_args

    from tilewright.ir.graph import nodes as graph
    from tilewright.ir.loop import nodes as loop

    reached: set[str] = set()
    stack: list[object] = [*parse(LOOPS), *parse(GRAPHS)]
    while stack:
        node = stack.pop()
        if isinstance(node, tuple):
            stack.extend(node)
        elif dataclasses.is_dataclass(node):
            reached.add(type(node).__name__)
            stack.extend(getattr(node, f.name) for f in dataclasses.fields(node))
    unions = (
        loop.Stmt, loop.Element, loop.Param, graph.Info, graph.Operand, graph.Pure, graph.MemoryOp,
    )  # fmt: skip
    names: set[str] = set()
    pending: list[object] = list(unions)
    while pending:
        union = pending.pop()
        for member in get_args(union) or str(union).split(" | "):
            name = getattr(member, "__forward_arg__", getattr(member, "__name__", str(member)))
            part = getattr(loop, name, None)
            if isinstance(part, str):  # the name of a union, which is a part of this one
                pending.append(part)
            else:
                names.add(name)
    assert {"Where", "Bind", "Reinterpret"} <= names
    assert names - reached == set()


@given(prim_funcs(exact=False))
def test_random_functions(func: PrimFunc) -> None:
    assert_same(func)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_operator_and_its_lowering(case) -> None:
    program = Program(case)
    assert_same(program.builder.finish([program.value]))
    lowered = lower_call(program.call, program.value.info, "f")
    assert_same(
        program.schedule().module if isinstance(lowered, LoweredGraph) else lowered.function
    )


N, I = var("n", lower=1), var("i", lower=0)
BUFFERS = [Buffer(k, f"b{k}", (N,), t) for k, t in enumerate((f32, i64, bool_, c64))]
TERMS = [I, N, I + 1, as_expr(3), N * I - 2, minimum(I, N), maximum(I // 2, N % 3)]
PREDICATES = [I < N, (I < 3) & (N > 2), (I < 3) | (N > 2), N % 2 < 1, TRUE, FALSE]
FLOATS = st.floats() | st.sampled_from([0.0, -0.0, 1e300, 1e-320])
VALUES = FLOATS | st.integers(-(2**63), 2**63) | st.booleans()


def cast(dtype: DType, element: Element) -> Element:
    if element.dtype.is_complex and not dtype.is_complex:
        element = Unary("imag", element)
    return element if element.dtype == dtype else Cast(dtype, element)


def accepted(op: str, dtype: DType) -> DType:
    """Return the dtype if a function is defined for it, else another one."""
    return next(t for t in (dtype, f32, i64, bool_, c64, u32) if FUNCTIONS[op].accepts(t))


def well_typed(element: Element) -> Element:
    match element:
        case Unary(op=op, operand=operand):
            return Unary(op, cast(accepted(op, operand.dtype), operand))
        case Binary(op=op, left=left, right=right):
            dtype = accepted(op, left.dtype)
            return Binary(op, cast(dtype, left), cast(FUNCTIONS[op].second or dtype, right))
        case Compare(op=op, left=left, right=right):
            found = Compare(op, left, cast(left.dtype, right))
            return Compare("eq", left, found.right) if any(own_dtype_problems(found)) else found
        case Cast(dtype=dtype, operand=operand):
            return cast(dtype, operand)
        case Reinterpret(dtype=dtype, operand=operand) if any(own_dtype_problems(element)):
            return cast(dtype, operand)
        case Where(condition=condition, then=then, otherwise=otherwise):
            return Where(cast(bool_, condition), then, cast(then.dtype, otherwise))
        case _:
            return element


def elements() -> st.SearchStrategy[Element]:
    """Elements of any form; operands of the wrong dtype are cast."""
    dtypes = st.sampled_from(list(DTYPES.values()))
    leaves = (
        st.builds(Number, VALUES, dtypes).filter(lambda n: not any(own_dtype_problems(n)))
        | st.builds(Index, st.sampled_from(TERMS), dtypes.filter(lambda t: t != bool_))
        | st.builds(Condition, st.sampled_from(PREDICATES))
        | st.builds(lambda b, t: Load(b, (t,)), st.sampled_from(BUFFERS), st.sampled_from(TERMS))
    )
    unary = [f.name for f in FUNCTIONS.values() if f.arity == 1]
    binary = [f.name for f in FUNCTIONS.values() if f.arity == 2]

    def grow(inner: st.SearchStrategy[Element]) -> st.SearchStrategy[Element]:
        return (
            st.builds(Unary, st.sampled_from(unary), inner)
            | st.builds(Binary, st.sampled_from(binary), inner, inner)
            | st.builds(Compare, st.sampled_from(get_args(CompareOp)), inner, inner)
            | st.builds(Cast, dtypes, inner)
            | st.builds(Reinterpret, dtypes, inner)
            | st.builds(Where, inner, inner, inner)
        ).map(well_typed)

    return st.recursive(leaves, grow, max_leaves=8)


@given(elements(), st.sampled_from(BUFFERS))
def test_elements_of_any_form(value: Element, out: Buffer) -> None:
    store = Store(out, (I,), cast(out.dtype, value))
    func = PrimFunc("f", tuple(BufferParam(b, "inout") for b in BUFFERS), For(9, I, N, store))
    text = to_text(func)
    again = parse(text).prim("f")
    assert to_text(again) == text
    assert explain_difference(func, again) == ""


@given(prim_funcs(), st.data())
def test_provenance_of_statements_round_trips(func: PrimFunc, data: st.DataObject) -> None:
    origins = st.frozensets(st.sampled_from(["linear_1", 'odd "name"', "a.b"]), max_size=2)

    def mark(statement):
        if isinstance(statement, For | Block | Store):
            return dataclasses.replace(statement, origins=data.draw(origins))
        return statement

    marked = dataclasses.replace(func, body=transform(func.body, mark), origins=data.draw(origins))
    again = parse(to_text(marked, provenance=True)).prim("random")

    def all_origins(f: PrimFunc) -> list[object]:
        nodes = [s for s in walk(f.body) if isinstance(s, For | Block | Store)]
        return [f.origins, *(s.origins for s in nodes)]

    assert all_origins(again) == all_origins(marked)
    assert to_text(again, provenance=True) == to_text(marked, provenance=True)
    assert to_text(marked) == to_text(func)


def test_provenance_of_bindings_round_trips() -> None:
    text = GRAPHS.replace(
        "    z0 = z[0]\n", '    with origin("a", "b"), attributes(x=1):\n        z0 = z[0]\n'
    )
    binding = next(b for b in parse(text).graph().bindings if b.value.name == "z0")
    assert binding.origins == {"a", "b"}
    assert binding.attributes == (("x", 1),)
    assert to_text(parse(text), provenance=True) == text.rstrip("\n")
    assert "origin(" not in to_text(parse(text))


def test_loop_ranges_that_differ_from_the_extent() -> None:
    extent = as_expr(8)
    loops = [
        (var("i", lower=0, upper=7), "range(8)"),
        (var("i", lower=0), "range(8, bounds=(0, None))"),
        (var("i", lower=0, upper=7, multiple_of=2), "range(8, bounds=(0, 6), multiple_of=2)"),
    ]
    for loop, written in loops:
        mint = UidSource()
        y = Buffer(mint(), "y", (extent,), f32)
        body = For(mint(), loop, extent, Store(y, (loop,), Number(1.0, f32)))
        func = PrimFunc("f", (BufferParam(y, "out"),), body)
        assert f"for i in {written}:" in to_text(func)
        again = parse(to_text(func)).prim("f").body
        assert isinstance(again, For)
        kept = (again.var.lower, again.var.upper, again.var.multiple_of)
        assert kept == (loop.lower, loop.upper, loop.multiple_of)


def test_omitted_annotations_are_inferred() -> None:
    text = """
n = symbols("n", lower=1)

@graph_func
def main(x: Tensor[(n, 4), f32]):
    y = softmax(x, axis=-1)
    z = matmul(y, permute_dims(x))
    return z
"""
    with pytest.raises(Exception, match="expected an operand, got a nested call"):
        parse(text)
    flat = text.replace(
        "    z = matmul(y, permute_dims(x))",
        "    t = permute_dims(x, axes=(1, 0))\n    z = matmul(y, t)",
    )
    written = to_text(parse(flat))
    assert "z: Tensor[(n, n), f32] = matmul(y, t)" in written
    assert to_text(parse(written)) == written


def test_a_file_with_imports_comments_and_docstrings() -> None:
    text = '''"""A kernel."""
from tilewright.ir.script.vocabulary import *
import tilewright as tw

# four elements
@tw.script.prim_func
def f(y: Out[(4,), f32]):
    """Zero."""
    for i in serial(4):  # count
        y[i] = 0.0
'''
    assert to_text(parse(text)) == (
        "@prim_func\ndef f(y: Out[(4,), f32]):\n    for i in range(4):\n        y[i] = 0.0"
    )


@pytest.fixture
def lowered() -> PrimFunc:
    """A strip-mined loop: both loops have variables named i, and the block has no iterations."""
    mint = UidSource()
    x, y = (Buffer(mint(), name, (as_expr(16),), f32) for name in "xy")
    outer, inner = var("i", lower=0, upper=1), var("i", lower=0, upper=7)
    index = outer * 8 + inner
    shell = Block(mint(), "copy", (), (), (), Store(y, (index,), Load(x, (index,))))
    lanes = For(mint(), inner, as_expr(8), shell, "vectorized")
    loop = For(mint(), outer, as_expr(2), lanes)
    return PrimFunc("f", (BufferParam(x, "in"), BufferParam(y, "out")), loop)


def test_lowered_programs_print_with_unique_names(lowered: PrimFunc) -> None:
    assert to_text(lowered, lowered=True).splitlines()[2:] == [
        "    for i in range(2):",
        "        for i_1 in vectorized(8):",
        '            with block("copy"):',
        "                y[i * 8 + i_1] = x[i * 8 + i_1]",
    ]
    with pytest.raises(UnprintableProgramError, match="two variables named 'i' are in scope"):
        to_text(lowered)


def test_programs_before_lowering_print_the_same_with_lowered() -> None:
    module = parse(LOOPS)
    assert to_text(module, lowered=True) == to_text(module)


OTHERS = """n = symbols("n", lower=0)
@prim_func
def bound(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        with block("y"):
            v = spatial(i)
            r = x[v] * 2.0
            y[v] = r * r
@prim_func
def iterated(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for r in range(n):
        y[r] = x[r]
@prim_func
def loaded(x: Buffer[(n,), i64], z: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        with block("y"):
            v = spatial(i)
            with checked(x[v], 0, n) as r:
                y[v] = z[r]
"""


def test_a_symbol_of_another_function_hides_no_name() -> None:
    """The printed text of a module is legal, however its functions came together."""
    one = parse(
        'r = symbols("r", lower=0)\n@prim_func\ndef f(y: Out[(r,), f32]):\n'
        "    for i in range(r):\n        y[i] = 1.0\n"
    )
    text = str(one.with_functions(*parse(OTHERS).prims))
    assert str(parse(text)) == text
