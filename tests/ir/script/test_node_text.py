from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from tilewright.errors import visible
from tilewright.ir.dtype import bool_, f32, i64
from tilewright.ir.graph import nodes as graph
from tilewright.ir.graph.nodes import CallableInfo, GraphFunc, ObjectInfo, TensorInfo, Value
from tilewright.ir.graph.plan import plan_memory
from tilewright.ir.loop.builder import Builder
from tilewright.ir.loop.combiners import named_reducer, reducer_of
from tilewright.ir.loop.nodes import Binary, Block, Buffer, IndexMap, Number, PrimFunc, Range
from tilewright.ir.loop.visit import walk
from tilewright.ir.module import Module
from tilewright.ir.script import to_text
from tilewright.ir.script.node_text import MAX_LABEL, node_label, node_text, program_text
from tilewright.ir.symbolic import as_expr, var

from tests.ir.script.texts import parse
from tests.static_html import HOSTILE, INVISIBLE, names

PROGRAM = """
n = symbols("n", lower=1)

@prim_func
def rows(p: Buffer[(n,), i32], x: Buffer[(n, 8), f32], y: Out[(n,), f32]):
    t = alloc((n,), f32, scope="local")
    for i in parallel(n):
        with checked(p[i], 0, n) as q:
            for k in range(8):
                with block("sum"):
                    vi, vq, vk = spatial(i), spatial(n, q), reduce(k)
                    with init(): t[vi] = 0.0
                    t[vi] += x[vq, vk]
        if i < 4:
            y[i] = t[i] * 2.0
        else:
            y[i] = t[i]


@graph_func
def main(p: Tensor[(n,), i32], x: Tensor[(n, 8), f32]):
    y: Tensor[(n,), f32] = call_tir(rows, p, x)
    z: Tensor[(n,), f32] = relu(y)
    return z
"""


@pytest.fixture(scope="module")
def module() -> Module:
    return parse(PROGRAM)


def hostile(name: str) -> PrimFunc:
    """Return a function in which every part has this name."""
    b = Builder(name)
    n = var(name, lower=0)
    x = b.param(name, (n,), f32)
    y = b.param(f"{name}_", (n,), f32, "out")
    b.compute(y, lambda i: b.load(x, i), name=name)
    return b.finish()


def test_a_function_prints_as_its_text(module):
    func = module.prim("rows")
    assert str(func) == to_text(func)
    assert str(module.graph()) == to_text(module.graph())
    assert str(module) == to_text(module)


def test_every_statement_has_a_text_and_a_label(module):
    labels = [repr(s) for s in walk(module.prim("rows").body)]
    assert labels == [
        "<For i in parallel(n): 1 block>",
        "<Seq of 2 statements>",
        "<Let checked(p[i], 0, n) as q>",
        "<For k in range(8): 1 block>",
        "<Block sum: vi = spatial(n, i), vq = spatial(n, q), vk = reduce(8, k)>",
        "<Store t[vi] = 0.0>",
        "<Store t[vi] += x[vq, vk]>",
        "<If i < 4>",
        "<Store y[i] = t[i] * 2.0>",
        "<Store y[i] = t[i]>",
    ]
    block = next(s for s in walk(module.prim("rows").body) if isinstance(s, Block))
    assert str(block).splitlines()[0] == 'with block("sum"):'
    assert str(block.reads[0]) == "x[vq, vk]"
    assert str(block.iters[1]) == "vq = spatial(n, q)"


def test_parts_of_functions(module):
    func = module.prim("rows")
    assert [str(p) for p in func.params] == [
        "p: Buffer[(n,), i32]", "x: Buffer[(n, 8), f32]", "y: Out[(n,), f32]",
    ]  # fmt: skip
    assert repr(func) == "<PrimFunc rows: 3 parameters, 1 block, symbol n>"
    assert repr(func.buffers[0]) == "<Buffer t: f32[n] in local>"
    n, k = var("n"), var("k")
    assert str(IndexMap((k, n), (n // 32, k, n % 32))) == "lambda k, n: (n // 32, k, n % 32)"
    assert str(Range(as_expr(4), as_expr(8))) == "4:12"
    packed = Buffer(1, "w", (n, k), f32, strides=(k, as_expr(1)), layout=IndexMap((k,), (k,)))
    assert str(packed) == "w: f32[n, k], strides (k, 1), layout lambda k: (k,)"


def test_elements_state_their_dtype():
    x = Number(1.0, f32)
    assert repr(Binary("add", x, x)) == "<Binary f32(1.0) + 1.0: f32>"
    assert str(Binary("add", x, x)) == "f32(1.0) + 1.0"


def test_parts_of_graphs(module):
    func = module.graph()
    assert repr(func) == "<GraphFunc main: 2 parameters, 2 bindings, symbol n>"
    call, relu = func.bindings
    assert str(relu) == "z: Tensor[(n,), f32] = relu(y)"
    assert repr(relu) == "<Binding z: Tensor[(n,), f32] = relu(y)>"
    assert str(relu.right) == "relu(y)"
    assert repr(call.right).startswith("<CallTIR call_tir(rows, p, x")
    assert str(func.params[0]) == "p: Tensor[(n,), i32]"
    assert repr(func.params[1].value) == "<Value x: Tensor[(n, 8), f32]>"
    infos = CallableInfo((TensorInfo(None, f32, rank=2),), ObjectInfo())
    assert str(infos) == "Callable[[Tensor(None, f32, rank=2)], Object]"


def test_statements_of_graphs():
    program = parse(
        """
    n = symbols("n", lower=1)

    @graph_func
    def main(c: Tensor[(), bool], x: Tensor[(n,), f32]):
        if c:
            y: Tensor[(n,), f32] = x
        else:
            z: Tensor[(n,), f32] = relu(x)
            y = z
        return y
    """.replace("\n    ", "\n")
    )
    right = program.graph().bindings[0].right
    assert isinstance(right, graph.IfElse)
    assert repr(right) == "<IfElse if c>"
    assert repr(right.otherwise) == "<Branch 1 bindings, results z>"
    case = graph.VersionCase(var("n") < 4, ())
    assert repr(graph.VersionSwitch((case, case))) == (
        "<VersionSwitch if n < 4: 0 bindings else if n < 4: 0 bindings>"
    )
    assert repr(graph.KernelVersion(var("n") < 4, "f")) == "<KernelVersion when(n < 4, f)>"


def test_every_node_of_a_planned_function_has_a_text(module):
    graph_func = module.graph()
    call = graph_func.bindings[0]
    lowered = module.with_functions(replace(graph_func, bindings=(call,), results=(call.value,)))
    planned = plan_memory(lowered, lowered.graph())
    labels = [repr(b.right) for b in planned.bindings]
    assert labels[0] == "<AllocStorage alloc_storage(n * 4)>"
    assert any(label.startswith("<LaunchKernel launch(rows, p, x, y)") for label in labels)
    assert repr(planned).endswith("symbol n, memory stage>")


def test_labels_are_short():
    long = "x" * 500
    label = node_label(hostile(long))
    assert len(label) < MAX_LABEL + 20
    assert label.endswith(" ...>")


@given(names())
def test_any_name_prints(name):
    func = hostile(name)
    graph_func = GraphFunc(name, (graph.GraphParam(Value(1, name, TensorInfo((), f32))),), (), ())
    module = Module().with_functions(func, graph_func)
    for node in (func, graph_func, module, func.body, *func.params, *func.buffer_params):
        assert not INVISIBLE.search(repr(node)), repr(node)
        assert "\n" not in repr(node)
    for program in (func, graph_func, module):
        assert visible(program_text(program)) == str(program)
    assert node_text(func.body)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_that_is_not_valid_is_reported_above_the_program(name):
    first = str(hostile(name)).splitlines()[0]
    assert first.startswith("# not valid as input: ")
    assert "is not valid in the text format" in first


def test_variables_of_equal_name_print():
    i = var("i")
    twice = Builder("f")
    y = twice.param("y", (i,), f32, "out")
    twice.compute(y, lambda _: Number(0.0, f32))
    func = twice.finish()
    assert "two variables named" not in str(func)


HALVES = """
n = symbols("n", lower=0)

@prim_func
def f(x: Buffer[(n,), f32], y: Out[(), f32]):
    for i in range(n):
        with block("y"):
            vi = reduce(i)
            @reducer(identity=(0.0,), commutative=False)
            def joined(a: f32, b: f32):
                t = a * 0.5
                return t + b
            with init(): y[()] = 0.0
            y[()] = joined(x[vi])
"""


def test_a_reducer_prints_as_its_definition():
    module = parse(HALVES)
    (block,) = (s for s in walk(module.prims[0].body) if isinstance(s, Block))
    assert block.reducer is not None
    assert str(block.reducer).splitlines() == [
        "@reducer(identity=(0.0,), commutative=False)",
        "def joined(a: f32, b: f32):",
        "    t = a * 0.5",
        "    return t + b",
    ]
    assert repr(block.reducer) == "<Reducer joined: a: f32, b: f32>"


@pytest.mark.parametrize("reducer", [named_reducer("argmax", (f32, i64)), reducer_of("and", bool_)])
def test_reducers_of_the_table_print(reducer):
    assert f"def {reducer.name}(" in str(reducer)


def test_a_malformed_node_has_a_label():
    assert repr(Buffer(1, "x", (8,), f32)) == "<Buffer that cannot be printed>"  # not a term
