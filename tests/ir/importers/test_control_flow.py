"""Branches and loops of PyTorch and ONNX, against PyTorch and ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import parser
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

from tilewright import compile, from_exported_program, from_onnx
from tilewright.errors import TilewrightError
from tilewright.ir.importers.unsupported import UnsupportedOperatorsError
from tilewright.ir.interpreter import run_graph
from tilewright.ir.script import parse
from tilewright.ir.verify import violations


def agree(module, expected, *arguments, exe=None, exact=True) -> None:
    """Compare the interpreter and native code with a reference."""
    assert violations(module) == ()
    assert str(parse(str(module))) == str(module)
    native = (exe or compile(module))(*arguments)
    native = native if isinstance(native, tuple) else (native,)
    for found in (run_graph(module, arguments), native):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            if isinstance(b, np.ndarray) and not b.size:
                assert (a.size, len(a)) == (0, len(b))  # ONNX Runtime omits unknown dimensions
                continue
            assert np.shape(a) == tuple(b.shape)
            if exact:
                np.testing.assert_array_equal(a, b)
            else:
                np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5)


BATCH = torch.export.Dim("batch", min=1)


def exported(model, args, dims=None):
    return torch.export.export(model.eval(), args, dynamic_shapes=dims)


class Choice(torch.nn.Module):
    def forward(self, p, x, y):
        return torch.cond(p, lambda x, y: (x + y, -x), lambda x, y: (x * y, -y), (x, y))


def test_cond_takes_one_of_two_branches() -> None:
    program = exported(
        Choice(), (torch.tensor(True), torch.ones(3, 2), torch.ones(3, 2)),
        ({}, {0: BATCH}, {0: BATCH}),
    )  # fmt: skip
    module = from_exported_program(program)
    exe = compile(module)
    for n in (1, 2, 5):
        x, y = torch.randn(n, 2), torch.randn(n, 2)
        for p in (torch.tensor(True), torch.tensor(False)):
            expected = Choice()(p, x, y)
            agree(module, expected, p.numpy(), x.numpy(), y.numpy(), exe=exe)


class Steps(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, i, limit, x):
        def condition(i, x):
            return i < limit

        def body(i, x):
            return i + 1, torch.tanh(self.linear(x))

        return while_loop(condition, body, (i, x))


def test_while_loop_runs_any_number_of_times() -> None:
    args = (torch.tensor(0), torch.tensor(3), torch.randn(2, 4))
    program = exported(Steps(), args, ({}, {}, {0: BATCH}))
    module = from_exported_program(program)
    exe = compile(module)
    model = Steps().eval()
    for n in (1, 3):
        for limit in (0, 1, 7):
            given = (torch.tensor(0), torch.tensor(limit), torch.randn(n, 4))
            with torch.no_grad():
                expected = model(*given)
            agree(module, expected, *(g.numpy() for g in given), exe=exe, exact=False)


class Recurrence(torch.nn.Module):
    def forward(self, h, xs, w):
        def step(h, x):
            return h * w + x, (h * x).clone()

        return scan(step, h, xs, dim=0)


def test_scan_stacks_its_outputs() -> None:
    length = torch.export.Dim("length", min=1)
    args = (torch.ones(3), torch.randn(5, 3), torch.ones(3))
    module = from_exported_program(exported(Recurrence(), args, ({}, {0: length}, {})))
    exe = compile(module)
    for n in (1, 2, 9):
        given = (torch.ones(3), torch.randn(n, 3), torch.randn(3))
        agree(module, Recurrence()(*given), *(g.numpy() for g in given), exe=exe, exact=False)


class Decoder(torch.nn.Module):
    """A greedy decoder: a cache of the states of all tokens grows by one row per token."""

    def __init__(self, words=11, size=8, most=16):
        super().__init__()
        torch.manual_seed(1)
        self.embedding = torch.nn.Embedding(words, size)
        self.query, self.key = torch.nn.Linear(size, size), torch.nn.Linear(size, size)
        self.head = torch.nn.Linear(size, words)
        self.most = most

    def forward(self, token, steps):
        tokens = torch.zeros(self.most, dtype=torch.int64)
        cache = torch.zeros(self.most, 8)
        positions = torch.arange(self.most)

        def condition(i, token, tokens, cache):
            return (i < steps) & (token[0] != 3)

        def body(i, token, tokens, cache):
            row = self.embedding(token)
            here = positions == i
            cache = torch.where(here[:, None], self.key(row), cache)
            scores = (cache @ self.query(row)[0]).masked_fill(positions > i, -1e30)
            mixed = torch.softmax(scores, 0) @ cache
            following = self.head(row + mixed).argmax(-1)
            return i + 1, following, torch.where(here, following, tokens), cache

        return while_loop(condition, body, (torch.tensor(0), token, tokens, cache))


def test_a_greedy_decoder_is_one_call() -> None:
    program = exported(Decoder(), (torch.tensor([1]), torch.tensor(4)))
    module = from_exported_program(program)
    exe = compile(module)
    model = Decoder().eval()
    for start in range(5):
        for steps in (0, 1, 5, 16):
            given = (torch.tensor([start]), torch.tensor(steps))
            with torch.no_grad():
                expected = model(*given)
            found = exe(*(g.numpy() for g in given))
            for a, b in zip(found[:3], expected[:3], strict=True):
                np.testing.assert_array_equal(a, b)
            np.testing.assert_allclose(found[3], expected[3], atol=1e-5)


HEAD = '<ir_version: 8, opset_import: ["" : 17]> '


def onnx_agree(text: str, *cases) -> None:
    model = parser.parse_model(HEAD + text)
    onnx.checker.check_model(model)
    module = from_onnx(model)
    exe = compile(module)
    reference = onnxruntime.InferenceSession(model.SerializeToString())
    names = [i.name for i in model.graph.input]
    for case in cases:
        expected = reference.run(None, dict(zip(names, case, strict=True)))
        agree(module, expected, *case, exe=exe)


def test_if_uses_values_around_it() -> None:
    text = """g (bool p, float[n] x, float[n] y) => (float[n] z) {
        w = Add(x, y)
        z = If(p) <then_branch = t () => (float[n] a) { a = Mul(w, x) },
                   else_branch = e () => (float[n] b) { b = Neg(w) }>
    }"""
    x = np.arange(3, dtype=np.float32)
    cases = [(np.array(p), a, a + 1) for p in (True, False) for a in (x, x[:0], x[:1])]
    onnx_agree(text, *cases)


LOOP = """g (int64 m, bool start, float[n] x) => (float[n] y, float[k, n] all) {
    y, all = Loop(m, start, x) <body = b (int64 i, bool c, float[n] v)
        => (bool d, float[n] w, float[n] out) {
        f = CastLike(i, v)
        w = Add(v, f)
        limit = Constant <value_float = 40.0> ()
        total = ReduceSum <keepdims = 0> (w)
        d = Less(total, limit)
        out = Mul(v, f)
    }>
}"""


def test_loop_with_a_trip_count_and_a_condition() -> None:
    x = np.arange(4, dtype=np.float32)
    cases = [
        (np.array(m), np.array(start), given)
        for m in (0, 1, 3, 9)
        for start in (True, False)
        for given in (x, x[:1])
    ]
    onnx_agree(LOOP, *cases)


@pytest.mark.parametrize("start", ["start", ""])
def test_loop_whose_body_returns_its_condition(start: str) -> None:
    """A loop without an initial condition runs; the reference implementation of ONNX skips it."""
    text = f"""g (int64 m, bool start, float[n] x) => (float[n] y) {{
        y = Loop(m, {start}, x) <body = b (int64 i, bool c, float[n] v)
            => (bool d, float[n] w) {{
            d = Identity(c)
            w = Add(v, v)
        }}>
    }}"""
    x = np.arange(3, dtype=np.float32)
    model = parser.parse_model(HEAD + text)
    module = from_onnx(model)
    for m in (0, 3):
        for given in (True, False):
            (found,) = run_graph(module, [np.array(m), np.array(given), x])
            np.testing.assert_array_equal(found, x * 2**m if given or not start else x)


def test_loop_with_a_value_that_grows() -> None:
    text = """g (int64 m, float[n, 2] x, float[1, 2] row) => (float[k, 2] y) {
        t = Constant <value = bool {1}> ()
        y = Loop(m, t, x) <body = b (int64 i, bool c, float[p, 2] v)
            => (bool d, float[q, 2] w) {
            d = Identity(c)
            w = Concat <axis = 0> (v, row)
        }>
    }"""
    x, row = np.arange(6, dtype=np.float32).reshape(3, 2), np.ones((1, 2), np.float32)
    onnx_agree(text, *((np.array(m), x[:n], row) for m in (0, 1, 4) for n in (0, 1, 3)))


@pytest.mark.parametrize(
    "options", ["", ", scan_input_directions = [1]", ", scan_input_axes = [1]"]
)
def test_scan_over_axes_and_directions(options: str) -> None:
    text = f"""g (float[3] h, float[n, 3] x) => (float[3] y, float[n, 3] s) {{
        y, s = Scan <num_scan_inputs = 1{options}, body = b (float[3] a, float[3] e)
            => (float[3] c, float[3] d) {{
            c = Add(a, e)
            d = Mul(c, e)
        }}> (h, x)
    }}"""
    if "axes" in options:
        text = text.replace("float[n, 3] x", "float[3, n] x")
    cases = []
    for n in (1, 2, 5):
        x = np.random.default_rng(n).integers(-3, 4, (n, 3)).astype(np.float32)
        cases.append((np.ones(3, np.float32), x.T.copy() if "axes" in options else x))
    onnx_agree(text, *cases)


def test_branches_of_different_shapes_are_reported() -> None:
    text = """g (bool p, float[4] x) => (float[k] z) {
        z = If(p) <then_branch = t () => (float[4] a) { a = Neg(x) },
                   else_branch = e () => (float[8] b) { b = Concat <axis = 0> (x, x) }>
    }"""
    message = r"result 0 of the branches differs: Tensor\[\(4,\), f32\] in the first"
    with pytest.raises(UnsupportedOperatorsError, match=message):
        from_onnx(parser.parse_model(HEAD + text))


def test_an_unsupported_operator_in_a_subgraph_is_reported() -> None:
    text = """g (bool p, float[4] x) => (float[4] z) {
        z = If(p) <then_branch = t () => (float[4] a) { a = Neg(x) },
                   else_branch = e () => (float[4] b) { b = ImageDecoder(x) }>
    }"""
    with pytest.raises(UnsupportedOperatorsError, match="ImageDecoder"):
        from_onnx(parser.parse_model(HEAD + text))


def test_declared_sizes_of_a_loop_body_are_checked_for_slices_by_the_iteration() -> None:
    text = """g (int64 n, float[1] y, float[k] x) => (float[1] z, float[n, 1] every) {
        c = Constant<value = bool {1}>()
        z, every = Loop(n, c, y)
        <body = b (int64 i, bool p, float[1] a) => (bool q, float[1] w, float[1] s) {
            q = Identity(p)
            one = Constant<value_ints = [1]>()
            zero = Constant<value_ints = [0]>()
            start = Reshape(i, one)
            end = Add(start, one)
            part = Slice(x, start, end, zero)
            w = Add(a, part)
            s = Identity(w)
        }>
    }"""
    run = compile(from_onnx(parser.parse_model(HEAD + text)))
    x, y = np.arange(4, dtype=np.float32), np.ones(1, np.float32)
    last, every = run(np.array(3), y, x)
    np.testing.assert_array_equal(last, [4])
    np.testing.assert_array_equal(every, [[1], [2], [4]])
    with pytest.raises(TilewrightError):
        run(np.array(5), y, x)
